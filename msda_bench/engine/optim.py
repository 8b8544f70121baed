"""Optimisers over a run's parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import torch
from torch import nn

from msda_bench.engine.lazy_adadelta import LazyAdadelta
from msda_bench.engine.model import Model
from msda_bench.suite.cell import Training

_Any: TypeAlias = torch.optim.Optimizer | LazyAdadelta


class PartOptimizers:
    """One optimiser a part (features, predictor, critic), so that a phase can train some and leave the others.

    Args:
        training: the protocol.
        model: whose parts are trained.
        lazy: the examples are sparse rows; under Adadelta, bag-of-words weights then update just the words that occur.
    """

    def __init__(self, training: Training, model: Model, *, lazy: bool) -> None:
        lazy = lazy and training.optimizer == "adadelta"
        rows = {id(bag.weight) for bag in model.bags} if lazy else set()
        for bag in model.bags:
            bag.sparse_gradient = lazy
        self._modules = model.modules
        self._by_part: dict[str, list[_Any]] = {}
        for name, part in model.modules.items():
            dense = [value for value in part.parameters() if id(value) not in rows]
            sparse = [value for value in part.parameters() if id(value) in rows]
            self._by_part[name] = [*_dense(training, dense), *_lazy(training, sparse)]

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for parameter in self._modules.parameters():
            parameter.grad = None

    def step(self, parts: Iterable[str]) -> None:
        """Updates the named parts."""
        for part in parts:
            for optimizer in self._by_part[part]:
                optimizer.step()


def _dense(training: Training, parameters: list[nn.Parameter]) -> list[torch.optim.Optimizer]:
    if not parameters:
        return []
    given = training.optimizer_params
    match training.optimizer:
        case "adadelta":
            return [torch.optim.Adadelta(parameters, lr=given["lr"], rho=given["rho"], eps=given["eps"], foreach=True)]
        case "adam":
            betas = (given["beta1"], given["beta2"])
            return [torch.optim.Adam(parameters, lr=given["lr"], betas=betas, eps=given["eps"], foreach=True)]
        case "sgd":
            momentum, decay = given["momentum"], given["weight_decay"]
            return [torch.optim.SGD(parameters, lr=given["lr"], momentum=momentum, weight_decay=decay, foreach=True)]
        case unknown:
            raise ValueError(f"unknown optimizer {unknown!r}")


def _lazy(training: Training, parameters: list[nn.Parameter]) -> list[LazyAdadelta]:
    given = training.optimizer_params
    return [LazyAdadelta(weight, given["lr"], given["rho"], given["eps"]) for weight in parameters]
