"""Predictions that come with the data."""

from __future__ import annotations

from msda_bench.api import GivenScheme, component


@component
class Given(GivenScheme):
    """The predictions that come with the data, such as a zero-shot model's: a reference, shown but never ranked.

    The dataset names them, as `predictions` of `table` and `arrays` does. Nothing is trained, and no validator scores.
    """

    name = "given"
