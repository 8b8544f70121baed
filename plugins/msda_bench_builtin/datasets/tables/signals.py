"""Signals in an array: which axis is time, series of unequal length, and how channels are standardised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from msda_bench.api import Array
from msda_bench.functional import standardiser
from msda_bench_builtin.datasets.tables.columns import Standardise

Signals: TypeAlias = Literal["none", "channels_first", "channels_last"]
"""Whether rows are signals, and where their axis of channels is; the other axis is time."""
_LONGER = 3
"""Time has at least so many times more steps than there are channels, unless the user says which axis it is."""
_SMOOTHER = 0.5
"""An axis along which neighbours differ by less than this part of what they do along the other one may be time."""
_STEPS = 250
"""The maximum number of places of a first convolution in a first suite."""
_ROWS = 200
"""So many rows, evenly spaced, are looked at."""


def oriented(x: Array, signals: Signals) -> Array:
    """Signals as (n, channels, time); rows (n, time) have one channel."""
    if signals == "none":
        return x
    if x.ndim == len(("row", "time")):
        return x[:, None]
    return np.moveaxis(x, 2, 1) if signals == "channels_last" else x


class Guess(NamedTuple):
    """How rows (n, a, b) may be meant: `signals`, and if that is in doubt, why."""

    signals: Signals
    doubt: str = ""


def guessed(x: Array) -> Guess:
    """Which axis of rows (n, a, b) is time: the one padded with NaN, or else one that is by far the longer."""
    ways: dict[int, Signals] = {1: "channels_last", 2: "channels_first"}
    padded = padded_axes(np.isnan(x)) if x.dtype.kind == "f" else []
    if len(padded) == 1:
        return Guess(ways[padded[0]])
    first, second = x.shape[1:]
    longer, shorter = (1, 2) if first > second else (2, 1)
    if x.shape[longer] < _LONGER * x.shape[shorter]:
        return Guess("none", f"{first} and {second} are too near to tell time from channels")
    some = x[:: max(1, len(x) // _ROWS)].astype(np.float64)
    if _roughness(some, shorter) < _SMOOTHER * _roughness(some, longer):
        return Guess("none", f"neighbours along the shorter axis, of {x.shape[shorter]}, are more alike")
    return Guess(ways[longer])


def _roughness(x: Array, axis: int) -> float:
    """The mean squared difference of neighbours, as a part of that of any two numbers along the axis."""
    spread = (x - _mean(x, axis)) ** 2
    steps = np.diff(x, axis=axis) ** 2
    known = np.isfinite(steps)
    variance = _mean(spread, (0, 1, 2)).item()
    if not known.any() or variance == 0:
        return 1.0
    return float(steps[known].mean() / (2 * variance))


def _mean(x: Array, axis: int | tuple[int, ...]) -> Array:
    """The mean over known numbers along axes, which stay with size 1; 0 where none is known."""
    known = np.isfinite(x)
    total = np.where(known, x, 0).sum(axis, keepdims=True)
    mean: Array = total / np.maximum(known.sum(axis, keepdims=True), 1)
    return mean


def signals_in(x: Array) -> str:
    """The size of signals (n, channels, time), and how much is missing, in words."""
    channels, time = x.shape[1:]
    size = f"{channels} channel{'' if channels == 1 else 's'} at {time} times in each row"
    missing = 100 * np.isnan(x).mean() if x.dtype.kind == "f" else 0
    if not missing:
        return size
    known: Array = np.asarray(np.isfinite(x).any(1))
    lengths = time - np.argmax(known[:, ::-1], axis=1)
    if lengths.min() < time:
        size += f", padded series of {lengths.min()} to {lengths.max()} times"
    return f"{size}, {missing:.2g} % of the numbers missing"


def network_for(x: Array) -> dict[str, dict[str, Any]]:
    """A small network for signals (n, channels, time), as a suite names it; of long ones it skips some steps."""
    settings: dict[str, Any] = {"channels": [32, 64]}
    stride = -(-x.shape[2] // _STEPS)
    if stride > 1:
        settings["stride"] = stride
    return {"convnet1d": settings | {"norm": "batch"}}


def padded_axes(gaps: Array) -> list[int]:
    """The axes along which gaps (n, ...) lie only at the ends, or only at the beginnings; none if a row is all gaps."""
    if not gaps.any() or gaps.all(tuple(range(1, gaps.ndim))).any():
        return []
    return [axis for axis in range(1, gaps.ndim) if _is_padding(np.moveaxis(gaps, axis, -1))]


def _is_padding(gaps: Array) -> bool:
    """Whether gaps lie only at the ends of the last axis, or only at its beginnings."""
    before = gaps[..., :-1]
    after = gaps[..., 1:]
    if (before == after).all():
        return False
    return bool((before <= after).all() or (before >= after).all())


def fitted(
    train: Mapping[str, Array],
    sources: Mapping[str, Array],
    how: Standardise,
    *,
    gaps: bool,
) -> Callable[[str, Array], Array]:
    """Learns from training rows (n, channels, time) how signals become numbers, (n, channels or twice as many, time).

    Each channel has one mean and one variance over rows and time, in which gaps do not count. With gaps, a missing
    number becomes the channel's mean, and as many channels more say which numbers are known.
    """
    if how == "none":
        rows = np.concatenate([*sources.values()]).astype(np.float64)
        centres = _mean(rows, (0, 2))[0]
    else:
        centres = np.zeros((1, 1))
    return partial(_features, _mover(train, sources, how), centres if gaps else None)


def _features(moved: Callable[[str, Array], Array], centres: Array | None, domain: str, rows: Array) -> Array:
    """Signals as numbers; with gaps, which are at their channel's centre, and with what says which are known."""
    made = moved(domain, rows)
    if centres is None:
        return made
    known = np.isfinite(rows)
    return np.concatenate([np.where(known, made, centres), known], axis=1, dtype=np.float32)


def _mover(train: Mapping[str, Array], sources: Mapping[str, Array], how: Standardise) -> Callable[[str, Array], Array]:
    if how == "domain":
        return standardiser(train, "domain", channels=True)
    if how == "sources":
        return standardiser(sources, "pooled", channels=True)
    return _in_float32


def _in_float32(_: str, rows: Array) -> Array:
    return rows.astype(np.float32)
