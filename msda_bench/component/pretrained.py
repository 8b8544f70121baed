"""Networks that were trained on other data: their features as they are, under a head, or trained on."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from msda_bench.component.backbone import Backbone, Embedding, Network
from msda_bench.component.base import Count, Rate, component
from msda_bench.component.dataset import Files, InputSpec, Task
from msda_bench.errors import PluginError
from msda_bench.layers.dropout import Dropout

_IMAGE = ("channels", "height", "width")


class Trunk(nn.Module):
    """The pretrained part of a network that is trained on, whose learning rate a suite can lower (`lr_factors`).

    Args:
        trunk: the network.
        frozen_statistics: its batch normalisation uses the statistics that it came with, in training, too.
    """

    def __init__(self, trunk: nn.Module, *, frozen_statistics: bool) -> None:
        super().__init__()
        self.trunk, self._frozen = trunk, frozen_statistics

    def train(self, mode: bool = True) -> Trunk:  # noqa: FBT001, FBT002 - as torch has it
        """Training mode or not; frozen statistics stay in evaluation mode."""
        super().train(mode)
        if self._frozen:
            for module in self.trunk.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):  # noqa: SLF001 - the base of all, without a public name
                    module.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """The network's features."""
        found: Tensor = self.trunk(x)
        return found


@component
class Pretrained(Backbone):
    """A network that was trained on other images, and hidden layers with ReLU on top.

    Parameters that every pretrained backbone has:
        trainable: "none": the features are the network's own, computed once and kept, and only the linear predictor
            learns; "head": hidden layers learn, too; "all": the network itself is trained on (fine-tuning).
        hidden: widths of the hidden layers; there are none with "none".
        dropout: of every hidden layer's input.
        batch_norm: with "all", whether its layers keep the statistics that they came with, or learn new ones.
    """

    trainable: Literal["none", "head", "all"] = "head"
    hidden: tuple[Count, ...] = (256,)
    dropout: Rate = 0.5
    batch_norm: Literal["frozen", "train"] = "frozen"

    @property
    def stackable(self) -> bool:  # type: ignore[override]
        """A network that is trained on trains alone: one fills a device, and its layers are a stranger's."""
        return self.trainable != "all"

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers of the network's own features."""

    @abstractmethod
    def trunk(self, files: Files) -> nn.Module:
        """The network without its predictor, with its weights: (n, 3, height, width) in 0..1 to (n, width).

        It brings its own normalisation of colours. In evaluation mode no image's features depend on others.

        Raises:
            DataError: its weights are missing or are not what they should be.
        """

    def embedding(self, input: InputSpec) -> Embedding | None:
        """The network without its predictor, unless it is trained on.

        Raises:
            PluginError: the input is no colour image.
        """
        self._check(input)
        if self.trainable == "all":
            return None
        own = {name: value for name, value in self.identity().items() if name not in Pretrained.__dataclass_fields__}
        identity = json.dumps([self.name, self.version, own, [file.checksum for file in self.files]], sort_keys=True)
        return Embedding(identity, self.width, lambda files: self.trunk(files).eval())

    def build(self, task: Task, input: InputSpec) -> Network:
        """The layers above the network's features, without the network itself."""
        return self._on(nn.Identity(), self.width if self.trainable == "all" else math.prod(input.shape), task)

    def network(self, task: Task, input: InputSpec, files: Files) -> Network:
        """The network with the layers above it, or these alone where it is not trained."""
        if self.trainable != "all":
            return self.build(task, input)
        self._check(input)
        trunk = Trunk(self.trunk(files), frozen_statistics=self.batch_norm == "frozen")
        return self._on(trunk, self.width, task)

    def _on(self, trunk: nn.Module, width: int, task: Task) -> Network:
        widths = [width, *(() if self.trainable == "none" else self.hidden)]
        layers = [
            layer
            for narrow, wide in pairwise(widths)
            for layer in (Dropout(self.dropout), nn.Linear(narrow, wide), nn.ReLU())
        ]
        return Network(nn.Sequential(trunk, *layers), nn.Linear(widths[-1], task.outputs), widths[-1])

    def _check(self, input: InputSpec) -> None:
        if len(input.shape) != len(_IMAGE) or input.shape[0] != len("RGB") or input.sparse:
            raise PluginError(f"backbone {self.name} needs images (3, height, width), not input of shape {input.shape}")
