"""Frozen features: vectors of examples from a network that is not trained, computed once and kept in the cache."""

from __future__ import annotations

import hashlib
import json
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from msda_bench.api import Array, Dataset, DomainData, Files, Inputs, InputSpec, Rows
from msda_bench.data.files import LocalFiles
from msda_bench.errors import DataError, PluginError
from msda_bench.plugin_errors import package, package_of, plugin_errors
from msda_bench.plugins import Entry

if TYPE_CHECKING:
    import torch
    from torch import nn

    from msda_bench.api import Backbone, Embedding

_VERSION = 1
"""Raised when a change below changes the numbers."""
_TOGETHER = {"cpu": 16, "cuda": 256}
"""Examples in a forward pass; on the CPU, 64 were measured to take twice as long."""


@dataclass(frozen=True)
class Frozen:
    """The frozen part of a backbone, applied to a dataset's examples."""

    backbone: Backbone
    input: InputSpec
    embedding: Embedding

    @property
    def beside(self) -> int:
        """How many columns of the dataset's fitted features follow the vectors."""
        return self.input.beside if self.embedding.texts else 0

    @classmethod
    def of(cls, backbone: Backbone, dataset: Dataset) -> Frozen | None:
        """None if the whole backbone is trained.

        Raises:
            PluginError: the backbone does not support the input.
        """
        embedding = backbone.embedding(dataset.input)
        return None if embedding is None else cls(backbone, dataset.input, embedding)

    def features(self, data: DomainData, files: Files, device: str = "cpu") -> Array:
        """The vectors of a domain's examples; computed unless they are in the cache, and only then are examples read.

        On the CPU the bytes are the same for any number of processes.

        Args:
            data: the domain, as its dataset loads it: uint8, which is divided by 255, or float32; or with texts.
            files: the files that keep them.
            device: "cpu", "cuda" or "cuda:N"; each kind of GPU has features of its own in the cache.

        Returns:
            (n, width) float32, read-only, mapped into memory.

        Raises:
            DataError: the examples have another shape, the weights are missing or wrong, the backbone failed, or the
                cache cannot be written.
        """
        reads = self.embedding.texts
        x = self._texts(data) if reads else self._checked(data.x)
        named = None if reads else data.identity
        contents = hashlib.sha256(np.ascontiguousarray(x).data).hexdigest() if named is None else named
        examples = [contents, list(x.shape), str(x.dtype)]
        identity = [examples, self.embedding.identity, _VERSION, version("torch"), _kind(device)]
        cls = type(self.backbone)
        kind = device.partition(":")[0]
        options = {
            "backbone": f"{cls.__module__}:{cls.__qualname__}",
            "params": self.backbone.params(),
            "input": asdict(self.input),
            "dtype": str(x.dtype),
            "device": device,
            "identity": identity,
        }
        rows = Rows(
            f"{__name__}:embed",
            x,
            (self.embedding.width,),
            options,
            dtype="float32",
            together=_TOGETHER[kind],
            processes=None if kind == "cpu" else 1,
            doing="computing features",
        )
        return files.rows(json.dumps(["features", *identity]), rows)

    def _texts(self, data: DomainData) -> Array:
        """The texts as rows of UTF-8 bytes, filled up with zeros."""
        texts = data.x if data.texts is None else data.texts
        if not isinstance(texts, np.ndarray) or texts.dtype != object:
            raise DataError(f"backbone {self.backbone.name} reads texts, and the dataset gives none")
        contents = [text.encode(errors="replace") for text in texts]
        width = max([1, *map(len, contents)])
        filled_up = np.array(contents, f"S{width}")
        return filled_up.view(np.uint8).reshape(len(contents), width)

    def _checked(self, x: Inputs) -> Array:
        if not isinstance(x, np.ndarray) or x.dtype not in (np.uint8, np.float32):
            what = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
            raise DataError(f"backbone {self.backbone.name} computes features of uint8 or float32 examples, not {what}")
        if x.shape[1:] != self.input.shape:
            what = f"examples are kept as {x.shape[1:]} and seen by a network as {self.input.shape}"
            raise DataError(f"{what}; frozen features need them kept as they are seen, such as images without `crop`")
        return x


def embed(
    contents: Sequence[bytes],
    *,
    backbone: str,
    params: Mapping[str, Any],
    input: Mapping[str, Any],
    dtype: str,
    device: str,
    identity: object,  # noqa: ARG001 - so that rows of other examples have other options
) -> Array:
    """The vectors (n, width) float32 of examples of this dtype, from their bytes; runs in a separate process.

    Raises:
        PluginError: the backbone (`module:class`) cannot be used; one line reports why.
        DataError: its weights are missing or wrong, or its features are not finite.
    """
    import torch

    spec = InputSpec(**{**input, "shape": tuple(input["shape"])})
    with plugin_errors({package(backbone)}, f"backbone {backbone}"):
        module, width, texts = _module(backbone, json.dumps(params), spec, device)
        batch: torch.Tensor | list[str]
        if texts:
            batch = [content.rstrip(b"\0").decode() for content in contents]
        else:
            x = np.frombuffer(bytearray(b"".join(contents)), dtype).reshape(len(contents), *spec.shape)
            batch = _batch(x, device)
        with torch.no_grad():
            vectors: Array = module(batch).cpu().numpy()
    if vectors.shape != (len(contents), width) or vectors.dtype != np.float32:
        what = f"its embedding gave {vectors.dtype} of shape {vectors.shape} for {len(contents)} examples"
        raise PluginError(f"backbone {backbone}: {what}; the contract asks for float32 of ({len(contents)}, {width})")
    if not np.isfinite(vectors).all():
        raise DataError(f"backbone {backbone}: its features are not finite; correct its weights, or the network")
    return vectors


@cache
def _module(backbone: str, params: str, spec: InputSpec, device: str) -> tuple[nn.Module, int, bool]:
    """The module, its width, and whether it reads texts, once in each process."""
    import torch

    from msda_bench.api import Backbone

    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    cls = pkgutil.resolve_name(backbone)
    made = Entry(cls.kind, cls, package_of(cls), "").create(json.loads(params))
    assert isinstance(made, Backbone)  # noqa: S101 - it was one where it was asked for
    embedding = made.embedding(spec)
    if embedding is None:
        raise PluginError(f"backbone {backbone} returned an embedding at first and none later")
    module = embedding.module(LocalFiles(dataset=made.name)).eval().to(device)
    return module.to(memory_format=torch.channels_last), embedding.width, embedding.texts  # type: ignore[call-overload]


def _batch(x: Array, device: str) -> torch.Tensor:
    import torch

    images = torch.from_numpy(x).to(device)
    if images.dtype == torch.uint8:
        images = images.float().div(255)
    if images.ndim == len("NCHW"):
        images = images.contiguous(memory_format=torch.channels_last)
    return images


def _kind(device: str) -> str:
    if device == "cpu":
        return device
    import torch

    return torch.cuda.get_device_name(device)
