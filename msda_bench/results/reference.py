"""A reference: the recorded runs of a protocol in one file, so that a method trained alone is ranked among its methods.

The file is gzip of one JSON document: the plan's tables, each experiment's protocol, and the columns of the runs with
selected settings. One comes with msda-bench, in several files; `msda-bench store reference` writes one from a result
folder.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

import msda_bench
from msda_bench.atomic import named, read_file
from msda_bench.errors import BenchError, StoreError
from msda_bench.results.frame import TEXTS, WHOLE, default_scores, experiments, load_results, own_rows, runs_of, typed
from msda_bench.results.load import LONGEST, MOST_WHOLE, VALIDATOR, load_cells
from msda_bench.results.metric import METRIC
from msda_bench.results.model_selection import select
from msda_bench.results.notes import note_lines, notes
from msda_bench.results.reference_protocol import ReferenceProtocol, deviations_of, protocol_of
from msda_bench.results.runs import Results, results_of, with_results
from msda_bench.results.words import counted, listed
from msda_bench.suite.issues import hint
from msda_bench.suite.plan import Experiment, Plan
from msda_bench.suite.run_spec import canonical_json, refuse_overflow

PACKAGED = "reference"
"""The name of the reference that comes with msda-bench, and of its folder in the package."""
_LIMIT = 1 << 26
"""The maximum size of the document in bytes."""
_LEFT_OUT = {
    "suite",
    "dataset",
    "task",
    "reference",
    "candidate",
    "key",
    "score",
    "folder",
    "effective_sample_size",
    "weights_norm",
}
"""Columns of runs that follow from the others or that no table shows."""
_OWN_SCORE = f"{METRIC}own"
"""The column with the scores of experiments that have a metric of their own; the others follow from the outcomes."""
_MOST = 3
"""The most differences of an experiment that a message names."""


@dataclass(frozen=True)
class Reference:
    """The contents of a reference file; `runs` are columns of equal length."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "allow_inf_nan": False}

    plan: Plan
    protocols: dict[str, ReferenceProtocol]
    runs: dict[str, list[Any]]
    schema: Literal[1] = 1
    name: str = field(default="", compare=False)

    def to_bytes(self) -> bytes:
        """The bytes of the file; equal contents give equal documents, but zlib may compress them differently."""
        document = TypeAdapter(Reference).dump_python(self, mode="json", exclude={"name"}, exclude_defaults=True)
        document["schema"] = self.schema
        return gzip.compress(canonical_json(document).encode(), mtime=0)

    def frame(self) -> pd.DataFrame:
        """The runs as `load_results` gives them, without records.

        Raises:
            BenchError: they are not those of its plan, or have no possible outcome.
        """
        for column in sorted(TEXTS & self.runs.keys()):
            if not all(text is None or isinstance(text, str) for text in self.runs[column]):
                raise _unusable(self.name, f"{column} has other values than texts")
        for column in sorted({"seed", "train_seconds", *WHOLE} & self.runs.keys()):
            if not all(number is None or _is_possible(number, column) for number in self.runs[column]):
                raise _unusable(self.name, f"{column} has other values than its numbers can be")
        try:
            return self._frame()
        except (LookupError, TypeError, ValueError, OverflowError, StoreError) as error:
            raise _unusable(self.name, str(error)) from None

    def _frame(self) -> pd.DataFrame:
        planned = []
        for table in self.plan.experiments:
            for method in table.methods:
                planned.append((table.name, method.name, table.dataset, table.task, method.reference))
        of_methods = pd.DataFrame(planned, columns=["experiment", "method", "dataset", "task", "reference"])
        frame = pd.DataFrame(self.runs).merge(of_methods, "left", ["experiment", "method"])
        frame["suite"] = self.plan.suite
        frame["key"] = [f"{self.name} {row}" for row in range(len(frame))]
        frame["score"] = np.nan
        own_scores = frame["score"]
        if _OWN_SCORE in frame:
            own_scores = frame[_OWN_SCORE].astype("float64")
            frame = frame.drop(columns=_OWN_SCORE)
        frame = typed(frame)
        frame["score"] = own_scores.fillna(pd.Series(default_scores(frame)))
        return runs_of(with_results(frame, Results(self.plan)))


