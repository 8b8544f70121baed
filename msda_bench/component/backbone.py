"""Backbones: the network that all methods of an experiment share; pretrained ones, and weights from files."""

from __future__ import annotations

import json
import math
import pickle
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from msda_bench.component.base import AddedLater, Component, Count, Rate, component
from msda_bench.component.domain_data import InputSpec
from msda_bench.component.files import File, Files
from msda_bench.component.task import Task
from msda_bench.errors import DataError, PluginError, message_of
from msda_bench.layers.norm import Norm, last_layer, norm_layers
from msda_bench.layers.step_key import Dropout

_IMAGE = ("channels", "height", "width")
_MOST = 3
"""The maximum number of wrong names that a message shows."""
_BOOKKEEPING = "num_batches_tracked"
"""Buffers that no computation here uses, and that files of old versions of torch do not have."""


class Network(NamedTuple):
    """A feature extractor h_fea and a label predictor h_y (paper, section 3.2), with the width between them.

    Attributes:
        features: maps a batch (n, *shape), or `SparseRows`, to features (n, feature_dim).
        predictor: maps features (n, feature_dim) to outputs (n, task.outputs).
        feature_dim: width of the features.
    """

    features: nn.Module
    predictor: nn.Module
    feature_dim: int


class Embedding(NamedTuple):
    """A fixed map of examples to vectors, so that each example's vector is computed once and kept in the cache.

    Attributes:
        identity: changes whenever a vector does: it names the weights, the preprocessing and the version.
        width: of a vector.
        module: the map, in evaluation mode: from (n, *shape) float32, bytes divided by 255, to (n, width) float32.
            An example's vector must not depend on the others.
        texts: whether the module maps a list of n texts instead, those of `DomainData.texts`.
    """

    identity: str
    width: int
    module: Callable[[Files], nn.Module]
    texts: bool = False


def network_input(backbone: Backbone, input: InputSpec) -> InputSpec:
    """The input that `Backbone.build` gets for a dataset's input: vectors if the backbone has an embedding."""
    embedding = backbone.embedding(input)
    if embedding is None:
        return input
    return InputSpec((embedding.width + (input.beside if embedding.texts else 0),))


class Backbone(Component, ABC):
    """Builds the network for a task and an input.

    Modules are built on the CPU with torch's global generator seeded for the cell by the caller; randomness during
    training comes from `msda_bench.api.Dropout` or another `StepKey`, never from torch's global generator.
    """

    kind: ClassVar[str] = "backbone"

    @property
    def files(self) -> tuple[File, ...]:
        """The files that hold its weights; none unless overridden."""
        return ()

    def embedding(self, input: InputSpec) -> Embedding | None:
        """The frozen part of the network, if it comes first; None unless overridden.

        The engine then applies it to the dataset's examples instead of the dataset's `fit`, and gives `build` an
        input of shape (width,). Where it reads texts, the fitted columns beside them (`InputSpec.beside`) follow.

        Raises:
            PluginError: the backbone does not support the input.
        """
        return None

    @abstractmethod
    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The two modules, float32, on the CPU.

        Args:
            task: the task.
            input: the input of the network.
            files: how to reach `self.files`; None if the modules that they hold may be left out.

        Raises:
            DataError: a file is missing or wrong.
            PluginError: the backbone does not support the input.
        """


class Trunk(nn.Module):
    """The pretrained part of a fine-tuned network, whose learning rate a suite can lower (`lr_factors`).

    Args:
        trunk: the network.
        frozen_statistics: whether its batch normalisation keeps its original statistics in training.
        pretrained: whether it holds weights, which `fresh_copy` then keeps.
    """

    def __init__(self, trunk: nn.Module, *, frozen_statistics: bool, pretrained: bool) -> None:
        super().__init__()
        self.trunk = trunk
        self._frozen = frozen_statistics
        self.pretrained = pretrained

    def train(self, mode: bool = True) -> Trunk:  # noqa: FBT001, FBT002 - as torch has it
        """Sets the training mode; frozen statistics stay in evaluation mode."""
        super().train(mode)
        if self._frozen:
            for module in self.trunk.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):  # noqa: SLF001 - the base of all, without a public name
                    module.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """The network's features."""
        features: Tensor = self.trunk(x)
        return features


