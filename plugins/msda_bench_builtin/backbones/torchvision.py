"""Any classification network of torchvision, with torchvision's weights or your own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, PlainValidator, WithJsonSchema
from torch import nn

from msda_bench.api import (
    ByHand,
    Embedding,
    File,
    Files,
    InputSpec,
    Normalise,
    PluginError,
    Pretrained,
    Url,
    component,
    load_weights,
)
from msda_bench_builtin.backbones import headless
from msda_bench_builtin.backbones.headless import torchvision

_FORMS = "must be the name of torchvision's weights, {file: PATH, sha256: HEX}, or none"
_SUPPLIED = ByHand("weights that you supply (docs/images.md)")
_HASH = re.compile("-([0-9a-f]{8,64})[.]pth")
_WANTED = {("file", "sha256"): "[0-9a-f]{64}", ("name", "sha256"): "[0-9a-f]{8,64}"}
_OLD_NAMES = (r"(denselayer\d+\.(?:norm|relu|conv))\.(\d)", r"\1\2")
"""DenseNet's layers have other names in torchvision's files than in its code."""


def _weights(raw: Any) -> str | dict[str, str] | None:
    if raw is None or isinstance(raw, str):
        return None if raw == "none" else raw
    given = raw if isinstance(raw, Mapping) else {}
    digits = _WANTED.get(tuple(sorted(given)))
    if digits is None or not all(isinstance(value, str) and value for value in given.values()):
        raise ValueError(_FORMS)
    if not re.fullmatch(digits, given["sha256"]):
        raise ValueError(f"sha256 must be {'64' if 'file' in given else 'at least 8'} digits of 0-9 and a-f")
    return dict(given)


def _mapping(key: str) -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {key: text, "sha256": text},
        "required": [key, "sha256"],
        "additionalProperties": False,
    }


Weights = Annotated[
    str | dict[str, str] | None,
    PlainValidator(_weights),
    WithJsonSchema({"anyOf": [{"type": "string"}, _mapping("file"), _mapping("name"), {"type": "null"}]}),
]


@component
class Torchvision(Pretrained):
    """A classification network of torchvision without its last layer: frozen, under trained layers, or fine-tuned.

    Colours are normalised as in the weights' own transforms; with a file of weights, or with none, as for ImageNet.
    Dropout inside the network draws from the run's own stream, and no block is dropped at random. GoogLeNet, Inception
    v3 and SqueezeNet have no single last linear layer after their features, and are refused.

    Parameters:
        model: the network's name in `torchvision.models`.
        weights: the name of torchvision's weights for it, such as IMAGENET1K_V2: they are fetched on request
            (`msda-bench run --fetch`), never bundled, under their publisher's licence, and checked by the first digits
            of their sha256, which their address contains; {file: PATH, sha256: HEX}, a `state_dict` below a data
            folder; or none, for random ones, with trainable: all. A name becomes {name: NAME, sha256: DIGITS}, so that
            results of other weights are never mixed with these.
    """

    name = "torchvision"
    version = 1
    capturable: ClassVar[bool] = True

    model: Annotated[str, AfterValidator(headless.known)] = "resnet18"
    weights: Weights = "IMAGENET1K_V1"

    def __post_init__(self) -> None:
        """Refuses a network without features, unknown weights, and random features; adds the checksum to a name."""
        headless.width(self.model)
        if self.weights is None and self.trainable != "all":
            raise ValueError("features of random weights are useless: name weights, or set trainable: all")
        if isinstance(self.weights, str):
            object.__setattr__(self, "weights", {"name": self.weights, "sha256": self._published(self.weights)})
        elif self.weights is not None and "name" in self.weights:
            now = self._published(self.weights["name"])
            then = self.weights["sha256"]
            if now != then:
                raise ValueError(f"{self.weights['name']} has sha256 {now}... in this torchvision, not {then}")

    @property
    def width(self) -> int:
        """The input width of the network's last layer."""
        return headless.width(self.model)

    @property
    def learned(self) -> bool:
        """False without weights."""
        return self.weights is not None

    @property
    def files(self) -> tuple[File, ...]:
        """The file of weights, if there are any."""
        if not isinstance(self.weights, dict):
            return ()
        if "file" in self.weights:
            return (File(self.weights["file"], self.weights["sha256"], None, _SUPPLIED),)
        url = self._enum(self.weights["name"]).url
        name = PurePosixPath(urlsplit(url).path).name
        return (File(f"torchvision/{name}", self.weights["sha256"], None, Url((url,))),)

    def trunk(self, files: Files) -> nn.Module:
        """The network without its last layer.

        Raises:
            DataError: the file is missing, or does not contain weights of this network.
        """
        if not isinstance(self.weights, dict):
            return nn.Sequential(Normalise(), headless.drawn(self.model))
        module, layer, _ = headless.hollow(self.model)
        load_weights(module, files.path(self.files[0]), without=layer, renamed=_OLD_NAMES)
        if "file" in self.weights:
            return nn.Sequential(Normalise(), module)
        seen = self._enum(self.weights["name"]).transforms()
        return nn.Sequential(Normalise(seen.mean, seen.std), module)

    def embedding(self, input: InputSpec) -> Embedding | None:
        """As `Pretrained.embedding`.

        Raises:
            PluginError: the input is not a colour image, or of a size that the network does not accept.
        """
        embedded = super().embedding(input)
        height, width = input.shape[1:]
        why = headless.fault(self.model, height, width)
        if why is not None:
            raise PluginError(f"{self.model} does not accept images of {height} x {width}: {why}")
        return embedded

    def _enum(self, name: str) -> Any:
        return torchvision("models").get_model_weights(self.model)[name]

    def _published(self, name: str) -> str:
        """The first digits of the weights' sha256."""
        every = torchvision("models").get_model_weights(self.model).__members__
        headless.of_known(name, every, f"torchvision has no weights for {self.model} of the name")
        checksum = _HASH.search(url := self._enum(name).url)
        if checksum is None:
            raise ValueError(f"{name}: its address has no checksum, {url}; fetch it yourself and name the file")
        return checksum[1]
