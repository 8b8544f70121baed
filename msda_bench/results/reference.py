"""A reference: the recorded runs of a protocol in one file, so that a method trained alone is ranked among its methods.

The file is gzip of one JSON document: the plan's tables, each experiment's protocol, and the runs by column, each with
its settings selected. Some come with msda-bench, as one; `msda-bench store reference` writes one from a result folder.
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
from msda_bench.results.runs import Results, results_of, with_results
from msda_bench.results.words import counted, listed, spans
from msda_bench.suite.issues import hint, shown
from msda_bench.suite.plan import Experiment, Plan, Search
from msda_bench.suite.protocol import UpdateRule
from msda_bench.suite.run_spec import canonical_json, refuse_overflow

PACKAGED = "reference"
"""The name of the reference that comes with msda-bench, and of its folder in the package."""
_LIMIT = 1 << 26
"""The maximum size of the document in bytes."""
_LEFT_OUT = {
    *("suite", "dataset", "task", "reference", "candidate", "key", "score", "folder"),
    *("effective_sample_size", "weights_norm"),
}
"""Columns of runs that follow from the others or that no table shows."""
_PARTS = ("engine", "dataset", "fingerprint", "backbone", "training", "labelled_target", "validators", "metrics")
"""The parts of a cell that are the protocol's; the rest is the method's, or the place in the table."""
_OWN = tuple(f"training.{name}" for name in UpdateRule.model_fields)
"""Prefixes of settings that a method may replace: how its weights are updated."""
_OWN_SCORE = f"{METRIC}own"
"""The column with the scores of experiments that have a metric of their own; the others follow from the outcomes."""
_MOST = 3


@dataclass(frozen=True)
class ReferenceProtocol:
    """What the ranked runs of an experiment have in common.

    Attributes:
        values: the values that their cells have, by dotted path; null where a cell has none.
        candidates: the maximum number of candidates of a method; 1 if nothing is selected.
        by: the criterion that selects; None if none does.
    """

    values: dict[str, list[Any]]
    candidates: int = 1
    by: str | None = None


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
        """The bytes of the file; equal contents give equal documents, whatever zlib makes of them."""
        document = TypeAdapter(Reference).dump_python(self, mode="json", exclude={"name"}, exclude_defaults=True)
        return gzip.compress(canonical_json({"schema": self.schema, **document}).encode(), mtime=0)

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
        about = [
            (table.name, method.name, table.dataset, table.task, method.reference)
            for table in self.plan.experiments
            for method in table.methods
        ]
        planned = pd.DataFrame(about, columns=["experiment", "method", "dataset", "task", "reference"])
        try:
            frame = pd.DataFrame(self.runs).merge(planned, "left", ["experiment", "method"])
            keys = [f"{self.name} {row}" for row in range(len(frame))]
            frame = frame.assign(suite=self.plan.suite, key=keys, score=np.nan)
            stored = frame[_OWN_SCORE].astype("float64") if _OWN_SCORE in frame else frame["score"]
            frame = typed(frame.drop(columns=_OWN_SCORE, errors="ignore"))
            computed = pd.Series(default_scores(frame))
            frame["score"] = stored.fillna(computed)
            return runs_of(with_results(frame, Results(self.plan)))
        except (LookupError, TypeError, ValueError, OverflowError, StoreError) as error:
            raise _unusable(self.name, str(error)) from None


def _is_possible(number: object, column: str) -> bool:
    """Whether a run can have such a number in a column; larger ones fit into no frame."""
    if isinstance(number, bool):
        return False
    if column == "train_seconds":
        return isinstance(number, int | float) and 0 <= number <= LONGEST
    return isinstance(number, int) and 0 <= number <= MOST_WHOLE


def _unusable(name: str, why: str) -> BenchError:
    again = "install msda-bench again" if name == PACKAGED else "write it again with `msda-bench store reference`"
    return BenchError(f"{name}: is no usable reference ({why}); {again}")


def read_reference(given: str | Path) -> Reference:
    """The reference that a name means: the packaged one, a file of one, or a result folder.

    Raises:
        BenchError: there is none, or it cannot be used.
    """
    name, path = str(given), Path(given)
    if name == PACKAGED:
        parts = sorted((Path(msda_bench.__file__).parent / PACKAGED).glob("*.json.gz"))  # each of other experiments
        return replace(_joined([_read(part, name) for part in parts]), name=name)
    if path.is_dir():
        runs = load_results(path)
        if lines := results_of(runs).fault_lines:
            raise BenchError(*lines)
        return replace(reference_of(runs), name=name)
    return _read(path, name)


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
        first, *_ = error.errors(include_url=False)
        raise _unusable(name, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (gzip.BadGzipFile, zlib.error, EOFError, ValueError, RecursionError) as error:
        raise _unusable(name, str(error)) from None
    if len({len(column) for column in reference.runs.values()}) != 1:
        raise _unusable(name, "its columns are not equally long")
    if reference.protocols.keys() != {table.name for table in reference.plan.experiments}:
        raise _unusable(name, "its protocols are not those of its experiments")
    reference = replace(reference, name=name)
    reference.frame()  # refuses impossible runs now, not after training
    return reference


def _joined(parts: Sequence[Reference]) -> Reference:
    first = parts[0]
    tables: list[Experiment] = []
    protocols: dict[str, ReferenceProtocol] = {}
    runs: dict[str, list[Any]] = {column: [] for part in parts for column in part.runs}
    for part in parts:
        tables += part.plan.experiments
        protocols |= part.protocols
        missing = [None] * len(part.runs["seed"])
        for column, values in runs.items():
            values.extend(part.runs.get(column, missing))
    plan = replace(first.plan, experiments=tuple(tables))
    return replace(first, plan=plan, protocols=protocols, runs=runs)


def reference_of(runs: pd.DataFrame) -> Reference:
    """The reference that the runs of a result folder make."""
    results = results_of(runs)
    lines = _suite_lines(runs)
    protocols = {}
    tables = []
    for table, rows in experiments(runs):
        protocols[table.name] = _protocol(table, rows)
        methods = tuple(replace(method, search=None) for method in table.methods)
        own = tuple(dict.fromkeys(lines.get(table.name, ())))
        tables.append(replace(table, methods=methods, notes=own, criteria=(), published=None, tuning=None))
    plan = replace(results.plan, experiments=tuple(tables), cells=())
    measured = [table.name for table in tables if table.metric]
    return Reference(plan, protocols, _columns(select(runs), measured), name=results.folder or "")


def _protocol(table: Experiment, rows: pd.DataFrame) -> ReferenceProtocol:
    tried = rows[(rows["status"] != "missing").to_numpy() & ~rows["reference"].to_numpy(dtype=bool)]
    of_one_seed = tried[~tried.duplicated(["method", "target", "candidate"])]
    values = _values(load_cells(of_one_seed).values())
    searches = [method.search for method in table.methods if method.search and not method.reference]
    if not searches:
        return ReferenceProtocol(values)
    most = max(len(search.candidates) for search in searches)
    return ReferenceProtocol(values, most, _criterion(table, searches[0]))


def _columns(chosen: pd.DataFrame, measured: Sequence[str]) -> dict[str, list[Any]]:
    """The columns that a reference keeps; `measured` are the experiments with a metric of their own."""
    columns = {}
    for column in map(str, chosen):
        if column not in _LEFT_OUT and not column.startswith((VALIDATOR, METRIC)):
            columns[column] = _plain(chosen[column])
    columns[_OWN_SCORE] = _plain(chosen["score"].where(chosen["experiment"].isin(measured)))
    return {column: values for column, values in columns.items() if any(value is not None for value in values)}


def _suite_lines(runs: pd.DataFrame) -> dict[str, list[str]]:
    return note_lines(note for note in notes(runs) if note.kind in {"suite", "candidates"})


def _criterion(table: Experiment, search: Search) -> str:
    tuning = table.tuning
    return search.by if tuning is None else f"{tuning.tracks[0]} on seeds {spans(tuning.seeds)}"


def _plain(column: pd.Series[Any]) -> list[Any]:
    if column.name == "train_seconds":
        column = column.round(2)
    values = column.astype(object)
    plain: list[Any] = json.loads(json.dumps(values.where(values.notna(), None).tolist(), default=lambda x: x.item()))
    return plain


def _values(cells: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values of the protocol's settings, by path, in a fixed order."""
    flat = [dict(_settings(cell)) for cell in cells]
    values = {}
    for path in sorted({path for settings in flat for path in settings}):
        by_text = {}
        for settings in flat:
            value = settings.get(path)
            by_text[canonical_json(value)] = value
        values[path] = [by_text[text] for text in sorted(by_text)]
    return values


