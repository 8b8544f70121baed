"""Compares two result folders run by run: what differs between their records, and the scores, by exact tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results import formats
from msda_bench.results.decision import BETTER, WORSE, PairedComparison, paired_statistics, test_family
from msda_bench.results.estimates import summarize
from msda_bench.results.formats import Unit
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.load import read_records
from msda_bench.results.model_selection import select
from msda_bench.results.notes import folder_lines
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.results.runs import results_of
from msda_bench.results.scores import ScoreColumn as Target
from msda_bench.results.scores import ScoreTable, paired, score_tables
from msda_bench.results.words import spans
from msda_bench.store import Record
from msda_bench.store.record import same_result
from msda_bench.suite.issues import hint, shown
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
    a, b = select(a), select(b)
    ours, theirs = results_of(a).plan.experiments, results_of(b).plan.experiments
    _refuse_unknown("A", ours, list(match))
    _refuse_unknown("B", theirs, list(match.values()))
    named = [(one, other) for one in ours for other in theirs if match.get(one.name) == other.name]
    alike = [(one, other) for one in ours for other in theirs if _identity(one) == _identity(other)]
    for one, other in named or alike:
        if one.measure != other.measure:
            metrics = f"{one.measure.name} in A and {other.measure.name} in B"
            raise BenchError(f"{one.name}: uses {metrics}; name one metric for both with --metric")
        there = {method.name for method in other.methods}
        partners = {method.name: match.get(method.name, method.name) for method in one.methods}
        methods = {name: partner for name, partner in partners.items() if partner in there}
        yield _compared(one, other, own_rows(one, a), own_rows(other, b), methods)


def _identity(experiment: Experiment) -> tuple[str, str, str]:
    return experiment.name, experiment.dataset, experiment.task


def _refuse_unknown(side: str, experiments: Sequence[Experiment], names: Sequence[str]) -> None:
    known = [method.name for experiment in experiments for method in experiment.methods]
    known += [experiment.name for experiment in experiments]
    what = f"--match: {side} has no method or experiment"
    if absent := [f"{what} {shown(name)}{hint(name, dict.fromkeys(known))}" for name in names if name not in known]:
        raise BenchError(*absent)


def _compared(
    ours: Experiment, theirs: Experiment, a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]
) -> ComparedExperiment:
    place = ["method", "target", "seed"]
    runs = a[place].astype({"method": object, "target": object}).assign(a=a.index)
    runs["method"] = runs["method"].map(dict(methods)).astype(object)
    both = runs.merge(b[place].astype({"method": object, "target": object}).assign(b=b.index), on=place)
    first, second = a.loc[both["a"]].reset_index(drop=True), b.loc[both["b"]].reset_index(drop=True)
    there = ((first["status"] != "missing") & (second["status"] != "missing")).to_numpy()
    changes: Counter[str] = Counter()
    equal = 0
    for (_, record, _), (_, other, _) in zip(read_records(first[there]), read_records(second[there]), strict=True):
        changes.update(_different_settings(record, other))
        equal += record.status == "ok" and same_result(record, other)
    ok = int(((first["status"] == "ok") & (second["status"] == "ok")).sum())
    rows = _scores(a, b, methods).assign(experiment_a=ours.name, experiment_b=theirs.name)
    return ComparedExperiment(ours, theirs, methods, rows[[*COLUMNS]], changes, len(both), ok, equal)


def _different_settings(a: Record, b: Record) -> list[str]:
    """The settings of two runs that differ, such as `training` or `fingerprint`."""
    names = a.cell.keys() | b.cell.keys()
    return sorted(name for name in names if a.cell.get(name) != b.cell.get(name))


def _scores(a: pd.DataFrame, b: pd.DataFrame, methods: Mapping[str, str]) -> pd.DataFrame:
    """The rows of an experiment: the pairs of methods at each target, and on average."""
    common = set(a["target"]) & set(b["target"])
    ours, theirs = (list(score_tables(runs[runs["target"].isin(common)])) for runs in (a, b))
    rows: list[dict[str, Any]] = []
    for grid_a, grid_b in zip(ours, theirs, strict=True):  # at most one experiment each
        for target in grid_a.columns:
            pairs = [_methods_compared(grid_a, grid_b, names, target) for names in methods.items()]
            for names, pair in zip(methods.items(), test_family(pairs, "methods"), strict=True):
                rows.append(asdict(pair) | _means(grid_a, grid_b, names, target))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"n_planned": "Int64", "n_paired": "Int64"})


def _methods_compared(ours: ScoreTable, theirs: ScoreTable, names: tuple[str, str], target: Target) -> PairedComparison:
    """A method of B against one of A, over the seeds that both have."""
    merits_a, merits_b = ours.merits[target], theirs.merits[target]
    values_a, values_b = paired(merits_a.by_seed[names[0]], merits_b.by_seed[names[1]])
    return paired_statistics(
        "target" if target else "average",
        target or AVERAGE,
        (names[1], names[0]),
        [second - first for first, second in zip(values_a, values_b, strict=True)],
        len({*ours.seeds} & {*theirs.seeds}),
        metric=ours.metric,
        alpha=ours.experiment.alpha,
        decimals=min(merits_a.decimals, merits_b.decimals),
        overlap=max(ours.overlap[target], theirs.overlap[target]),
    )


def _means(ours: ScoreTable, theirs: ScoreTable, names: tuple[str, str], target: Target) -> dict[str, Any]:
    """The mean of both methods over these seeds, with its standard error."""
    both = paired(ours.merits[target].by_seed[names[0]], theirs.merits[target].by_seed[names[1]])
    row: dict[str, Any] = {}
    for side, name, values in zip("ab", names, both, strict=True):
        _, mean, error = summarize(values)
        row |= {f"method_{side}": name, f"mean_{side}": abs(mean), f"standard_error_{side}": error}
    return row


def folders_report(a: pd.DataFrame, b: pd.DataFrame, match: Mapping[str, str], *, complete: bool) -> Report:
    """What `msda-bench compare A B` answers; `complete` tells whether both folders are."""
    pairs = [*compare_folders(a, b, match)]
    sections, last = [], [Line("caption", LEGEND)] if pairs else []
    for side, runs, known in (("A", a, {pair.a.name for pair in pairs}), ("B", b, {pair.b.name for pair in pairs})):
        results = results_of(runs)
        sections.append(Section(lines=(Line("line", f"{side}: {results.folder} (suite {results.plan.suite})"),)))
        alone = [f"{one.name} ({one.dataset})" for one in results.plan.experiments if one.name not in known]
        last += [Line("line", f"only in {side}: {name}, a whole experiment") for name in alone]
        last += [line._replace(text=f"{side}: {line.text}") for line in folder_lines(runs)]
    for pair in pairs:
        lines = tuple(Line("line", line) for line in (*_sentences(pair), ""))
        sections.append(Section((_table(pair),) if len(pair.rows) else (), lines))
    rows = pd.concat([pair.rows for pair in pairs] or [pd.DataFrame(columns=COLUMNS)], ignore_index=True)
    sections.append(Section(lines=(*last, Line("verdict", _verdict(pairs, rows)))))
    return Report(tuple(sections), rows, complete and any(pair.ok for pair in pairs))


def _table(pair: ComparedExperiment) -> Table:
    rows, names = pair.rows, ("method_a", "method_b")
    unit = Unit.of(pair.a.measure, rows.groupby("target", sort=False)[["mean_a", "mean_b"]].min().min(axis=1))
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
    both = pair.a.name if pair.a.name == pair.b.name else f"{pair.a.name}, in B {pair.b.name}"
    return f"{both} ({pair.a.dataset})"


def _sentences(pair: ComparedExperiment) -> Iterator[str]:
    if pair.rows.empty:
        yield f"{_name(pair)}: no method and target in common"
    a, b = pair.a, pair.b
    for side, own, other, known in (("A", a, b, pair.methods.keys()), ("B", b, a, pair.methods.values())):
        only = {
            "methods": ", ".join(method.name for method in own.methods if method.name not in known),
            "targets": ", ".join(target for target in own.targets if target not in other.targets),
            "seeds": spans(seed for seed in own.seeds if seed not in other.seeds),
        }
        if parts := [f"{what} {names}" for what, names in only.items() if names]:
            yield f"only in {side}: {'; '.join(parts)}"
    if a.alpha != b.alpha:
        yield f"differs: alpha: A {a.alpha:g}, B {b.alpha:g}; that of A counts here"
    if pair.changes:
        yield f"differs: {', '.join(f'{name} in {count} runs' for name, count in sorted(pair.changes.items()))}"
    yield f"same: {pair.ok} of {pair.planned} runs that both plan are ok in both, {pair.equal} with an equal result"


def _verdict(pairs: Sequence[ComparedExperiment], rows: pd.DataFrame) -> str:
    n_ok = sum(pair.ok for pair in pairs)
    if not n_ok:
        return "nothing in common: no run is ok in both; --match X=Y pairs methods or experiments of other names"
    if sum(pair.equal for pair in pairs) == n_ok:
        return f"the same: {n_ok} runs have equal results"
    means = rows[(rows["target"] == AVERAGE).to_numpy()]
    parts = []
    for word, outcome in (("better", BETTER), ("worse", WORSE)):
        names = means.loc[means["outcome"] == outcome, "method_a"].tolist()
        parts.append(f"{word} for {len(names)}" + (f" ({', '.join(names)})" if names else ""))
    without = sum(pair.planned for pair in pairs) - n_ok
    rest = f"; {without} runs are not ok in both" if without else ""
    return f"of {len(means)} methods B is {', '.join(parts)}{rest}"
