"""Reports the effect of each source on a target: its weight, its worth, and what is lost without it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd

from msda_bench.api import Dataset
from msda_bench.errors import BenchError, PluginError
from msda_bench.plugin_errors import plugin_errors
from msda_bench.plugins import Registry
from msda_bench.results import formats
from msda_bench.results.decision import compared_between, test_family
from msda_bench.results.estimates import mean_of, summarize
from msda_bench.results.formats import Unit
from msda_bench.results.frame import load_curves
from msda_bench.results.load import load_cells
from msda_bench.results.model_selection import select
from msda_bench.results.notes import folder_lines, is_whole
from msda_bench.results.report import TEST_COLUMNS, Column, Line, Report, Section, Table
from msda_bench.results.runs import ok_runs, recorded_runs, results_of, with_results
from msda_bench.results.scores import ScoreTable, paired, score_tables
from msda_bench.suite.plan import Experiment
from msda_bench.suite.run_spec import canonical_json

_DECISION = ("outcome", "reason", "n_family", "n_planned", "n_paired")
_SIZES = ("mean_difference", "difference_low", "difference_high", "p", "p_holm", "detectable")
COLUMNS = (
    *("experiment", "dataset", "method", "target", "metric", "alpha", "n_ok", "mean", "standard_error"),
    *("source", "weight", "worth", "without", *_DECISION, "mean_without", *_SIZES),
)
LEGEND = (
    "weight: alpha, a moving average over steps at the end of the last epoch, mean over seeds. worth: the source's "
    "worth according to the dataset, for classification the accuracy on the target of the best classifier for the "
    "source, in percent. without: mean score without the source, over the pairs, a pair being a seed that is ok with "
    "and without it. change: mean difference, positive if the target is better off without the source; p: exact "
    "two-sided Wilcoxon signed-rank test, after Holm's correction over the sources of the method and target, in "
    "brackets where there are too few pairs to be significant; n: pairs at hand / planned."
)
_TEXTS = ("experiment", "dataset", "method", "target", "metric", "source", "without", "outcome", "reason")
_WHOLE = ("n_ok", "n_family", "n_planned", "n_paired")
_PLACE = ["experiment", "method", "target"]


class SourceTransferability:
    """The worth of sources by dataset and target; `notes` tell where it is unknown, and why."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[str, str], Mapping[str, float]] = {}
        self.notes: dict[str, None] = {}

    def of(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        """The worth by source, in percent; empty if the dataset of a record's cell does not know it or fails."""
        asked = canonical_json(dict(dataset)), target
        if asked not in self._known:
            try:
                self._known[asked] = self._ask(dataset, target)
            except BenchError as error:
                self._known[asked] = {}
                note = f"the worth of the sources of {dataset.get('name')} is unknown: {error.lines[0]}"
                self.notes[note] = None
        return self._known[asked]

    def _ask(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        entry = self._registry.entry("dataset", str(dataset.get("name")))
        version = dataset.get("version")
        if entry.cls.version != version:
            raise PluginError(f"version {entry.cls.version} is installed, the records have version {version}")
        with plugin_errors(()):
            component = entry.recreate(dataset.get("params", {}))
            if not isinstance(component, Dataset):
                return {}
            return dict(component.relatedness(target))


def final_weights(curves: pd.DataFrame) -> pd.DataFrame:
    """The weights in the last epoch, mean over the ok seeds, for methods that weigh single sources.

    Returns:
        `experiment, method, target, source, weight`, one row per domain, in the curves' order. The weights of a split
        domain's parts are added up; the sum is NaN if a seed misses any part.
    """
    run = [*_PLACE, "seed"]
    ok = ok_runs(curves).astype(dict.fromkeys(_PLACE, object))
    last_epoch = ok.groupby(run)["epoch"].transform("max")
    last = ok[ok["epoch"] == last_epoch]
    of_run = last.groupby(run)
    is_pooled = of_run["pooled"].transform("any").astype(bool)
    n_sources = of_run["source"].transform("size")
    last = last[~is_pooled & (n_sources > 1)]
    of_part = last.groupby([*_PLACE, "part_of", "source"], sort=False, as_index=False)
    means = of_part.agg(weight=("weight", "mean"), n=("weight", "size"))
    seeds = last.groupby(_PLACE)["seed"].nunique().rename("n_seeds")
    means = means.merge(seeds, on=_PLACE)
    means["weight"] = means["weight"].where(means["n"] == means["n_seeds"])
    means["source"] = means["part_of"]
    of_domain = means.groupby([*_PLACE, "source"], sort=False)
    return of_domain["weight"].sum(skipna=False).reset_index()


def sources(runs: pd.DataFrame, worth: SourceTransferability) -> pd.DataFrame:
    """Reports each source, for all methods that weigh single sources or were also trained without one.

    The runs without a source are those of the experiment that `leave_out_sources` made for it; it has no rows itself.

    Returns:
        One row for each experiment, method, target and source; the parts of a split domain share one row. `without`
        names the experiment without the source. The columns after it compare the scores without the source with
        those of all sources, over the seeds that are ok in both: `better` is negative transfer, `worse` positive;
        `p_holm` is corrected over the sources.
    """
    chosen = select(runs)
    tables = {table.experiment.name: table for table in score_tables(chosen)}
    curves = final_weights(load_curves(chosen))
    weights = {place: own.set_index("source")["weight"] for place, own in curves.groupby(_PLACE)}
    rows: list[dict[str, Any]] = []
    for place, cell in _cells(runs).items():
        experiment, method, target = place
        whole = tables[experiment]
        if _whole(whole.experiment, tables) is not None:
            continue
        left_out = _left_out(experiment, tables, method, target)
        if place not in weights and not left_out:
            continue
        weight = weights.get(place, pd.Series(dtype=float))
        worth_of = worth.of(cell["dataset"], target)
        about = _about(whole, method, target)
        without = _without(whole, left_out, method, target)
        for source in dict.fromkeys([*cell["sources"], *weight.index]):
            row = dict(without.get(source, {}))
            row.update(about)
            row["source"] = source
            row["weight"] = weight.get(source)
            row["worth"] = worth_of.get(source)
            rows.append(row)
    frame = with_results(pd.DataFrame(rows, columns=[*COLUMNS]), results_of(runs))
    numbers = set(COLUMNS).difference(_WHOLE, _TEXTS)
    return frame.astype(dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(numbers, float))


def _left_out(whole: str, tables: Mapping[str, ScoreTable], method: str, target: str) -> dict[str, ScoreTable]:
    """The experiments that repeat a whole one without a source, by this source."""
    left_out = {}
    for less in tables.values():
        is_repeated = method in less.methods and target in less.targets
        if is_repeated and _whole(less.experiment, tables) == whole:
            left_out[str(less.experiment.without)] = less
    return left_out


def _about(whole: ScoreTable, method: str, target: str) -> dict[str, Any]:
    """The columns that are equal for all sources of a method and target."""
    score = summarize(whole.known(method, target))
    return {
        "experiment": whole.experiment.name,
        "dataset": whole.experiment.dataset,
        "method": method,
        "target": target,
        "metric": whole.metric,
        "alpha": whole.experiment.alpha,
        "n_ok": score.n,
        "mean": whole.sign * score.mean,
        "standard_error": score.standard_error,
    }


def _without(
    whole: ScoreTable, left_out: Mapping[str, ScoreTable], method: str, target: str
) -> dict[str, dict[str, Any]]:
    """By source, the columns that compare the experiment without it with the whole one."""
    comparisons = [compared_between(less, whole, target, (method, method)) for less in left_out.values()]
    rows = {}
    for source, comparison in zip(left_out, test_family(comparisons, "sources"), strict=True):
        less = left_out[source]
        _, scores = paired(whole.of(method, target), less.of(method, target, whole.seeds))
        row = {name: getattr(comparison, name) for name in (*_DECISION, *_SIZES)}
        row["without"] = less.experiment.name
        row["mean_without"] = less.sign * mean_of(scores)
        rows[source] = row
    return rows


def _whole(experiment: Experiment, known: Collection[str]) -> str | None:
    """The name of the experiment that this one repeats without a source; None if it repeats none."""
    if not experiment.without:
        return None
    names = [name for name in known if experiment.name.startswith(f"{name}-without-")]
    return max(names, key=len, default=None)


def _cells(runs: pd.DataFrame) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """The cell of the first run of each experiment, method and target that has a record with sources."""
    recorded = recorded_runs(runs).astype(dict.fromkeys(_PLACE, object))
    first = recorded.drop_duplicates(_PLACE)
    cells = load_cells(first)
    of_places: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for key, experiment, method, target in first[["key", *_PLACE]].itertuples(index=False, name=None):
        cell = cells.get(key)
        if cell is not None and "sources" in cell:
            of_places[experiment, method, target] = cell
    return of_places


def sources_tables(rows: pd.DataFrame) -> Iterator[Table]:
    """A table for each experiment of a frame from `sources`."""
    for table in results_of(rows).plan.experiments:
        block = rows[(rows["experiment"] == table.name).to_numpy()]
        if block.empty:
            continue
        unit = Unit.of(table.measure, block[["mean", "mean_without"]].min())
        columns = [
            Column("method", formats.text, ["method"]),
            Column("target", formats.text, ["target"]),
            Column("with all", formats.number, ["mean"], unit),
            Column("source", formats.text, ["source"]),
            Column("weight", formats.decimals(3), ["weight"]),
            Column("worth", formats.decimals(1), ["worth"]),
        ]
        if block["without"].notna().any():
            columns += [
                Column("without", formats.number, ["mean_without"], unit),
                Column("change", formats.difference, ["mean_difference"], unit),
                *TEST_COLUMNS,
            ]
        title = f"{table.name} ({table.dataset}): {unit.label}; alpha {table.alpha:g}"
        yield Table(f"{table.name}-sources", title, block, tuple(columns))


def sources_report(runs: pd.DataFrame, worth: SourceTransferability) -> Report:
    """The report of `msda-bench sources`: each source's part in each method and target."""
    rows = sources(runs, worth)
    line = Line("caption", LEGEND)
    if rows.empty:
        none = "no method here weighs single sources, no run leaves one out, or none of them has a result"
        line = Line("nothing", none, wrapped=False)
    tables = Section(tuple(sources_tables(rows)))
    below = Section(lines=(line, *folder_lines(runs, worth.notes)))
    return Report((tables, below), rows, is_whole(runs))
