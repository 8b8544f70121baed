"""Datasets of features: standardised columns, and archives of published ones."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

import numpy as np

from msda_bench.api import Added, Array, DataError, Dataset, DomainData, File, Files, Inputs, InputSpec, Task, component
from msda_bench.functional import standardiser


@component
class Standardised(Dataset):
    """Rows of numbers.

    Parameters:
        standardise: "domain" gives each feature mean 0 and variance 1 over the training examples of each domain,
            "pooled" over those of all; "none" changes nothing. A feature that is the same everywhere becomes 0.
    """

    standardise: Annotated[Literal["none", "pooled", "domain"], Added()] = "none"

    @property
    def notes(self) -> tuple[str, ...]:
        """How the features are standardised, if they are."""
        how = {"pooled": "over all domains", "domain": "in each domain"}.get(self.standardise)
        return () if how is None else (f"{self.name}: features are standardised {how}, by training examples.",)

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns to standardise, if requested."""
        if self.standardise == "none":
            return lambda _, inputs: inputs
        inputs = cast("Mapping[str, Array]", train)
        return cast("Callable[[str, Inputs], Inputs]", standardiser(inputs, self.standardise))


@component
class Features(Standardised):
    """Rows of numbers of several domains, all in one archive."""

    archive: ClassVar[File]
    published: ClassVar[Mapping[str, int]]
    """Examples of each domain, in the order of the tables."""
    width: ClassVar[int]
    classes: ClassVar[int]

    @abstractmethod
    def read(self, path: Path) -> Mapping[str, tuple[Array, Array]]:
        """Features (n, width) float32 and labels (n,) int64 of each domain.

        Raises:
            DataError: the archive is damaged or has other contents.
        """

    @property
    def domains(self) -> tuple[str, ...]:
        """As published."""
        return tuple(self.published)

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """As published."""
        return dict(self.published)

    @property
    def task(self) -> Task:
        """The kind of thing."""
        return Task("classification", self.classes)

    @property
    def input(self) -> InputSpec:
        """The features of an image."""
        return InputSpec((self.width,))

    @property
    def files(self) -> tuple[File, ...]:
        """The archive."""
        return (self.archive,)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's features, (n, width) float32.

        Raises:
            DataError: the archive is missing, damaged or has other contents.
        """
        path = files.path(self.archive)
        name = json.dumps(["features", self.name, self.version, self.archive.checksum])
        arrays = files.derived(name, lambda: self._arrays(path))
        return DomainData(arrays[f"{domain}_x"], arrays[f"{domain}_y"])

    def _arrays(self, path: Path) -> dict[str, Array]:
        features = self.read(path)
        counts = {domain: len(x) for domain, (x, _) in features.items()}
        kinds = {int(label) for _, y in features.values() for label in np.unique(y)}
        if counts != dict(self.published) or len(kinds) != self.classes:
            expected = f"expected {dict(self.published)} and {self.classes}"
            raise DataError(f"{path}: holds {counts} examples of {len(kinds)} classes, {expected}; replace the file")
        if not all(np.isfinite(x).all() for x, _ in features.values()):
            raise DataError(f"{path}: holds numbers that are not finite; replace the file")
        named = {f"{domain}_x": x for domain, (x, _) in features.items()}
        return named | {f"{domain}_y": y for domain, (_, y) in features.items()}
