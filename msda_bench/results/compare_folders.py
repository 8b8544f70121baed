"""Compares two result folders run by run: how their records differ, and their scores by exact tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results import formats
from msda_bench.results.decision import BETTER, WORSE, PairedComparison, compared_between, test_family
from msda_bench.results.estimates import summarize
from msda_bench.results.formats import Unit
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.load import read_records
from msda_bench.results.model_selection import select
from msda_bench.results.notes import folder_lines
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.results.runs import results_of
from msda_bench.results.scores import ScoreColumn, ScoreTable, paired, score_tables
from msda_bench.results.words import spans
from msda_bench.store import Record
from msda_bench.store.record import same_result
from msda_bench.suite.issues import hint, shown_value
from msda_bench.suite.plan import Experiment

COLUMNS = (
    *("experiment_a", "experiment_b", "target", "method_a", "method_b", "outcome", "reason", "n_planned", "n_paired"),
    *("mean_a", "standard_error_a", "mean_b", "standard_error_b"),
    *("mean_difference", "difference_low", "difference_high", "p_holm", "detectable"),
)
"""The columns of `--format csv`."""
LEGEND = (
    "A, B: means over the pairs; a pair is a seed that is ok in both; average: over the targets that both have. "
    "difference: B less A, positive where B is better; interval: of the mean, level 1 - alpha, allowing for the "
    "examples that seeds share. p: exact two-sided signed-rank test, after Holm's correction over the methods; in "
    "brackets: too few pairs to be significant, however they differ. n: pairs that are ok / planned by both."
)


@dataclass(frozen=True)
class ComparedExperiment:
    """An experiment of folder A and the matching one of folder B.

    Attributes:
        a: that of A.
        b: that of B.
        methods: the names in B by those in A.
        rows: one for each target (`average` last) and method; differences are positive if B is better.
        changes: the settings that differ between paired runs, and in how many of them.
        planned: the number of runs that both folders plan.
        ok: how many of these are ok in both.
        equal: how many of these have an equal result to the last bit, curves included.
    """

    a: Experiment
    b: Experiment
    methods: Mapping[str, str]
    rows: pd.DataFrame
    changes: Counter[str]
    planned: int
    ok: int
    equal: int


def compare_folders(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str]) -> Iterator[ComparedExperiment]:
    """Pairs the runs of two folders by experiment, target, method and seed, and compares them.

    Experiments pair by name, dataset and task. `match` gives names in B by names in A, for methods or experiments of
    other names; if it names experiments, only those are compared.

    Raises:
        BenchError: a method or experiment to match is missing, or two paired experiments use different metrics.
        StoreError: a record cannot be read.
    """
    a = select(a)
    b = select(b)
    experiments_a = results_of(a).plan.experiments
    experiments_b = results_of(b).plan.experiments
    _refuse_unknown("A", experiments_a, list(match))
    _refuse_unknown("B", experiments_b, list(match.values()))
    for one, other in _experiment_pairs(experiments_a, experiments_b, match):
        if one.measure != other.measure:
            metrics = f"{one.measure.name} in A and {other.measure.name} in B"
            raise BenchError(f"{one.name}: uses {metrics}; name one metric for both with --metric")
        methods = _method_pairs(one, other, match)
        yield _compared(one, other, own_rows(one, a), own_rows(other, b), methods)


def _experiment_pairs(
    experiments_a: Sequence[Experiment], experiments_b: Sequence[Experiment], match: Mapping[str, str]
) -> list[tuple[Experiment, Experiment]]:
    """The experiments that `match` pairs; if it pairs none, those of the same name, dataset and task."""
    named = []
    alike = []
    for one in experiments_a:
        for other in experiments_b:
            if match.get(one.name) == other.name:
                named.append((one, other))
            if _identity(one) == _identity(other):
                alike.append((one, other))
    return named or alike


def _identity(experiment: Experiment) -> tuple[str, str, str]:
    return experiment.name, experiment.dataset, experiment.task


def _method_pairs(one: Experiment, other: Experiment, match: Mapping[str, str]) -> dict[str, str]:
    """The names of methods in B by their names in A, for methods that both experiments have."""
    names_b = {method.name for method in other.methods}
    pairs = {}
    for method in one.methods:
        name_b = match.get(method.name, method.name)
        if name_b in names_b:
            pairs[method.name] = name_b
    return pairs


def _refuse_unknown(side: str, experiments: Sequence[Experiment], names: Sequence[str]) -> None:
    known: list[str] = []
    for experiment in experiments:
        known += [method.name for method in experiment.methods]
    known += [experiment.name for experiment in experiments]
    absent = []
    for name in names:
        if name not in known:
            similar = hint(name, dict.fromkeys(known))
            absent.append(f"--match: {side} has no method or experiment {shown_value(name)}{similar}")
    if absent:
        raise BenchError(*absent)


def _compared(
    one: Experiment, other: Experiment, a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]
) -> ComparedExperiment:
    runs_a, runs_b = _paired_runs(a, b, methods)
    is_recorded = ((runs_a["status"] != "missing") & (runs_b["status"] != "missing")).to_numpy()
    changes, equal = _compare_records(runs_a[is_recorded], runs_b[is_recorded])
    is_ok = (runs_a["status"] == "ok") & (runs_b["status"] == "ok")
    rows = _scores(a, b, methods)
    rows["experiment_a"] = one.name
    rows["experiment_b"] = other.name
    return ComparedExperiment(
        a=one,
        b=other,
        methods=methods,
        rows=rows,
        changes=changes,
        planned=len(runs_a),
        ok=int(is_ok.sum()),
        equal=equal,
    )


def _paired_runs(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the runs that both folders plan: two frames of equal length, in the order of A."""
    place = ["method", "target", "seed"]
    texts = {"method": object, "target": object}  # since the categories of two folders differ
    places_a = a[place].astype(texts)
    places_a["method"] = places_a["method"].map(dict(methods)).astype(object)
    places_a["row_a"] = a.index
    places_b = b[place].astype(texts)
    places_b["row_b"] = b.index
    both = places_a.merge(places_b, on=place)
    runs_a = a.loc[both["row_a"]].reset_index(drop=True)
    runs_b = b.loc[both["row_b"]].reset_index(drop=True)
    return runs_a, runs_b


