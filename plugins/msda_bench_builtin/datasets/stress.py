"""Sources of known worth: one that helps, and others that harm, each in its own way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from msda_bench.api import Array, Count, Dataset, DomainData, Files, InputSpec, Positive, Size, Task, component
from msda_bench_builtin.datasets.features import Draws

_CLASSES = 4
_COLUMNS = 16
_SOURCES = ("near", "far", "irrelevant", "flipped", "duplicate", "shifted")
_TARGETS = ("target", "target_shifted")
_SHIFTED = (8, 4, 2, 1)
"""Relative frequencies of the classes in a domain whose labels are shifted."""
_TRIED = 50_000
"""Examples from which the worth of a source is computed."""

Angle = Annotated[float, Field(ge=0, le=90)]


@component
class Stress(Dataset):
    """Four round clouds of points in 16 dimensions, and sources that turn, move, mislabel or repeat them.

    In the target, x of class c is normal with unit variance around `separation` e_c, e_c a unit vector, and all classes
    are equally frequent. A source turned by t has class c around `separation` (cos t e_c + sin t e_(c+1)), which takes
    each class towards the place of the next.

    | domain | differs from the target by |
    |---|---|
    | near | a turn of `near` degrees |
    | far | a turn of `far` degrees |
    | flipped | a turn of 90 degrees: the target's x, every label replaced by another |
    | irrelevant | classes lie along other axes, along which the target has only noise |
    | duplicate | the same turn as near: it has the examples of near once more |
    | shifted | class frequencies 8 : 4 : 2 : 1 |
    | target_shifted | the same frequencies; it is a second target |

    Parameters:
        near: of the source near, in degrees.
        far: of the source far, in degrees.
        separation: distance of the classes' means from the origin, in standard deviations.
        size: examples of each source. A duplicate is split independently, so it trains on those of near in `train` of
            `size` examples.
        target_size: examples of each target.
    """

    name = "stress"
    version = 1
    licence = "none needed: made on the spot"
    modality = "synthetic"
    source = "ours"
    domains = (*_SOURCES, *_TARGETS)
    task = Task("classification", _CLASSES)
    input = InputSpec((_COLUMNS,))

    train: Size = 400
    near: Angle = 15.0
    far: Angle = 35.0
    separation: Positive = 2.5
    size: Count = 500
    target_size: Count = 2400

    def sources(self) -> dict[str, tuple[str, ...]]:
        """All six sources, for the target and for one of other class frequencies."""
        return dict.fromkeys(_TARGETS, _SOURCES)

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """The examples of each source and of each target."""
        return {domain: self._size(domain) for domain in self.domains}

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's examples: x (n, 16) float32."""
        drawn = "near" if domain == "duplicate" else domain
        x, y = self._draw(domain, Draws((self.name, self.version, drawn)), self._size(domain))
        return DomainData(x.astype(np.float32), y)

    def relatedness(self, target: str) -> Mapping[str, float]:
        """The accuracy on the target, in percent, of the best classifier for each source."""
        x, y = self._draw(target, Draws((self.name, self.version, target, "relatedness")), _TRIED)
        return {source: 100 * float((self._best(source, x) == y).mean()) for source in _SOURCES}

    def _size(self, domain: str) -> int:
        return self.target_size if domain in _TARGETS else self.size

    def _draw(self, domain: str, draws: Draws, count: int) -> tuple[Array, Array]:
        limits = np.cumsum(_frequencies(domain))[:-1]
        y = np.searchsorted(limits, draws.uniform("y", (count,)), side="right")
        noise = draws.normal("x", (count, _COLUMNS))
        return self._means(domain)[y] + noise, y.astype(np.int64)

    def _best(self, domain: str, x: Array) -> Array:
        """The likeliest class by Bayes' rule; all means are equally far from the origin."""
        scores = x @ self._means(domain).T + np.log(_frequencies(domain))
        likeliest: Array = scores.argmax(1)
        return likeliest

    def _means(self, domain: str) -> Array:
        angles = {"near": self.near, "duplicate": self.near, "far": self.far, "flipped": 90.0}
        turn = math.radians(angles.get(domain, 0.0))
        own = np.eye(_CLASSES)
        following = np.roll(own, 1, axis=1)
        means = np.zeros((_CLASSES, _COLUMNS))
        first = _CLASSES if domain == "irrelevant" else 0
        means[:, first : first + _CLASSES] = math.cos(turn) * own + math.sin(turn) * following
        return self.separation * means


def _frequencies(domain: str) -> Array:
    relative = np.array(_SHIFTED if domain.endswith("shifted") else [1] * _CLASSES)
    frequencies: Array = relative / relative.sum()
    return frequencies
