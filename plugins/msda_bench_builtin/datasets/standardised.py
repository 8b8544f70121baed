"""Datasets of features with optional standardisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, cast

from msda_bench.api import Added, Array, Dataset, Inputs, component
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
