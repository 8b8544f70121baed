"""Compares two result folders run by run: what differs between their records, and the scores, by exact tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from msda_bench.errors import BenchError, printable
from msda_bench.results.decision import BETTER, WORSE, Row, decided, measured
from msda_bench.results.estimates import summarize
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.notes import folder_lines, which_runs
from msda_bench.results.recorded import read_records
from msda_bench.results.report import Column, Line, Report, Section, Table, Unit
from msda_bench.results.runs import results_of
from msda_bench.results.scores import Column as Target
from msda_bench.results.scores import Grid, grids, paired
from msda_bench.results.select import select
from msda_bench.results.words import spans
from msda_bench.store import Record
from msda_bench.store.record import same_result
from msda_bench.suite.issues import hint, shown
from msda_bench.suite.plan import Experiment

COLUMNS = (
    *("experiment_a", "experiment_b"),
    *("target", "method_a", "method_b", "outcome", "reason", "n_family", "n_planned", "n_paired", "n_zero"),
    *("mean_a", "standard_error_a", "mean_b", "standard_error_b", "mean_difference"),
    *("difference_low", "difference_high", "standard_deviation"),
    *("median_difference", "hodges_lehmann", "hl_low", "hl_high", "wins", "ties", "losses"),
    *("statistic", "p_two_sided", "p_holm", "attainable_p", "detectable"),
)
"""The columns of a comparison, explained in docs/results.md."""
LEGEND = (
    "A, B: means over the pairs; a pair is a seed that is ok in both; average: over the targets that both have. "
    "difference: B less A, positive where B is better; interval: of the mean, level 1 - alpha, allowing for the "
    "examples that seeds share. p: exact two-sided signed-rank test, after Holm's correction over the methods; in "
    "brackets: too few pairs to be significant, however they differ. n: pairs that are ok / planned by both."
)
_MADE_WITH = ("python", "torch", "numpy", "numba", "platform", "device", "device_name")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHORT, _MOST = 12, 6
_ABSENT = object()
"""Stands for a missing key: a cell that is older than a field has its default."""


@dataclass(frozen=True)
class Aligned:
    """An experiment of folder A and the matching one of folder B.

    `methods` has the names in B by those in A. `rows` has one row per target (`average` last) and pair of methods: the
    outcome of B against A, and differences that are positive if B is better. `changes` says which settings and versions
    differ, and in which runs. The counts are of runs, each a part of the one before: planned by both folders, ok in
    both, of the same run, and with an equal result to the last bit, curves included.
    """

    a: Experiment
    b: Experiment
    methods: Mapping[str, str]
    rows: pd.DataFrame
    changes: Mapping[tuple[str, str, str], str]
    planned: int
    ok: int
    same_cell: int
    equal: int

    @property
    def name(self) -> str:
        """The names of both."""
        both = self.a.name if self.a.name == self.b.name else f"{self.a.name}, in B {self.b.name}"
        return f"{both} ({self.a.dataset})"


def align(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str]) -> Iterator[Aligned]:
    """Pairs the runs of two folders by experiment, target, method and seed, and compares them.

    Experiments pair by name, dataset and task, or if they are the only ones left on their dataset. `match` gives names
    in B by names in A, for methods or experiments of other names; if it names experiments, only those are compared.

    Raises:
        BenchError: a method or experiment to match is missing, or two paired experiments use different metrics.
        StoreError: a record cannot be read.
    """
    a, b = select(a), select(b)
    ours, theirs = results_of(a).plan.experiments, results_of(b).plan.experiments
    for side, tables, names in (("A", ours, [*match]), ("B", theirs, [*match.values()])):
        known = [*(method.name for table in tables for method in table.methods), *(table.name for table in tables)]
        what = f"--match: {side} has no method or experiment"
        if absent := [f"{what} {shown(name)}{hint(name, dict.fromkeys(known))}" for name in names if name not in known]:
            raise BenchError(*absent)
    for one, other in _pairs(ours, theirs, match):
        if one.measure != other.measure:
            metrics = f"{one.measure.name} in A and {other.measure.name} in B"
            raise BenchError(f"{one.name}: uses {metrics}; name one metric for both with --metric")
        there = {method.name for method in other.methods}
        partners = {method.name: match.get(method.name, method.name) for method in one.methods}
        methods = {name: partner for name, partner in partners.items() if partner in there}
        yield _aligned(one, other, own_rows(one, a), own_rows(other, b), methods)


def _pairs(
    a: Sequence[Experiment], b: Sequence[Experiment], match: Mapping[str, str]
) -> list[tuple[Experiment, Experiment]]:
    if named := [(ours, theirs) for ours in a for theirs in b if match.get(ours.name) == theirs.name]:
        return named
    known = {(table.name, table.dataset, table.task): table for table in b}
    pairs = {table.name: known[at] for table in a if (at := (table.name, table.dataset, table.task)) in known}
    rest = [table for table in a if table.name not in pairs], [table for table in b if table not in pairs.values()]
    for table in rest[0]:
        ours, theirs = (
            [one for one in side if (one.dataset, one.task) == (table.dataset, table.task)] for side in rest
        )
        if len(ours) == len(theirs) == 1:
            pairs[table.name] = theirs[0]
    return [(table, pairs[table.name]) for table in a if table.name in pairs]


def _aligned(
    ours: Experiment, theirs: Experiment, a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]
) -> Aligned:
    place = ["method", "target", "seed"]
    runs = a[place].astype({"method": object, "target": object}).assign(a=a.index)
    runs["method"] = runs["method"].map(dict(methods)).astype(object)
    others = b[place].astype({"method": object, "target": object}).assign(b=b.index)
    both = runs.merge(others, on=place)
    first, second = a.loc[both["a"]].reset_index(drop=True), b.loc[both["b"]].reset_index(drop=True)
    there = ((first["status"] != "missing") & (second["status"] != "missing")).to_numpy()
    changed: dict[tuple[str, str, str], list[Any]] = {}
    same_cell = equal = 0
    pairs = zip(*(read_records(side[there]) for side in (first, second)), strict=True)
    for (row, record, _), (_, other, _) in pairs:
        for change in _differences(record, other):
            changed.setdefault(change, []).append(row)
        if record.key == other.key and record.status == other.status == "ok":
            same_cell, equal = same_cell + 1, equal + same_result(record, other)
    changes = {change: which_runs(first.loc[rows], first[there]) for change, rows in changed.items()}
    ok = int(((first["status"] == "ok") & (second["status"] == "ok")).sum())
    rows = _compared(a, b, methods).assign(experiment_a=ours.name, experiment_b=theirs.name)
    return Aligned(ours, theirs, methods, rows[[*COLUMNS]], changes, len(both), ok, same_cell, equal)


def _differences(a: Record, b: Record) -> Iterator[tuple[str, str, str]]:
    """What differs between the cells of two records, and between the versions that both of them name."""
    yield from differences(a.cell, b.cell)
    one, other = (
        {name: record.provenance[name] for name in _MADE_WITH if name in record.provenance}
        | (record.provenance.get("distributions") or {})
        for record in (a, b)
    )
    for name in sorted(one.keys() & other.keys()):
        yield from differences(one[name], other[name], f"made with {name}")


def differences(a: Any, b: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """The places at which two JSON values differ, with both; components with different names differ as a whole."""
    if a == b:  # fast, and true of most values
        return
    if isinstance(a, dict) and isinstance(b, dict) and a.get("name") == b.get("name"):
        for key in sorted(a.keys() | b.keys()):
            yield from differences(a.get(key, _ABSENT), b.get(key, _ABSENT), f"{place}.{key}" if place else key)
    else:
        yield place, _short(a), _short(b)


def _short(value: Any) -> str:
    if value is None or value is _ABSENT:
        return "default" if value is _ABSENT else "none"
    if isinstance(value, dict) and "name" in value and isinstance(params := value.get("params", {}), dict):
        listed = ", ".join(f"{name}={_short(param)}" for name, param in sorted(params.items()))
        return printable(f"{value['name']}({listed})")
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return printable(text[:_SHORT] if _DIGEST.fullmatch(text) else text)


def _compared(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> pd.DataFrame:
    common = set(a["target"]) & set(b["target"])
    both = zip(*(grids(runs[runs["target"].isin(common)]) for runs in (a, b)), strict=True)
    rows = [
        row
        for ours, theirs in both  # at most one experiment each
        for column in ours.columns
        for row in decided([_measured(ours, theirs, names, column) for names in methods.items()], family="methods")
    ]
    counts = dict.fromkeys(("n_family", "n_planned", "n_paired", "n_zero", "wins", "ties", "losses"), "Int64")
    return pd.DataFrame(rows, columns=COLUMNS).astype(counts)


def _measured(ours: Grid, theirs: Grid, names: tuple[str, str], target: Target) -> Row:
    merits_a, merits_b = ours.merits[target], theirs.merits[target]
    values = paired(merits_a.by_seed[names[0]], merits_b.by_seed[names[1]])
    row = measured(
        "target" if target else "average",
        target or AVERAGE,
        (names[1], names[0]),
        [second - first for first, second in zip(*values, strict=True)],
        len({*ours.seeds} & {*theirs.seeds}),
        alpha=ours.experiment.alpha,
        decimals=min(merits_a.decimals, merits_b.decimals),
        overlap=max(ours.overlap[target], theirs.overlap[target]),
    )
    for side, name, merits in zip("ab", names, values, strict=True):
        _, mean, error = summarize(merits)
        row |= {f"method_{side}": name, f"mean_{side}": abs(mean), f"standard_error_{side}": error}
    return row


def align_report(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str], *, complete: bool) -> Report:
    """What `msda-bench compare A B` answers; `complete` tells whether both folders are."""
    pairs = [*align(a, b, match)]
    said = {*folder_lines(b)}
    both = [line for line in folder_lines(a) if line in said]
    sections, last = [], [*([Line("caption", LEGEND)] if pairs else []), *both]
    for side, runs, known in (("A", a, {pair.a.name for pair in pairs}), ("B", b, {pair.b.name for pair in pairs})):
        plan = results_of(runs).plan
        sections.append(Section(lines=(Line("line", f"{side}: {results_of(runs).folder} (suite {plan.suite})"),)))
        alone = [f"{table.name} ({table.dataset})" for table in plan.experiments if table.name not in known]
        last += [Line("line", f"only in {side}: {name}, a whole experiment") for name in alone]
        last += [line._replace(text=f"{side}: {line.text}") for line in folder_lines(runs) if line not in both]
    for pair in pairs:
        lines = tuple(Line("line", line) for line in (*_sentences(pair), ""))
        sections.append(Section((_table(pair),) if len(pair.rows) else (), lines))
    rows = pd.concat([pair.rows for pair in pairs] or [pd.DataFrame(columns=COLUMNS)], ignore_index=True)
    sections.append(Section(lines=(*last, Line("verdict", "; ".join(_verdict(pairs, rows))))))
    return Report(tuple(sections), rows, complete and any(pair.ok for pair in pairs))


def _table(pair: Aligned) -> Table:
    rows, names = pair.rows, ("method_a", "method_b")
    unit = Unit.of(pair.a.measure, rows.groupby("target", sort=False)[["mean_a", "mean_b"]].min().min(axis=1))
    columns = (
        Column("method", "text", names),
        Column("target", "text", ["target"]),
        Column("A", "number", ["mean_a"], unit),
        Column("B", "number", ["mean_b"], unit),
        Column("difference", "difference", ["mean_difference"], unit),
        Column("interval", "interval", ["difference_low", "difference_high"], unit),
        Column("p", "p in brackets", ["p_holm", "outcome", "reason", "n_paired"]),
        Column("n", "n/planned", ["n_paired", "n_planned"]),
    )
    return Table(pair.a.name, f"{pair.name}: {unit.label}", rows, columns, about=names)


def _sentences(pair: Aligned) -> Iterator[str]:
    if pair.rows.empty:
        yield f"{pair.name}: no method and target in common"
    a, b = pair.a, pair.b
    for side, table, other, known in (("A", a, b, pair.methods.keys()), ("B", b, a, pair.methods.values())):
        only = {
            "methods": ", ".join(method.name for method in table.methods if method.name not in known),
            "targets": ", ".join(target for target in table.targets if target not in other.targets),
            "seeds": spans(seed for seed in table.seeds if seed not in other.seeds),
        }
        if parts := [f"{what} {names}" for what, names in only.items() if names]:
            yield f"only in {side}: {'; '.join(parts)}"
    if a.alpha != b.alpha:
        yield f"differs: alpha: A {a.alpha:g}, B {b.alpha:g}; that of A counts here"
    yield from (f"differs: {what}: A {ours}, B {theirs}: {runs}" for (what, ours, theirs), runs in pair.changes.items())
    cells = f"{pair.same_cell} with the same key, {pair.equal} with an equal result"
    yield f"same: {pair.ok} of {pair.planned} runs that both plan are ok in both, {cells}"


def _verdict(pairs: Sequence[Aligned], rows: pd.DataFrame) -> Iterator[str]:
    n_ok = sum(pair.ok for pair in pairs)
    if not n_ok:
        yield "nothing in common: no run is ok in both"
        for pair in (pair for pair in pairs if not pair.methods):
            example = f"{pair.a.methods[0].name}={pair.b.methods[0].name}"
            yield f"if methods have other names in B, pair them, as in --match {example}"
        return
    if sum(pair.equal for pair in pairs) == n_ok:
        yield f"the same: {n_ok} runs have equal results"
    else:
        means = rows[(rows["target"] == AVERAGE).to_numpy()]
        better, worse = (means.loc[means["outcome"] == outcome, "method_a"].tolist() for outcome in (BETTER, WORSE))
        ahead, behind = (f"{len(names)} ({', '.join(names)})" if names else "0" for names in (better, worse))
        yield f"of {len(means)} methods B is better for {ahead}, worse for {behind}"
    if lost := sum(pair.planned for pair in pairs) - n_ok:
        yield f"{lost} runs are not ok in both"
    if changed := [*dict.fromkeys(what for pair in pairs for what, *_ in pair.changes)]:
        yield f"what differs: {', '.join(changed[:_MOST])}{', ...' if len(changed) > _MOST else ''}"