def _compare_records(runs_a: pd.DataFrame, runs_b: pd.DataFrame) -> tuple[Counter[str], int]:
    """How many paired runs differ in each setting, and how many have an equal result."""
    changes: Counter[str] = Counter()
    equal = 0
    for (_, record_a, _), (_, record_b, _) in zip(read_records(runs_a), read_records(runs_b), strict=True):
        changes.update(_different_settings(record_a, record_b))
        if record_a.status == "ok" and same_result(record_a, record_b):
            equal += 1
    return changes, equal


def _different_settings(a: Record, b: Record) -> list[str]:
    """The settings of two runs that differ, such as `training` or `fingerprint`."""
    names = a.cell.keys() | b.cell.keys()
    return sorted(name for name in names if a.cell.get(name) != b.cell.get(name))


def _scores(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> pd.DataFrame:
    """The rows of an experiment: the pairs of methods at each target, and on average."""
    common = set(a["target"]) & set(b["target"])
    # The runs are of one experiment each, which has a single table, or none if no target is in both.
    tables_a = score_tables(a[a["target"].isin(common)])
    tables_b = score_tables(b[b["target"].isin(common)])
    rows: list[dict[str, Any]] = []
    for table_a, table_b in zip(tables_a, tables_b, strict=True):
        for target in table_a.columns:
            pairs = [(name_b, name_a) for name_a, name_b in methods.items()]
            compared = [compared_between(table_b, table_a, target, pair) for pair in pairs]
            for comparison in test_family(compared, "methods"):
                row = asdict(comparison)
                row["target"] = AVERAGE if target is None else target
                row.update(_means(table_a, table_b, comparison, target))
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS).astype({"n_planned": "Int64", "n_paired": "Int64"})


def _means(
    table_a: ScoreTable, table_b: ScoreTable, comparison: PairedComparison, target: ScoreColumn
) -> dict[str, Any]:
    """Both methods with their means over these seeds, and the standard errors of these."""
    name_b, name_a = comparison.pair
    values_a, values_b = paired(table_a.of(name_a, target), table_b.of(name_b, target, table_a.seeds))
    summary_a = summarize(values_a)
    summary_b = summarize(values_b)
    return {
        "method_a": name_a,
        "mean_a": abs(summary_a.mean),
        "standard_error_a": summary_a.standard_error,
        "method_b": name_b,
        "mean_b": abs(summary_b.mean),
        "standard_error_b": summary_b.standard_error,
    }


def folders_report(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str], *, complete: bool) -> Report:
    """The report of `msda-bench compare A B`; `complete` tells whether both folders are."""
    pairs = list(compare_folders(a, b, match))
    sections = [Section(lines=(_folder_line("A", a),)), Section(lines=(_folder_line("B", b),))]
    for pair in pairs:
        tables = () if pair.rows.empty else (_table(pair),)
        lines = [Line("line", sentence) for sentence in _sentences(pair)]
        sections.append(Section(tables, (*lines, Line("line", ""))))
    rows = pd.DataFrame(columns=COLUMNS)
    last: list[Line] = []
    if pairs:
        rows = pd.concat([pair.rows for pair in pairs], ignore_index=True)
        last.append(Line("caption", LEGEND))
    last += _lines_of_side("A", a, {pair.a.name for pair in pairs})
    last += _lines_of_side("B", b, {pair.b.name for pair in pairs})
    last.append(Line("verdict", _verdict(pairs, rows)))
    sections.append(Section(lines=tuple(last)))
    return Report(tuple(sections), rows, complete and any(pair.ok for pair in pairs))