def _settings(cell: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield f"sources of {cell.get('target')}", cell.get("sources")
    for part in _PARTS:
        yield from _flat(part, cell.get(part))


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}", inner)
    else:
        yield path, value


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
        faults = [*_of_table(table, there, protocol), *_of_cells(cells.get(table.name, ()), protocol)]
        if faults:
            more = f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else ""
            yield f"{table.name}: cannot stand beside {reference.name}: {'; '.join(faults[:_MOST])}{more}"
        taken = {method.name for method in table.methods} & {method.name for method in there.methods}
        if taken:
            yield f"{table.name}: {reference.name} has a method {listed(sorted(taken))}, too; give yours another name"


def _of_table(table: Experiment, there: Experiment, protocol: ReferenceProtocol) -> Iterator[str]:
    """What differs in an experiment and in how its methods are selected."""
    pairs = {
        "data": (table.dataset, there.dataset),
        "targets": (", ".join(table.targets), ", ".join(there.targets)),
        "seeds": (spans(table.seeds), spans(there.seeds)),
        "metric": (table.measure.name, there.measure.name),
        "alpha": (table.alpha, there.alpha),
    }
    for what, (ours, theirs) in pairs.items():
        if ours != theirs:
            yield f"{what} {ours}, not {theirs}"
    for method in table.methods:
        if method.search is None or method.reference:
            continue
        candidates = len(method.search.candidates)
        if candidates > protocol.candidates:
            yield f"{method.name} has {candidates} candidates, more than {protocol.candidates}"
        by = _criterion(table, method.search)
        if protocol.by not in {None, by}:
            yield f"{method.name} is selected by {by}, not {protocol.by}"


