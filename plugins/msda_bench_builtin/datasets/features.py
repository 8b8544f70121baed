"""What datasets share: known sizes, standardised columns, tables of numbers, and random numbers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

import numpy as np

from msda_bench.api import AddedLater, Array, DataError, Dataset, Extent, Files, Inputs, component
from msda_bench.functional import standardiser
from msda_bench_builtin.datasets.unpacked import reading


class Published(Dataset):
    """A dataset whose domains have known sizes."""

    published: ClassVar[Mapping[str, Extent]] = {}
    """Examples of each domain, in the order of the tables."""

    @property
    def domains(self) -> tuple[str, ...]:
        """As published."""
        return tuple(self.published)

    def sizes(self, files: Files | None = None) -> dict[str, Extent]:
        """As published."""
        return dict(self.published)


@component
class Standardised(Published):
    """Rows of numbers.

    Parameters:
        standardise: "domain" gives each feature mean 0 and variance 1 over the training examples of each domain,
            "pooled" over those of all; "none" changes nothing. A feature that is the same everywhere becomes 0. Of
            signals (channels, time) each channel is a feature.
    """

    standardise: Annotated[Literal["none", "pooled", "domain"], AddedLater()] = "none"

    @property
    def notes(self) -> tuple[str, ...]:
        """How the features are standardised, if they are."""
        if self.standardise == "none":
            return ()
        where = "over all domains" if self.standardise == "pooled" else "in each domain"
        return (f"{self.name}: features are standardised {where}, by training examples.",)

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns to standardise, if requested."""
        if self.standardise == "none":
            return lambda _, inputs: inputs
        inputs = cast("Mapping[str, Array]", train)
        is_signals = len(self.input.shape) > 1
        learned = standardiser(inputs, self.standardise, channels=is_signals)
        return cast("Callable[[str, Inputs], Inputs]", learned)


def digest(*parts: object) -> str:
    """The sha256 of what JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_table(path: Path, columns: int) -> Array:
    """The numbers (n, columns) of a .npy file.

    Raises:
        DataError: the file is damaged or holds something else.
    """
    with reading(path, "cannot be read"):
        table: Array = np.load(path, allow_pickle=False)
    if table.ndim != 2 or table.shape[1] != columns:  # noqa: PLR2004 - rows and columns
        raise DataError(f"{path}: a table of shape {table.shape}, expected (n, {columns}); replace the file")
    return table


@dataclass(frozen=True)
class Draws:
    """Random numbers for one identity, such as a domain of a dataset; another one gives unrelated numbers.

    Each purpose has its own stream, so that a larger shape begins with the numbers of a smaller one.
    """

    identity: tuple[str | int, ...]

    def uniform(self, purpose: str, shape: tuple[int, ...]) -> Array:
        """Numbers in (0, 1), float64."""
        name = json.dumps([*self.identity, purpose])
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little")
        # The raw stream of a counter-based generator is fixed; the methods of numpy's Generator may change.
        raw = np.random.Philox(key=key).random_raw(math.prod(shape))
        numbers: Array = ((raw >> np.uint64(12)) + 0.5) * 2.0**-52
        return numbers.reshape(shape)

    def normal(self, purpose: str, shape: tuple[int, ...]) -> Array:
        """Standard normal numbers, float64, by Box and Muller's formula."""
        pairs = self.uniform(purpose, (math.prod(shape), 2))
        numbers: Array = np.sqrt(-2 * np.log(pairs[:, 0])) * np.cos(2 * np.pi * pairs[:, 1])
        return numbers.reshape(shape)
