"""Optimisers over a run's parts."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import nn

from msda_bench.api import BagLinear
from msda_bench.engine.lazy_adadelta import LazyAdadelta
from msda_bench.engine.model import Model
from msda_bench.layers.bag import bag_product
from msda_bench.suite.cell import Training


class _Optimizer(Protocol):
    def zero_grad(self) -> None: ...

    def step(self) -> object: ...


class PartOptimizers:
    """One optimiser a part (features, predictor, critic), so that a phase can train some and leave the others.

    Args:
        training: the protocol.
        model: whose parts are trained.
        sparse: the examples are sparse rows; Adadelta then updates bag-of-words weights for just the words that occur.
    """

    def __init__(self, training: Training, model: Model, *, sparse: bool) -> None:
        lazy = sparse and training.optimizer == "adadelta"
        self._by_part: dict[str, list[_Optimizer]] = {}
        for name, part in model.modules.items():
            bags = [module for module in part.modules() if isinstance(module, BagLinear)] if lazy else []
            apart = {id(bag.weight) for bag in bags}
            dense = [value for value in part.parameters() if id(value) not in apart]
            optimizers: list[_Optimizer] = [_dense(training, dense)] if dense else []
            self._by_part[name] = optimizers + [lazy_adadelta(bag, training) for bag in bags]

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for optimizers in self._by_part.values():
            for optimizer in optimizers:
                optimizer.zero_grad()

    def step(self, parts: Iterable[str]) -> None:
        """Updates the named parts."""
        for part in parts:
            for optimizer in self._by_part[part]:
                optimizer.step()


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
    if has_compiled_bags():
        from msda_bench.engine.compiled_bag import CompiledBag

        return CompiledBag(bag, *settings)
    bag.product = functools.partial(bag_product, sparse_gradient=True)
    return LazyAdadelta(bag.weight, *settings)


@functools.cache
def has_compiled_bags() -> bool:
    """Whether numba is here, and able to compile the loops over bags of words."""
    try:
        importlib.import_module("msda_bench.engine.bag_kernels")
    except (ImportError, RuntimeError):  # RuntimeError: numba found no folder to cache in
        return False
    return True
