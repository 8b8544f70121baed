"""Broken components, each with the clause that it breaks and the kit's message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from msda_bench.api import Component, component

Members = Mapping[str, Any]
Value = TypeVar("Value")


class Sin(NamedTuple):
    component: Component
    clause: str
    message: str


def sins(base: type, broken: Mapping[str, Mapping[str, Members]]) -> list[Sin]:
    """By clause and message: the members in which a component that breaks it differs from `base`, a good one."""
    rows = [(clause, message, of) for clause, by_message in broken.items() for message, of in by_message.items()]
    return [Sin(_made(base, message, members), clause, message) for clause, message, members in rows]


def _made(base: type, message: str, members: Members) -> Component:
    name = f"Sin{len(globals())}"
    cls = component(type(name, (base,), {"__doc__": message, "__module__": __name__, **members}))
    globals()[name] = cls  # where pickle finds it
    return cls()


def after(_: object, value: Value) -> Value:
    """The value, after something was done on the way."""
    return value


def batched(tensor: Tensor) -> bool:
    """Whether a tensor is one of a stack of runs."""
    found: bool = torch._C._functorch.is_batchedtensor(tensor)
    return found