def _of_cells(cells: Iterable[Mapping[str, Any]], protocol: ReferenceProtocol) -> Iterator[str]:
    """The settings that no ranked run of the protocol has, except for how a method updates its weights."""
    strange: dict[str, dict[str, None]] = {}
    for cell in cells:
        settings = dict(_settings(cell))
        for path in dict.fromkeys((*settings, *protocol.values)):
            value = settings.get(path)
            if value not in protocol.values.get(path, [None]) and not path.startswith(_OWN):
                strange.setdefault(path, {})[_shown(value)] = None
    for path, values in strange.items():
        ranked = map(_shown, protocol.values.get(path, [None]))
        yield f"{path} {' and '.join(values)}, not {' or '.join(ranked)}"


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return canonical_json(value)[:200]
    if value is None:
        return "none"
    return shown(value[:12] if isinstance(value, str) else value)


def beside(runs: pd.DataFrame, reference: Reference) -> pd.DataFrame:
    """Puts the runs of a result folder, with their settings selected, beside those of the reference.

    Returns:
        One frame of runs with the experiments of the folder, the reference's methods first; its baseline and family
        of tests are the reference's.

    Raises:
        BenchError: the runs are of another protocol, or a method has a name of the reference.
    """
    cells = load_cells(runs)
    planned = ((name, cells[key]) for name, key in zip(runs["experiment"], runs["key"], strict=True) if key in cells)
    results = results_of(runs)
    refused = [*deviations(reference, results.plan, planned)]
    if refused:
        raise BenchError(*refused)
    lines = _suite_lines(runs)
    known = {table.name: table for table in reference.plan.experiments}
    tables = []
    for table in results.plan.experiments:
        there = known[table.name]
        origin = f"Not trained here, but recorded in {reference.name}: {counted(len(there.methods), 'method')}."
        every = dict.fromkeys((*there.notes, *lines.get(table.name, ()), origin))
        methods = (*there.methods, *(replace(method, search=None) for method in table.methods))
        tables.append(replace(there, methods=methods, notes=tuple(every)))
    mine = select(runs)
    mine = mine.assign(candidate=pd.Series(pd.NA, mine.index, dtype="Int64"), folder=results.folder)
    theirs = reference.frame().assign(folder=None)
    parts = [own_rows(table, frame) for table in tables for frame in (theirs, mine)]
    joined = typed(pd.concat(parts, ignore_index=True))
    plan = replace(results.plan, experiments=tuple(tables))
    return with_results(joined, replace(results, plan=plan))
