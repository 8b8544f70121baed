"""From an estimator's parameters to a cell, by the words and the checks of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field, ValidationError

from msda_bench import __version__
from msda_bench.api import Count, DataError, Dataset, DomainData, Files, InputSpec, Task, Validator, component
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.sklearn.domains import TARGET
from msda_bench.suite.cell import Cell
from msda_bench.suite.choice import Context, choose
from msda_bench.suite.expand import expand
from msda_bench.suite.json_schema import keys_at
from msda_bench.suite.load import SCHEMA, Suite
from msda_bench.suite.mistakes import Fault, dotted, faults
from msda_bench.suite.spec import ExperimentFile

_METHOD = "methods.method."


@component
class Arrays(Dataset):
    """Arrays in memory: the sources by name, and one target. Without classes it is regression."""

    name = "arrays"
    targets = (TARGET,)

    names: tuple[str, ...]
    width: Count
    sparse: bool
    classes: Annotated[int, Field(ge=0)]

    @property
    def domains(self) -> tuple[str, ...]:
        """The sources, then the target."""
        return (*self.names, TARGET)

    @property
    def task(self) -> Task:
        """By the number of classes."""
        return Task("classification", self.classes) if self.classes else Task("regression")

    @property
    def input(self) -> InputSpec:
        """One row."""
        return InputSpec((self.width,), sparse=self.sparse)

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - there are none
        """Loads nothing: the arrays come from `fit`."""
        raise DataError(f"domain {domain!r} is an array in memory, which only an estimator can give")


@cache
def registry() -> Registry:
    """The installed components, and `Arrays`."""
    found = discover()
    entry = Entry(Arrays.kind, Arrays, "msda-bench", __version__)
    return Registry([*found.entries, entry], found.broken, found.changed)


def make_cell(arrays: Arrays, method: Mapping[str, Any], settings: Mapping[str, Any], seed: int) -> Cell:
    """The cell of a method on arrays.

    Args:
        arrays: what the data look like.
        method: as a row of a suite's `methods`.
        settings: a suite's `backbone` and `training`.
        seed: the seed.

    Raises:
        ValueError: a parameter is not what it may be; the message is one line that names it.
    """
    experiment = {"schema": SCHEMA, "name": arrays.name, "dataset": {arrays.name: arrays.params()}, "seeds": [seed]}
    # As a reference, because a suite may then name any scheme; what asks for labels is refused below.
    raw = _plain({**experiment, **settings, "validators": [], "methods": {"method": {**method, "reference": True}}})
    try:
        file = ExperimentFile.model_validate(raw, context=Context(registry()))
    except ValidationError as error:
        raise _refused(*faults(error, partial(keys_at, ExperimentFile))) from None
    scheme = file.methods["method"].scheme
    if scheme.component.needs_target_labels:
        raise ValueError(f"scheme: {scheme.name} asks for labels of the target, and no estimator looks at them")
    if arrays.task.kind not in scheme.component.tasks:
        raise ValueError(f"scheme: {scheme.name} trains {' and '.join(scheme.component.tasks)}, not {arrays.task.kind}")
    backbone = file.backbone.component
    if backbone.embedding(arrays.input) is not None:
        raise ValueError(f"backbone: {backbone.name} computes frozen features, which only a suite's run does")
    (cell,) = expand(Suite(arrays.name, (file,), fetch=False), registry()).cells.values()
    return cell


def make_validator(raw: Any) -> Validator:
    """A validator as a suite names it, such as `"source_accuracy"`.

    Raises:
        ValueError: there is none of this name, or a parameter is wrong.
    """
    try:
        return cast("Validator", choose(registry(), Validator.kind, _plain(raw)).component)
    except ValidationError as error:
        found = (fault._replace(loc=("validator", *fault.loc)) for fault in faults(error, lambda _: ("key", [])))
        raise _refused(*found) from None


def _refused(*found: Fault) -> ValueError:
    lines = [f"{dotted(fault.loc)}: {fault.what}" for fault in found]
    return ValueError("; ".join(line.removeprefix(_METHOD) for line in lines))


def _plain(value: Any) -> Any:
    """Numbers of numpy and tuples as a suite would have them: a search draws its candidates from arrays."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
