"""Compares two result folders run by run: how their records differ, and their scores by exact tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results import formats
from msda_bench.results.decision import BETTER, WORSE, compared_between, test_family
from msda_bench.results.estimates import mean_of
from msda_bench.results.formats import Unit
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.load import read_records
from msda_bench.results.model_selection import select
from msda_bench.results.problems import problem_lines
from msda_bench.results.report import TEST_COLUMNS, Column, Line, Report, Section, Table
from msda_bench.results.runs import results_of
from msda_bench.results.scores import paired, score_tables
from msda_bench.results.words import listed, spans
from msda_bench.store.record import same_result
from msda_bench.suite.issues import hint, shown_value
from msda_bench.suite.plan import Experiment, Plan

COLUMNS = (
    *("experiment_a", "experiment_b", "target", "method_a", "method_b", "outcome", "reason", "n_planned", "n_paired"),
    *("mean_a", "mean_b", "mean_difference", "difference_low", "difference_high", "p_holm", "detectable"),
)
"""The columns of `--format csv`."""
LEGEND = (
    "A, B: means over the pairs; a pair is a seed that is ok in both; average: over the targets that both have. "
    "difference: B less A, positive where B is better; interval: of the mean, level 1 - alpha of A, allowing for the "
    "examples that seeds share. p: exact two-sided signed-rank test, after Holm's correction over the methods; in "
    "brackets: too few pairs to be significant, however they differ. n: pairs that are ok / planned by both."
)


def folders_report(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str], *, complete: bool) -> Report:
    """The report of `msda-bench compare A B`; `complete` tells whether both folders are.

    Experiments pair by name, dataset and task, their runs by target, method and seed. `match` gives names in B by names
    in A, for methods or experiments of other names; if it names experiments, only those are compared.

    Raises:
        BenchError: a method or experiment to match is missing, or two paired experiments use different metrics.
        StoreError: a record cannot be read.
    """
    a = select(a)
    b = select(b)
    plan_a = results_of(a).plan
    plan_b = results_of(b).plan
    _refuse_unknown("A", plan_a, match)
    _refuse_unknown("B", plan_b, match.values())
    pairs = _experiment_pairs(plan_a, plan_b, match)
    sections = []
    rows: list[dict[str, Any]] = []
    n_ok = 0
    for one, other in pairs:
        methods = _method_pairs(one, other, match)
        own_a = own_rows(one, a)
        own_b = own_rows(other, b)
        scores = list(_scores(own_a, own_b, methods))
        runs = _paired_runs(own_a, own_b, methods)
        ok = int((runs[["status_a", "status_b"]] == "ok").all(axis=1).sum())
        n_ok += ok
        changes, equal = _compare_records(own_a, own_b, runs)
        texts = [*_only("A", one, other, methods), *_only("B", other, one, methods.values())]
        if one.alpha != other.alpha:
            texts.append(f"differs: alpha: A {one.alpha:g}, B {other.alpha:g}; that of A counts here")
        if changes:
            texts.append(f"differs: {', '.join(changes)}")
        texts += [f"same: {ok} of {len(runs)} runs that both plan are ok in both, {equal} with an equal result", ""]
        lines = tuple(Line("line", text) for text in texts)
        sections.append(Section((_table(one, other, scores),), lines))
        rows += scores
    last = [
        Line("caption", LEGEND),
        *_lone("A", plan_a, [one.name for one, _ in pairs]),
        *_lone("B", plan_b, [other.name for _, other in pairs]),
        *(Line("problem", f"A: {line}") for line in problem_lines(a)),
        *(Line("problem", f"B: {line}") for line in problem_lines(b)),
        Line("verdict", _verdict(rows, n_ok)),
    ]
    sections.append(Section(lines=tuple(last)))
    return Report(tuple(sections), pd.DataFrame(rows, columns=COLUMNS), complete and n_ok > 0)


def _refuse_unknown(side: str, plan: Plan, names: Iterable[str]) -> None:
    known: dict[str, None] = {}
    for experiment in plan.experiments:
        known.update(dict.fromkeys(method.name for method in experiment.methods))
    known.update(dict.fromkeys(experiment.name for experiment in plan.experiments))
    absent = [name for name in names if name not in known]
    if absent:
        what = f"--match: {side} has no method or experiment"
        raise BenchError(*(f"{what} {shown_value(name)}{hint(name, known)}" for name in absent))


def _experiment_pairs(plan_a: Plan, plan_b: Plan, match: Mapping[str, str]) -> list[tuple[Experiment, Experiment]]:
    """The experiments that `match` pairs; if it pairs none, those of the same name, dataset and task."""
    named = []
    alike = []
    for one in plan_a.experiments:
        for other in plan_b.experiments:
            if match.get(one.name) == other.name:
                named.append((one, other))
            if (one.name, one.dataset, one.task) == (other.name, other.dataset, other.task):
                alike.append((one, other))
    pairs = named or alike
    for one, other in pairs:
        if one.measure != other.measure:
            metrics = f"{one.measure.name} in A and {other.measure.name} in B"
            raise BenchError(f"{one.name}: uses {metrics}; name one metric for both with --metric")
    return pairs


def _method_pairs(one: Experiment, other: Experiment, match: Mapping[str, str]) -> dict[str, str]:
    """The names of methods in B by their names in A, for methods that both experiments have."""
    names_b = {method.name for method in other.methods}
    pairs = {method.name: match.get(method.name, method.name) for method in one.methods}
    return {name: name_b for name, name_b in pairs.items() if name_b in names_b}


def _paired_runs(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> pd.DataFrame:
    """The runs that both folders plan, with the `status` and the label of the `row` in either folder."""
    place = ["method", "target", "seed"]
    columns = [*place, "status", "row"]
    runs_a = a.assign(row=a.index)[columns].astype(object)  # the categories of two folders differ
    runs_a["method"] = runs_a["method"].map(dict(methods)).astype(object)
    runs_b = b.assign(row=b.index)[columns].astype(object)
    return runs_a.merge(runs_b, on=place, suffixes=("_a", "_b"))


def _compare_records(a: pd.DataFrame, b: pd.DataFrame, runs: pd.DataFrame) -> tuple[list[str], int]:
    """The settings that differ, each with its number of paired runs, and how many runs have an equal result."""
    recorded = runs[(runs[["status_a", "status_b"]] != "missing").all(axis=1)]
    records_a = read_records(a.loc[recorded["row_a"]])
    records_b = read_records(b.loc[recorded["row_b"]])
    changes: Counter[str] = Counter()
    equal = 0
    for (_, one, _), (_, other, _) in zip(records_a, records_b, strict=True):
        for name in one.cell.keys() | other.cell.keys():
            changes[name] += one.cell.get(name) != other.cell.get(name)
        equal += one.status == "ok" and same_result(one, other)
    return [f"{name} in {count} runs" for name, count in sorted(changes.items()) if count], equal


def _scores(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of an experiment: the pairs of methods at each target, and on average."""
    common = set(a["target"]) & set(b["target"])
    # The runs are of one experiment each, which has a single table, or none if no target is in both.
    tables_a = score_tables(a[a["target"].isin(common)])
    tables_b = score_tables(b[b["target"].isin(common)])
    for table_a, table_b in zip(tables_a, tables_b, strict=True):
        for target in table_a.columns:
            pairs = [compared_between(table_b, table_a, target, (name_b, name_a)) for name_a, name_b in methods.items()]
            for pair in test_family(pairs, "methods"):
                own_a = table_a.of(pair.second, target)
                own_b = table_b.of(pair.first, target, table_a.seeds)
                scores_a, scores_b = paired(own_a, own_b)
                yield asdict(pair) | {
                    "experiment_a": table_a.experiment.name,
                    "experiment_b": table_b.experiment.name,
                    "target": AVERAGE if target is None else target,
                    "method_a": pair.second,
                    "method_b": pair.first,
                    "mean_a": abs(mean_of(scores_a)),
                    "mean_b": abs(mean_of(scores_b)),
                }


