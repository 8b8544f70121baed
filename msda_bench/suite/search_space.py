"""A search space: the values of each parameter, all candidates of a grid, and random draws."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, ClassVar, TypeAlias

import torch
from pydantic import PlainValidator, WithJsonSchema
from torch import Tensor

from msda_bench.functional import random
from msda_bench.suite.mistakes import Fault, Loc, hint, refusal, refuse_any, shown

RANGES = ("log", "uniform", "integers")
_ATTEMPTS = 64
"""Attempts for each candidate, since duplicates are drawn again."""


@dataclass(frozen=True)
class Values:
    """Plain JSON values as listed, all different and equally likely."""

    values: Sequence[Any]

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)

    @property
    def corners(self) -> tuple[tuple[Loc, Any], ...]:
        """Values that must be valid for all to be valid, each with its place below the dimension."""
        return tuple(((index,), value) for index, value in enumerate(self.values))

    def at(self, u: float) -> Any:
        """The value for a random number in [0, 1)."""
        return self.values[int(u * self.size)]


class Integers(Values):
    """Whole numbers of a range, possibly more than `len` supports."""

    @property
    def size(self) -> int:
        """The number of values."""
        return int(self.values[-1] - self.values[0]) + 1

    @property
    def corners(self) -> tuple[tuple[Loc, Any], ...]:
        """The ends."""
        return ((("integers", 0), self.values[0]), (("integers", 1), self.values[-1]))


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included: `log` (uniform in the logarithm) or `uniform`."""

    kind: str
    low: float
    high: float
    size: ClassVar[None] = None

    @property
    def corners(self) -> tuple[tuple[Loc, Any], ...]:
        """The ends."""
        return (((self.kind, 0), self.low), ((self.kind, 1), self.high))

    def at(self, u: float) -> float:
        """The value for a random number in [0, 1).

        It has four significant digits, so that it does not depend on the machine's logarithm.
        """
        if self.kind == "log":
            drawn = math.exp((1 - u) * math.log(self.low) + u * math.log(self.high))
        else:
            drawn = (1 - u) * self.low + u * self.high
        return min(max(float(f"{drawn:.4g}"), self.low), self.high)


Dimension: TypeAlias = Values | Range


def grid_size(space: Mapping[str, Dimension]) -> int | None:
    """The number of candidates of a space; None if it cannot be counted."""
    sizes = [dimension.size for dimension in space.values()]
    return None if None in sizes else math.prod(filter(None, sizes))


def grid(space: Mapping[str, Dimension]) -> list[dict[str, Any]]:
    """All candidates of a countable space, the last path varying fastest; an empty space has one without settings."""
    values = (dimension.values for dimension in space.values() if isinstance(dimension, Values))
    return [dict(zip(space, candidate, strict=True)) for candidate in product(*values)]


def draws(space: Mapping[str, Dimension], budget: int, owner: tuple[str, str]) -> list[dict[str, Any]]:
    """Different random candidates: those of a smaller budget are the first of a larger one's.

    Each path has its own counter-based stream, so draws depend only on the arguments; `owner` names the suite and the
    method. There are fewer than the budget if the space has no more.
    """
    size = grid_size(space)
    if size is not None and size <= budget:
        return grid(space)
    streams = [random.uniform(_key(*owner, path), (_ATTEMPTS * budget,)).tolist() for path in space]
    candidates: list[dict[str, Any]] = []
    for at in zip(*streams, strict=True):
        drawn = {path: dimension.at(u) for (path, dimension), u in zip(space.items(), at, strict=True)}
        if drawn not in candidates:
            candidates.append(drawn)
        if len(candidates) == budget:
            break
    return candidates


def shared_draws(
    space: Mapping[str, Dimension], own: Mapping[str, Dimension], budget: int, owner: tuple[str, str]
) -> Iterator[tuple[int, Iterator[dict[str, Any]]]]:
    """What each place 1, 2, ... among a method's candidates may hold, in the order in which it is tried.

    The points of the shared grid come in rounds, each a random order of all of them, drawn for the experiment, and so
    the same for all of its methods; those of the method's own grid likewise, drawn for the method. Place i tries the
    i-th shared point with the i-th own one and those after it. Places where none of these is new come once more, with
    the shared points after those of the budget.

    Args:
        space: the countable axes that the experiment's methods share.
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


def _dimension(raw: Any) -> Dimension:
    """Reads `[value, ...]`, `{log: [low, high]}`, `{uniform: [low, high]}` or `{integers: [low, high]}`."""
    if isinstance(raw, list):
        refuse_any(_wrong_values(raw))
        return Values(tuple(raw))
    if not isinstance(raw, dict) or len(raw) != 1:
        what = f"must be a list of values or a range such as {{log: [0.001, 0.1]}}, not {shown(raw)}"
        raise refusal(Fault((), what))
    ((kind, ends),) = raw.items()
    if kind not in RANGES:
        raise refusal(Fault((kind,), f"unknown kind of range{hint(str(kind), RANGES)}", "key"))
    if not isinstance(ends, list) or len(ends) != len(("low", "high")):
        raise refusal(Fault((kind,), f"must be the two ends [low, high], not {shown(ends)}"))
    refuse_any(_wrong_ends(kind, ends))
    return Integers(range(ends[0], ends[1] + 1)) if kind == "integers" else Range(kind, *ends)


def _wrong_values(raw: list[Any]) -> Iterator[Fault]:
    if not raw:
        yield Fault((), "must have at least one value")
    for index, value in enumerate(raw):
        if value in raw[:index]:
            yield Fault((index,), f"{shown(value)} is listed twice")
        if isinstance(value, dict):
            yield Fault((index,), f"must be a plain value, not {shown(value)}")


def _wrong_ends(kind: str, ends: list[Any]) -> Iterator[Fault]:
    wanted, allowed = ("a whole number", int) if kind == "integers" else ("a finite number", int | float)
    unusable = [
        Fault((kind, index), f"must be {wanted}, not {shown(end)}")
        for index, end in enumerate(ends)
        if isinstance(end, bool) or not isinstance(end, allowed) or not math.isfinite(end)
    ]
    if unusable:
        yield from unusable
    elif kind == "log" and ends[0] <= 0:
        yield Fault((kind, 0), f"must be greater than 0, not {shown(ends[0])}")
    elif ends[0] >= ends[1]:
        yield Fault((kind, 1), f"must be greater than the low end {shown(ends[0])}, not {shown(ends[1])}")


_ENDS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_SCHEMA = {
    "anyOf": [
        {"type": "array", "minItems": 1, "uniqueItems": True},
        {
            "type": "object",
            "properties": dict.fromkeys(RANGES, _ENDS),
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ]
}
SpaceDimension = Annotated[Dimension, PlainValidator(_dimension), WithJsonSchema(_SCHEMA)]
