"""Optimisers over a run's parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch
from torch import nn

from msda_bench.api import BagLinear, Phase
from msda_bench.engine.accelerate import can_compile, compiles_for
from msda_bench.engine.lazy_adadelta import LazyAdadelta
from msda_bench.engine.model import Model
from msda_bench.layers.bag import bag_product
from msda_bench.suite.cell import Training


class _Optimizer(Protocol):
    def zero_grad(self) -> None: ...

    def step(self) -> object: ...


class PhaseOptimizers:
    """Optimisers such that each phase can train its parts (features, predictor, critic) and leave the others.

    Parts that the same phases train share an optimiser: with a scheme of one phase there is one for all.

    Args:
        training: the protocol.
        model: whose parts are trained.
        phases: the scheme's.
        sparse: the examples are sparse rows; Adadelta then updates bag-of-words weights for just the words that occur.
    """

    def __init__(self, training: Training, model: Model, phases: Sequence[Phase], *, sparse: bool) -> None:
        parts: dict[frozenset[str], list[nn.Module]] = {}
        for name, part in model.modules.items():
            trained_in = frozenset(phase.name for phase in phases if name in phase.trains)
            parts.setdefault(trained_in, []).append(part)
        lazy = sparse and training.optimizer == "adadelta"
        self._optimizers = {
            phases_of: list(_optimizers(training, shared, lazy=lazy)) for phases_of, shared in parts.items()
        }

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


def _optimizers(training: Training, parts: Sequence[nn.Module], *, lazy: bool) -> Iterator[_Optimizer]:
    bags = [module for part in parts for module in part.modules() if isinstance(module, BagLinear)] if lazy else []
    apart = {id(bag.weight) for bag in bags}
    dense = [value for part in parts for value in part.parameters() if id(value) not in apart]
    compiled = [value for value in dense if _can_compile(training, value)]
    plain = [value for value in dense if not _can_compile(training, value)]
    if compiled:
        yield _compiled_adadelta(training, compiled)
    if plain:
        yield _dense(training, plain)
    for bag in bags:
        yield lazy_adadelta(bag, training)


def _can_compile(training: Training, parameter: nn.Parameter) -> bool:
    if training.optimizer != "adadelta" or not compiles_for(parameter.device):
        return False
    from msda_bench.engine.compiled_adadelta import has_flat_view

    return has_flat_view(parameter) and parameter.dtype in {torch.float32, torch.float64}


def _compiled_adadelta(training: Training, parameters: list[nn.Parameter]) -> _Optimizer:
    from msda_bench.engine.compiled_adadelta import CompiledAdadelta

    given = training.optimizer_params
    return CompiledAdadelta(parameters, given["lr"], given["rho"], given["eps"])


def _dense(training: Training, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
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
