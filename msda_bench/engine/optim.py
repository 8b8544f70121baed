"""Optimisers over a run's parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from msda_bench.api import BagLinear, Phase
from msda_bench.engine.accelerate import can_compile, compiles_for
from msda_bench.engine.lazy_adadelta import LazyAdadelta
from msda_bench.layers.bag import bag_product
from msda_bench.suite.cell import Training


class _Optimizer(Protocol):
    def zero_grad(self) -> None: ...

    def step(self) -> object: ...


class Trainable(NamedTuple):
    """What an optimiser changes: parameters, and bag-of-words layers whose weight is updated word by word."""

    parameters: list[Tensor]
    bags: list[BagLinear]

    @classmethod
    def of(cls, module: nn.Module, training: Training, *, sparse: bool) -> Trainable:
        """A module's parameters.

        Args:
            module: a part of a model.
            training: the protocol.
            sparse: the examples are sparse rows; Adadelta then updates bag-of-words weights for just the words that
                occur.
        """
        lazy = sparse and training.optimizer == "adadelta"
        bags = [layer for layer in module.modules() if isinstance(layer, BagLinear)] if lazy else []
        apart = {id(bag.weight) for bag in bags}
        return cls([value for value in module.parameters() if id(value) not in apart], bags)


class PhaseOptimizers:
    """Optimisers such that each phase can train its parts (features, predictor, critic) and leave the others.

    Parts that the same phases train share an optimiser: with a scheme of one phase there is one for all.

    Args:
        training: the protocol.
        parts: what can be trained, by name.
        phases: the scheme's.
    """

    def __init__(self, training: Training, parts: Mapping[str, Trainable], phases: Sequence[Phase]) -> None:
        shared: dict[frozenset[str], list[Trainable]] = {}
        for name, part in parts.items():
            trained_in = frozenset(phase.name for phase in phases if name in phase.trains)
            shared.setdefault(trained_in, []).append(part)
        self._optimizers = {trained_in: list(_optimizers(training, group)) for trained_in, group in shared.items()}

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for optimizers in self._optimizers.values():
            for optimizer in optimizers:
                optimizer.zero_grad()

    def step(self, phase: Phase) -> None:
        """Updates the parts that a phase trains."""
        for phases, optimizers in self._optimizers.items():
            if phase.name in phases:
                for optimizer in optimizers:
                    optimizer.step()


def _optimizers(training: Training, parts: Sequence[Trainable]) -> Iterator[_Optimizer]:
    dense = [value for part in parts for value in part.parameters]
    compiled = [value for value in dense if _can_compile(training, value)]
    plain = [value for value in dense if not _can_compile(training, value)]
    if compiled:
        yield _compiled_adadelta(training, compiled)
    if plain:
        yield _dense(training, plain)
    for part in parts:
        for bag in part.bags:
            yield lazy_adadelta(bag, training)


def _can_compile(training: Training, parameter: Tensor) -> bool:
    if training.optimizer != "adadelta" or not compiles_for(parameter.device):
        return False
    from msda_bench.engine.compiled_adadelta import has_flat_view

    return has_flat_view(parameter) and parameter.dtype in {torch.float32, torch.float64}


def _compiled_adadelta(training: Training, parameters: list[Tensor]) -> _Optimizer:
    from msda_bench.engine.compiled_adadelta import CompiledAdadelta

    given = training.optimizer_params
    return CompiledAdadelta(parameters, given["lr"], given["rho"], given["eps"])


def _dense(training: Training, parameters: list[Tensor]) -> torch.optim.Optimizer:
    given = training.optimizer_params
    make: Callable[..., torch.optim.Optimizer]
    match training.optimizer:
        case "adadelta":
            make = functools.partial(torch.optim.Adadelta, rho=given["rho"], eps=given["eps"])
        case "adam":
            make = functools.partial(torch.optim.Adam, betas=(given["beta1"], given["beta2"]), eps=given["eps"])
        case "sgd":
            make = functools.partial(torch.optim.SGD, momentum=given["momentum"], weight_decay=given["weight_decay"])
        case unknown:
            raise ValueError(f"unknown optimizer {unknown!r}")
    return make(parameters, lr=given["lr"], foreach=True)


def lazy_adadelta(bag: BagLinear, training: Training) -> _Optimizer:
    """Lazy Adadelta of a layer's weight: compiled, or in plain torch where numba cannot be imported."""
    given = training.optimizer_params
    settings = given["lr"], given["rho"], given["eps"]
    if can_compile():
        from msda_bench.engine.compiled_bag import CompiledBag

        return CompiledBag(bag, *settings)
    bag.product = functools.partial(bag_product, sparse_gradient=True)
    return LazyAdadelta(bag.weight, *settings)