def _table(one: Experiment, other: Experiment, rows: list[dict[str, Any]]) -> Table:
    names = ("method_a", "method_b")
    unit = Unit.of(one.measure, [row["mean_a"] for row in rows])
    columns = (
        Column("method", formats.text, names),
        Column("target", formats.text, ["target"]),
        Column("A", formats.number, ["mean_a"], unit),
        Column("B", formats.number, ["mean_b"], unit),
        Column("difference", formats.difference, ["mean_difference"], unit),
        Column("interval", formats.interval, ["difference_low", "difference_high"], unit),
        *TEST_COLUMNS,
    )
    name = " / ".join(dict.fromkeys((one.name, other.name)))
    title = f"{name} ({one.dataset}): {unit.label}"
    return Table(one.name, title, pd.DataFrame(rows, columns=COLUMNS), columns, about=names)


def _only(side: str, own: Experiment, other: Experiment, compared: Collection[str]) -> Iterator[str]:
    """The methods, targets and seeds that the other experiment does not have; `compared` are the paired methods."""
    lone = {
        "methods": ", ".join(method.name for method in own.methods if method.name not in compared),
        "targets": ", ".join(target for target in own.targets if target not in other.targets),
        "seeds": spans(set(own.seeds).difference(other.seeds)),
    }
    parts = [f"{what} {names}" for what, names in lone.items() if names]
    if parts:
        yield f"only in {side}: {'; '.join(parts)}"


def _lone(side: str, plan: Plan, compared: Collection[str]) -> Iterator[Line]:
    for experiment in plan.experiments:
        if experiment.name not in compared:
            yield Line("line", f"only in {side}: {experiment.name} ({experiment.dataset}), a whole experiment")


def _verdict(rows: Iterable[Mapping[str, Any]], n_ok: int) -> str:
    if not n_ok:
        return "nothing in common: no run is ok in both; --match X=Y pairs methods or experiments of other names"
    names: dict[str, list[str]] = {BETTER: [], WORSE: []}
    for row in rows:
        if row["target"] == AVERAGE and row["outcome"] in names:
            names[row["outcome"]].append(row["method_a"])
    return f"B is better for {listed(names[BETTER]) or 'no method'}, worse for {listed(names[WORSE]) or 'none'}"
