"""Broken components, each with the clause that it breaks and the kit's message."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from msda_bench.api import Component, component

Fault = Mapping[str, Any] | Callable[..., Any]
Value = TypeVar("Value")


class Sin(NamedTuple):
    component: Component
    clause: str
    message: str


def sins(base: type, broken: Mapping[str, Mapping[str, Fault]]) -> list[Sin]:
    """By clause and message: the members in which a component that breaks it differs from `base`, a good one.

    A function stands for the member `spoil`, which turns what the good component gives into something else.
    """
    rows = [(clause, message, of) for clause, by_message in broken.items() for message, of in by_message.items()]
    return [Sin(_made(base, message, fault), clause, message) for clause, message, fault in rows]


def _made(base: type, message: str, fault: Fault) -> Component:
    name, members = f"Sin{len(globals())}", fault if isinstance(fault, Mapping) else {"spoil": staticmethod(fault)}
    cls = component(type(name, (base,), {"__doc__": message, "__module__": __name__, **members}))
    globals()[name] = cls  # where pickle finds it
    return cls()


class Reversed(torch.autograd.Function):
    """The usual reversal of a gradient, which torch.vmap refuses."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return -gradient


class Split(torch.autograd.Function):
    """One whose context is set up by itself, but that does not say how it is stacked."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:  # type: ignore[override]
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return -gradient


class Stacked(Split):
    """What the kit asks for."""

    generate_vmap_rule = True


def after(_: object, value: Value) -> Value:
    """The value, after something was done on the way."""
    return value


def drawing(value: Value, *_: object) -> Value:
    """The value, after a draw from a generator that all runs share."""
    return after(random.random(), value)


def batched(tensor: Tensor) -> bool:
    """Whether a tensor is one of a stack of runs."""
    found: bool = torch._C._functorch.is_batchedtensor(tensor)
    return found