@component
class Pretrained(Backbone):
    """A network pretrained on other images, with hidden ReLU layers on top.

    Parameters that every pretrained backbone has:
        trainable: "none": the network's features are computed once and kept, and only the linear predictor learns;
            "head": hidden layers learn, too; "all": the network itself is fine-tuned.
        hidden: widths of the hidden layers; empty with "none".
        dropout: of every hidden layer's input.
        batch_norm: with "all", whether its layers keep their original statistics or learn new ones.
        norm: of the hidden layers, before their ReLU; see `msda_bench.api.norm_layers`.
        bottleneck: width of a last linear layer with `norm` and without ReLU, as in SHOT's network; null for none.
        weight_norm: whether the predictor's weight has lengths and directions of its own, as in SHOT's network.
    """

    trainable: Literal["none", "head", "all"] = "head"
    hidden: tuple[Count, ...] = (256,)
    dropout: Rate = 0.5
    batch_norm: Literal["frozen", "train"] = "frozen"
    norm: Annotated[Norm, AddedLater()] = "none"
    bottleneck: Annotated[Count | None, AddedLater()] = None
    weight_norm: Annotated[bool, AddedLater()] = False

    @property
    def stackable(self) -> bool:  # type: ignore[override]
        """False for a fine-tuned network: one fills a device, and its layers are third-party code."""
        return self.trainable != "all"

    @property
    def learned(self) -> bool:
        """Whether `trunk` holds weights learned elsewhere, which copies of the network keep; True unless overridden."""
        return True

    @property
    @abstractmethod
    def width(self) -> int:
        """Width of the network's own features."""

    @abstractmethod
    def trunk(self, files: Files) -> nn.Module:
        """The network without its predictor, with its weights: (n, 3, height, width) in 0..1 to (n, width).

        It includes the normalisation of colours. In evaluation mode an image's features do not depend on other images.

        Raises:
            DataError: its weights are missing or wrong.
        """

    def embedding(self, input: InputSpec) -> Embedding | None:
        """The network without its predictor, unless it is fine-tuned.

        Raises:
            PluginError: the input is not a colour image.
        """
        self._check(input)
        if self.trainable == "all":
            return None
        own = self.identity()
        params = {name: value for name, value in own.items() if name not in Pretrained.__dataclass_fields__}
        checksums = [file.checksum for file in self.files]
        identity = json.dumps([self.name, self.version, params, checksums], sort_keys=True)
        return Embedding(identity, self.width, lambda files: self.trunk(files).eval())

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The network with the layers above it, or only these if it is frozen or without files."""
        trunk: nn.Module = nn.Identity()
        if self.trainable == "all" and files is not None:
            self._check(input)
            frozen = self.batch_norm == "frozen"
            trunk = Trunk(self.trunk(files), frozen_statistics=frozen, pretrained=self.learned)
        width = self.width if self.trainable == "all" else math.prod(input.shape)
        widths = [width, *(() if self.trainable == "none" else self.hidden)]
        layers: list[nn.Module] = [trunk]
        for narrow, wide in pairwise(widths):
            layers += [Dropout(self.dropout), nn.Linear(narrow, wide), *norm_layers(self.norm, wide), nn.ReLU()]
        width = widths[-1]
        if self.bottleneck is not None:
            layers += [nn.Linear(width, self.bottleneck), *norm_layers(self.norm, self.bottleneck)]
            width = self.bottleneck
        predictor = last_layer(width, task.outputs, weight_norm=self.weight_norm)
        return Network(nn.Sequential(*layers), predictor, width)

    def _check(self, input: InputSpec) -> None:
        if len(input.shape) != len(_IMAGE) or input.shape[0] != len("RGB") or input.sparse:
            raise PluginError(f"backbone {self.name} needs images (3, height, width), not input of shape {input.shape}")


def load_weights(
    module: nn.Module,
    path: Path,
    *,
    without: str | None = None,
    renamed: tuple[str, str] = ("", ""),
) -> None:
    """Gives a module the weights of a file that `torch.save` wrote, by name; no code in the file is run.

    Args:
        module: all of its parameters and buffers must be in the file, in the same shapes; they take the file's values,
            in float32 on the CPU, and may be on the device "meta" until then.
        path: a checked file.
        without: the name of a layer, or its start, that the file may contain and the module does not have.
        renamed: a regular expression and its replacement in the file's names.

    Raises:
        DataError: the file is damaged, contains something else than weights, or the weights of another network.
    """
    weights = _read(path)
    for name in [*weights]:
        value = weights.pop(name)
        if without is None or not name.startswith(f"{without}."):
            weights[re.sub(*renamed, name) if renamed[0] else name] = value
    wanted = module.state_dict()
    for name in wanted:
        if name.endswith(_BOOKKEEPING):
            weights[name] = weights.get(name, torch.zeros(())).long()
    if wrong := "; ".join(_differences(wanted, weights)):
        raise DataError(f"{path}: not the weights of this network: {wrong}; name the network of these weights")
    # After the shapes were compared: a small file can hold a view of one number that is as large as memory.
    for name, value in weights.items():
        if value.is_floating_point():
            weights[name] = value.float().contiguous()
    module.load_state_dict(weights, assign=True)


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file() or not path.stat().st_size:
        raise DataError(f"{path}: {'empty (0 bytes)' if path.is_file() else 'not a file'}; name a file of weights")
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise DataError(
            f"{path}: holds no weights, or code as well, which is never run; save a network's `state_dict()` alone"
        ) from None
    except Exception as error:  # noqa: BLE001 - torch's readers may raise anything on damaged bytes
        raise DataError(
            f"{path}: cannot be read as weights: {message_of(error).partition('. ')[0]}; replace it"
        ) from None
    if isinstance(content, dict) and all(isinstance(name, str) and _is_plain(content[name]) for name in content):
        return content
    names = f" with {_some(map(str, content))}" if isinstance(content, dict) else ""
    raise DataError(
        f"{path}: holds a {type(content).__name__}{names}, not weights by name; save a `state_dict()` alone"
    )


def _is_plain(value: object) -> bool:
    """Whether it is a tensor with a number for each place; other kinds would fail in training."""
    if not isinstance(value, Tensor):
        return False
    return value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized


def _differences(wanted: dict[str, Tensor], given: dict[str, Tensor]) -> Iterator[str]:
    shapes = []
    kinds = []
    for name, value in wanted.items():
        if name not in given:
            continue
        other = given[name]
        if other.shape != value.shape:
            shapes.append(f"{name} {tuple(other.shape)}, not {tuple(value.shape)}")
        if other.is_floating_point() != value.is_floating_point():
            kinds.append(f"{name} {other.dtype}")
    faults = {
        "missing": [name for name in wanted if name not in given],
        "not in the network": [name for name in given if name not in wanted],
        "of another shape": shapes,
        "of another kind": kinds,
    }
    for what, names in faults.items():
        if names:
            yield f"{len(names)} {what} ({_some(names)})"


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    shown = listed[:_MOST]
    if len(listed) > _MOST:
        shown.append("...")
    return ", ".join(shown)
