"""A search space: the values of each parameter, all candidates of a grid, and random draws."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, TypeAlias

import torch
from pydantic import PlainValidator, WithJsonSchema
from torch import Tensor

from msda_bench.functional import random
from msda_bench.suite.mistakes import Fault, refusal, refuse_any, shown

Space: TypeAlias = Mapping[str, tuple[Any, ...]]
"""The values of each parameter, by its path."""
_ATTEMPTS = 64
"""Attempts for each candidate, since duplicates are drawn again."""


def grid_size(space: Space) -> int:
    """The number of candidates of a space."""
    return math.prod(map(len, space.values()))


def grid(space: Space) -> list[dict[str, Any]]:
    """All candidates of a space, the last path varying fastest; an empty space has one without settings."""
    return [dict(zip(space, candidate, strict=True)) for candidate in product(*space.values())]


def draws(space: Space, budget: int, owner: tuple[str, str]) -> list[dict[str, Any]]:
    """Different random candidates: those of a smaller budget are the first of a larger one's.

    Each path has its own counter-based stream, so draws depend only on the arguments; `owner` names the suite and the
    method. There are fewer than the budget if the space has no more.
    """
    if grid_size(space) <= budget:
        return grid(space)
    streams = [random.uniform(_key(*owner, path), (_ATTEMPTS * budget,)).tolist() for path in space]
    candidates: list[dict[str, Any]] = []
    for at in zip(*streams, strict=True):
        drawn = {path: values[int(u * len(values))] for (path, values), u in zip(space.items(), at, strict=True)}
        if drawn not in candidates:
            candidates.append(drawn)
        if len(candidates) == budget:
            break
    return candidates


def shared_draws(
    space: Space, own: Space, budget: int, owner: tuple[str, str]
) -> Iterator[tuple[int, Iterator[dict[str, Any]]]]:
    """What each place 1, 2, ... among a method's candidates may hold, in the order in which it is tried.

    The points of the shared grid come in rounds, each a random order of all of them, drawn for the experiment, and so
    the same for all of its methods; those of the method's own grid likewise, drawn for the method. Place i tries the
    i-th shared point with the i-th own one and those after it. Places where none of these is new come once more, with
    the shared points after those of the budget.

    Args:
        space: the axes that the experiment's methods share.
        own: those of the method alone.
        budget: the number of candidates, the first included.
        owner: the names of the experiment and the method.
    """
    shared = _rounds(grid(space), budget, "shared", owner[0])
    mine = _rounds(grid(own), budget, "shared", *owner)
    for points in ([[point] for point in shared[: budget - 1]], [shared[budget - 1 :]] * (budget - 1)):
        for place, tried in enumerate(points):
            ways = mine[place:] + mine[:place]
            yield place + 1, (point | way for point, way in product(tried, ways))


def _rounds(points: Sequence[dict[str, Any]], budget: int, *purpose: str) -> list[dict[str, Any]]:
    """All points in a random order, and again in others; enough for a budget, and a whole round after it."""
    size = len(points)
    rounds = -(-budget // size) + 1
    drawn = random.uniform(_key(*purpose), (rounds, size)).tolist()
    return [points[place] for numbers in drawn for place in sorted(range(size), key=numbers.__getitem__)]


def _key(*purpose: str) -> Tensor:
    digest = hashlib.sha256(json.dumps(["search", *purpose]).encode()).digest()
    halves = [int.from_bytes(digest[at : at + 4], "big", signed=True) for at in (0, 4)]
    return torch.tensor(halves, dtype=torch.int32)


def _values(raw: Any) -> tuple[Any, ...]:
    """Reads `[value, ...]`."""
    if not isinstance(raw, list):
        raise refusal(Fault((), f"must be a list of values such as [0.001, 0.1], not {shown(raw)}"))
    refuse_any(_wrong_values(raw))
    return tuple(raw)


def _wrong_values(raw: list[Any]) -> Iterator[Fault]:
    if not raw:
        yield Fault((), "must have at least one value")
    for index, value in enumerate(raw):
        if value in raw[:index]:
            yield Fault((index,), f"{shown(value)} is listed twice")
        if isinstance(value, dict):
            yield Fault((index,), f"must be a plain value, not {shown(value)}")


_SCHEMA = {"type": "array", "minItems": 1, "uniqueItems": True}
Values = Annotated[tuple[Any, ...], PlainValidator(_values), WithJsonSchema(_SCHEMA)]
"""Of one parameter: plain JSON values, all different and equally likely."""