def _is_possible(number: object, column: str) -> bool:
    """Whether a run can have such a number in a column; larger ones fit into no frame."""
    if isinstance(number, bool):
        return False
    if column == "train_seconds":
        return isinstance(number, int | float) and 0 <= number <= LONGEST
    return isinstance(number, int) and 0 <= number <= MOST_WHOLE


def _unusable(name: str, why: str) -> BenchError:
    remedy = "install msda-bench again" if name == PACKAGED else "write it again with `msda-bench store reference`"
    return BenchError(f"{name}: is no usable reference ({why}); {remedy}")


def read_reference(given: str | Path) -> Reference:
    """The reference of this name: the packaged one, that of a file, or that of a result folder.

    Raises:
        BenchError: there is none, or it cannot be used.
    """
    name = str(given)
    if name == PACKAGED:
        folder = Path(msda_bench.__file__).parent / PACKAGED
        parts = [_read(path, name) for path in sorted(folder.glob("*.json.gz"))]
        return _joined(parts)
    path = Path(given)
    if not path.is_dir():
        return _read(path, name)
    runs = load_results(path)
    faults = results_of(runs).fault_lines
    if faults:
        raise BenchError(*faults)
    return replace(reference_of(runs), name=name)


def _read(path: Path, name: str) -> Reference:
    with named(path, "cannot be read"):
        packed = read_file(path)
    try:
        data = gzip.GzipFile(fileobj=io.BytesIO(packed)).read(_LIMIT + 1)
        if len(data) > _LIMIT:
            raise _unusable(name, f"larger than {_LIMIT} bytes")
        refuse_overflow(data)
        reference = TypeAdapter(Reference).validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _unusable(name, f"{where}: {first['msg']}") from None
    except (gzip.BadGzipFile, zlib.error, EOFError, ValueError, RecursionError) as error:
        raise _unusable(name, str(error)) from None
    lengths = {len(column) for column in reference.runs.values()}
    if len(lengths) != 1:
        raise _unusable(name, "its columns are not equally long")
    if reference.protocols.keys() != {table.name for table in reference.plan.experiments}:
        raise _unusable(name, "its protocols are not those of its experiments")
    reference = replace(reference, name=name)
    reference.frame()  # refuses impossible runs now, not after training
    return reference


def _joined(parts: Sequence[Reference]) -> Reference:
    """One reference of several, which have different experiments."""
    tables: list[Experiment] = []
    protocols: dict[str, ReferenceProtocol] = {}
    runs: dict[str, list[Any]] = {}
    for part in parts:
        tables += part.plan.experiments
        protocols.update(part.protocols)
        for column in part.runs:
            runs[column] = []
    for part in parts:
        missing = [None] * len(part.runs["seed"])
        for column, values in runs.items():
            values.extend(part.runs.get(column, missing))
    first = parts[0]
    plan = replace(first.plan, experiments=tuple(tables))
    return replace(first, plan=plan, protocols=protocols, runs=runs)


def reference_of(runs: pd.DataFrame) -> Reference:
    """The reference that the runs of a result folder make."""
    results = results_of(runs)
    lines = _suite_lines(runs)
    protocols = {}
    tables = []
    for table, rows in experiments(runs):
        protocols[table.name] = protocol_of(table, rows)
        methods = tuple(replace(method, search=None) for method in table.methods)
        own = tuple(dict.fromkeys(lines.get(table.name, ())))
        tables.append(replace(table, methods=methods, notes=own, criteria=(), published=None, tuning=None))
    plan = replace(results.plan, experiments=tuple(tables), cells=())
    measured = [table.name for table in tables if table.metric]
    columns = _columns(select(runs), measured)
    return Reference(plan, protocols, columns, name=results.folder or "")


