"""Pretrained networks: frozen, with trained layers on top, or fine-tuned."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from itertools import pairwise
from typing import Annotated, Literal

from torch import Tensor, nn

from msda_bench.component.backbone import Backbone, Embedding, Network
from msda_bench.component.base import Added, Count, Rate, component
from msda_bench.component.dataset import InputSpec, Task
from msda_bench.component.files import Files
from msda_bench.errors import PluginError
from msda_bench.layers.norm import Norm, last_layer, norm_layers
from msda_bench.layers.step_key import Dropout

_IMAGE = ("channels", "height", "width")


class Trunk(nn.Module):
    """The pretrained part of a fine-tuned network, whose learning rate a suite can lower (`lr_factors`).

    Args:
        trunk: the network.
        frozen_statistics: whether its batch normalisation keeps its original statistics in training.
        pretrained: whether it holds weights, which `fresh_copy` then keeps.
    """

    def __init__(self, trunk: nn.Module, *, frozen_statistics: bool, pretrained: bool) -> None:
        super().__init__()
        self.trunk, self._frozen, self.pretrained = trunk, frozen_statistics, pretrained

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
    norm: Annotated[Norm, Added()] = "none"
    bottleneck: Annotated[Count | None, Added()] = None
    weight_norm: Annotated[bool, Added()] = False

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
        params = {name: value for name, value in self.identity().items() if name not in Pretrained.__dataclass_fields__}
        identity = json.dumps([self.name, self.version, params, [file.checksum for file in self.files]], sort_keys=True)
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
        layers = [
            layer
            for narrow, wide in pairwise(widths)
            for layer in (Dropout(self.dropout), nn.Linear(narrow, wide), *norm_layers(self.norm, wide), nn.ReLU())
        ]
        width = widths[-1]
        if self.bottleneck is not None:
            layers += [nn.Linear(width, self.bottleneck), *norm_layers(self.norm, self.bottleneck)]
            width = self.bottleneck
        return Network(
            nn.Sequential(trunk, *layers), last_layer(width, task.outputs, weight_norm=self.weight_norm), width
        )

    def _check(self, input: InputSpec) -> None:
        if len(input.shape) != len(_IMAGE) or input.shape[0] != len("RGB") or input.sparse:
            raise PluginError(f"backbone {self.name} needs images (3, height, width), not input of shape {input.shape}")
