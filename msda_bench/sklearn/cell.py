"""Converts an estimator's parameters to a cell, with the names and checks of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field, ValidationError

from msda_bench import __version__
from msda_bench.api import (
    Count,
    DataError,
    Dataset,
    DomainData,
    Files,
    InputSpec,
    Predictor,
    Task,
    Validator,
    component,
)
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.choice import Context, choose
from msda_bench.suite.expand import expand
from msda_bench.suite.issues import ValidationIssue, dotted, issues_of
from msda_bench.suite.load import SCHEMA, Suite
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.run_spec import RunSpec
from msda_bench.suite.spec import ExperimentFile

TARGET = "target"
_METHOD = "methods.method."


@component
class Arrays(Dataset):
    """Arrays in memory: named sources and one target. The task is regression if `classes` is 0."""

    name = "arrays"

    names: tuple[str, ...]
    width: Count
    sparse: bool
    classes: Annotated[int, Field(ge=0)]

    @property
    def domains(self) -> tuple[str, ...]:
        """The sources, then the target."""
        return (*self.names, TARGET)

    def sources(self) -> dict[str, tuple[str, ...]]:
        """All of them, for the target."""
        return {TARGET: self.names}

    @property
    def task(self) -> Task:
        """Classification, or regression if there are no classes."""
        return Task("classification", self.classes) if self.classes else Task("regression")

    @property
    def input(self) -> InputSpec:
        """A vector of `width` numbers."""
        return InputSpec((self.width,), sparse=self.sparse)

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - no files
        """Raises `DataError`: only `fit` has the arrays."""
        raise DataError(f"domain {domain!r} is an array in memory, which only its estimator can provide")


@cache
def registry() -> Registry:
    """The installed components, with `Arrays` in place of their datasets."""
    installed = discover()
    others = (entry for entry in installed.entries if entry.kind != Arrays.kind)
    own = Entry(Arrays.kind, Arrays, "msda-bench", __version__)
    return Registry([*others, own], installed.broken, installed.changed)


def make_cell(arrays: Arrays, method: Mapping[str, Any], settings: Mapping[str, Any], seed: int) -> RunSpec:
    """The cell of a method on arrays.

    Args:
        arrays: the names, widths and classes of the data.
        method: a row of a suite's `methods`.
        settings: a suite's `backbone` and `training`.
        seed: the seed.

    Raises:
        ValueError: a parameter is invalid; the message is one line that names it.
    """
    experiment = {"schema": SCHEMA, "name": arrays.name, "dataset": {arrays.name: arrays.params()}, "seeds": [seed]}
    # References may use any scheme in a suite; schemes that need target labels are refused below.
    raw = _plain({**experiment, **settings, "validators": [], "methods": {"method": {**method, "reference": True}}})
    try:
        file = ExperimentFile.model_validate(raw, context=Context(registry()))
    except ValidationError as error:
        raise _refused(*issues_of(error)) from None
    scheme = file.methods["method"].scheme
    if scheme.component.needs_target_labels:
        raise ValueError(f"scheme: {scheme.name} needs labels of the target, which no estimator uses")
    if isinstance(scheme.component, Predictor):
        what = "trains no network, which an estimator here has"
        raise ValueError(f"scheme: {scheme.name} {what}")  # noqa: TRY004 - of a value that the user gave
    if arrays.task.kind not in scheme.component.tasks:
        raise ValueError(f"scheme: {scheme.name} trains {' and '.join(scheme.component.tasks)}, not {arrays.task.kind}")
    backbone = file.backbone.component
    if backbone.embedding(arrays.input) is not None:
        raise ValueError(f"backbone: {backbone.name} computes frozen features, which only suites support")
    (cell,) = expand(Suite(arrays.name, (ResolvedExperiment.of(dict(file)),), fetch=False), registry()).cells.values()
    return cell


def make_validator(raw: Any) -> Validator:
    """The validator that a suite names in this way, such as `"source_accuracy"`.

    Raises:
        ValueError: no validator has this name, or a parameter is invalid.
    """
    try:
        return cast("Validator", choose(registry(), Validator.kind, _plain(raw)).component)
    except ValidationError as error:
        mistakes = (fault._replace(loc=("validator", *fault.loc)) for fault in issues_of(error))
        raise _refused(*mistakes) from None


def _refused(*mistakes: ValidationIssue) -> ValueError:
    lines = [f"{dotted(fault.loc)}: {fault.what}" for fault in mistakes]
    return ValueError("; ".join(line.removeprefix(_METHOD) for line in lines))


def _plain(value: Any) -> Any:
    """The value with numpy numbers, arrays and tuples as plain numbers and lists, as a suite holds them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
