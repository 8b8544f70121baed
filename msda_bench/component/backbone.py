"""Backbones: the network that all methods of an experiment share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from torch import nn

from msda_bench.component.base import Component
from msda_bench.component.dataset import InputSpec, Task
from msda_bench.component.files import File, Files


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