def _folder_line(side: str, runs: pd.DataFrame) -> Line:
    results = results_of(runs)
    return Line("line", f"{side}: {results.folder} (suite {results.plan.suite})")


def _lines_of_side(side: str, runs: pd.DataFrame, compared: Collection[str]) -> Iterator[Line]:
    """The experiments of a folder that are not compared, and its notes and problems."""
    for experiment in results_of(runs).plan.experiments:
        if experiment.name not in compared:
            yield Line("line", f"only in {side}: {experiment.name} ({experiment.dataset}), a whole experiment")
    for line in folder_lines(runs):
        yield line._replace(text=f"{side}: {line.text}")


def _table(pair: ComparedExperiment) -> Table:
    rows = pair.rows
    names = ("method_a", "method_b")
    least = rows.groupby("target", sort=False)[["mean_a", "mean_b"]].min()
    unit = Unit.of(pair.a.measure, least.min(axis=1))
    columns = (
        Column("method", formats.text, names),
        Column("target", formats.text, ["target"]),
        Column("A", formats.number, ["mean_a"], unit),
        Column("B", formats.number, ["mean_b"], unit),
        Column("difference", formats.difference, ["mean_difference"], unit),
        Column("interval", formats.interval, ["difference_low", "difference_high"], unit),
        Column("p", formats.p_in_brackets, ["p_holm", "outcome", "reason", "n_paired"]),
        Column("n", formats.of_planned, ["n_paired", "n_planned"]),
    )
    return Table(pair.a.name, f"{_name(pair)}: {unit.label}", rows, columns, about=names)


def _name(pair: ComparedExperiment) -> str:
    name = pair.a.name
    if pair.b.name != name:
        name = f"{name}, in B {pair.b.name}"
    return f"{name} ({pair.a.dataset})"


def _sentences(pair: ComparedExperiment) -> Iterator[str]:
    if pair.rows.empty:
        yield f"{_name(pair)}: no method and target in common"
    only_a = _only_in(pair.a, pair.b, pair.methods.keys())
    if only_a:
        yield f"only in A: {only_a}"
    only_b = _only_in(pair.b, pair.a, pair.methods.values())
    if only_b:
        yield f"only in B: {only_b}"
    if pair.a.alpha != pair.b.alpha:
        yield f"differs: alpha: A {pair.a.alpha:g}, B {pair.b.alpha:g}; that of A counts here"
    if pair.changes:
        settings = [f"{name} in {count} runs" for name, count in sorted(pair.changes.items())]
        yield f"differs: {', '.join(settings)}"
    yield f"same: {pair.ok} of {pair.planned} runs that both plan are ok in both, {pair.equal} with an equal result"


def _only_in(own: Experiment, other: Experiment, compared: Collection[str]) -> str:
    """The methods, targets and seeds that the other experiment does not have; `compared` are the paired methods."""
    methods = [method.name for method in own.methods if method.name not in compared]
    targets = [target for target in own.targets if target not in other.targets]
    seeds = [seed for seed in own.seeds if seed not in other.seeds]
    parts = []
    if methods:
        parts.append(f"methods {', '.join(methods)}")
    if targets:
        parts.append(f"targets {', '.join(targets)}")
    if seeds:
        parts.append(f"seeds {spans(seeds)}")
    return "; ".join(parts)


def _verdict(pairs: Sequence[ComparedExperiment], rows: pd.DataFrame) -> str:
    n_ok = sum(pair.ok for pair in pairs)
    if n_ok == 0:
        return "nothing in common: no run is ok in both; --match X=Y pairs methods or experiments of other names"
    if sum(pair.equal for pair in pairs) == n_ok:
        return f"the same: {n_ok} runs have equal results"
    means = rows[(rows["target"] == AVERAGE).to_numpy()]
    better = _count_and_names(means, BETTER)
    worse = _count_and_names(means, WORSE)
    text = f"of {len(means)} methods B is better for {better}, worse for {worse}"
    not_ok = sum(pair.planned for pair in pairs) - n_ok
    if not_ok:
        text += f"; {not_ok} runs are not ok in both"
    return text


def _count_and_names(means: pd.DataFrame, outcome: str) -> str:
    names = means.loc[means["outcome"] == outcome, "method_a"].tolist()
    if not names:
        return "0"
    return f"{len(names)} ({', '.join(names)})"