def _columns(chosen: pd.DataFrame, measured: Sequence[str]) -> dict[str, list[Any]]:
    """The columns that a reference keeps; `measured` are the experiments with a metric of their own."""
    kept = [column for column in map(str, chosen) if column not in _LEFT_OUT]
    columns = {column: chosen[column] for column in kept if not column.startswith((VALIDATOR, METRIC))}
    columns[_OWN_SCORE] = chosen["score"].where(chosen["experiment"].isin(measured))
    values = {}
    for name, column in columns.items():
        if column.notna().any():
            values[name] = _plain(column)
    return values


def _suite_lines(runs: pd.DataFrame) -> dict[str, list[str]]:
    """The notes of each experiment that are about its suite and its candidates."""
    return note_lines(note for note in notes(runs) if note.kind in {"suite", "candidates"})


def _plain(column: pd.Series[Any]) -> list[Any]:
    """The values of a column as plain JSON values; None where there is none."""
    if column.name == "train_seconds":
        column = column.round(2)
    values = column.astype(object)
    values = values.where(values.notna(), None)
    text = json.dumps(values.tolist(), default=lambda number: number.item())
    plain: list[Any] = json.loads(text)
    return plain


def deviations(reference: Reference, plan: Plan, places: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """A line for each experiment of another protocol than the reference's, and for each method of a taken name.

    `places` are experiments, each with one of its cells as plain JSON values.
    """
    known = {table.name: table for table in reference.plan.experiments}
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for experiment, cell in places:
        cells.setdefault(experiment, []).append(cell)
    for table in plan.experiments:
        there = known.get(table.name)
        if there is None:
            yield f"{table.name}: is no experiment of {reference.name}{hint(table.name, known)}"
            continue
        protocol = reference.protocols[table.name]
        differences = deviations_of(table, there, protocol, cells.get(table.name, ()))
        if differences:
            some = "; ".join(differences[:_MOST])
            if len(differences) > _MOST:
                some += f"; and {len(differences) - _MOST} more"
            yield f"{table.name}: cannot stand beside {reference.name}: {some}"
        taken = {method.name for method in table.methods} & {method.name for method in there.methods}
        if taken:
            yield f"{table.name}: {reference.name} has a method {listed(sorted(taken))}, too; give yours another name"


def beside(runs: pd.DataFrame, reference: Reference) -> pd.DataFrame:
    """Puts the runs of a result folder, with their settings selected, beside those of the reference.

    Returns:
        One frame of runs with the experiments of the folder, the reference's methods first; its baseline and family
        of tests are the reference's.

    Raises:
        BenchError: the runs are of another protocol, or a method has a name of the reference.
    """
    results = results_of(runs)
    cells = load_cells(runs)
    places = []
    for experiment, key in zip(runs["experiment"], runs["key"], strict=True):
        if key in cells:
            places.append((experiment, cells[key]))
    refused = list(deviations(reference, results.plan, places))
    if refused:
        raise BenchError(*refused)
    lines = _suite_lines(runs)
    known = {table.name: table for table in reference.plan.experiments}
    chosen = select(runs)
    mine = chosen.assign(candidate=pd.Series(pd.NA, chosen.index, dtype="Int64"), folder=results.folder)
    theirs = reference.frame().assign(folder=None)
    tables = []
    rows = []
    for table in results.plan.experiments:
        there = known[table.name]
        origin = f"Not trained here, but recorded in {reference.name}: {counted(len(there.methods), 'method')}."
        every = dict.fromkeys((*there.notes, *lines.get(table.name, ()), origin))
        methods = [replace(method, search=None) for method in table.methods]
        tables.append(replace(there, methods=(*there.methods, *methods), notes=tuple(every)))
        rows += [own_rows(there, theirs), own_rows(there, mine)]
    joined = typed(pd.concat(rows, ignore_index=True))
    plan = replace(results.plan, experiments=tuple(tables))
    return with_results(joined, replace(results, plan=plan))
