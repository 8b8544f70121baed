"""Reports the effect of each source on a target: its weight, its worth, and what is lost without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from msda_bench.api import Dataset
from msda_bench.errors import BenchError, PluginError
from msda_bench.plugin_errors import plugin_errors
from msda_bench.plugins import Registry
from msda_bench.results import formats
from msda_bench.results.decision import PairedComparison, paired_statistics, test_family
from msda_bench.results.estimates import mean_of, summarize
from msda_bench.results.formats import Unit
from msda_bench.results.frame import load_curves
from msda_bench.results.load import load_cells
from msda_bench.results.model_selection import select
from msda_bench.results.notes import folder_lines, is_whole
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.results.runs import results_of, with_results
from msda_bench.results.scores import ScoreTable, paired, score_tables
from msda_bench.suite.plan import Experiment
from msda_bench.suite.run_spec import canonical_json

COLUMNS = (
    *("experiment", "dataset", "method", "target", "metric", "alpha", "n_ok", "mean", "standard_error"),
    *("source", "weight", "worth", "without", "outcome", "reason", "n_family", "n_planned", "n_paired"),
    *("mean_without", "mean_difference", "difference_low", "difference_high", "p", "p_holm", "detectable"),
)
_OF_COMPARISON = (
    *("outcome", "reason", "n_family", "n_planned", "n_paired"),
    *("mean_difference", "difference_low", "difference_high", "p", "p_holm", "detectable"),
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
    """The worth of sources by dataset and target; notes why there is none."""

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
                self.notes[f"the worth of the sources of {dataset.get('name')} is unknown: {error.lines[0]}"] = None
        return self._known[asked]

    def _ask(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        entry, version = self._registry.entry("dataset", str(dataset.get("name"))), dataset.get("version")
        if entry.cls.version != version:
            raise PluginError(f"version {entry.cls.version} is installed, the records have version {version}")
        with plugin_errors(()):
            component = entry.recreate(dataset.get("params", {}))
            return dict(component.relatedness(target)) if isinstance(component, Dataset) else {}


def final_weights(curves: pd.DataFrame) -> pd.DataFrame:
    """The weights in the last epoch, mean over the ok seeds, for methods that weigh single sources.

    Returns:
        `experiment, method, target, source, weight`, one row per domain, in the curves' order. The weights of a split
        domain's parts are added up; the sum is NaN if a seed misses any part.
    """
    run = [*_PLACE, "seed"]
    ok = curves[curves["status"] == "ok"].astype(dict.fromkeys(_PLACE, object))
    last = ok[ok["epoch"] == ok.groupby(run)["epoch"].transform("max")]
    of_run = last.groupby(run)
    last = last[~of_run["pooled"].transform("any").astype(bool) & (of_run["source"].transform("size") > 1)]
    parts = last.groupby([*_PLACE, "part_of", "source"], sort=False, as_index=False)
    means = parts.agg(weight=("weight", "mean"), n=("weight", "size"))
    means = means.merge(last.groupby(_PLACE)["seed"].nunique().rename("n_seeds"), on=_PLACE)
    means["weight"] = means["weight"].where(means["n"] == means["n_seeds"])
    domains = means.rename(columns={"part_of": "source", "source": "part"}).groupby([*_PLACE, "source"], sort=False)
    return domains["weight"].sum(skipna=False).reset_index()


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
    known = {grid.experiment.name: grid for grid in score_tables(chosen)}
    wholes = {name: _whole(grid.experiment, known) for name, grid in known.items()}
    curves = final_weights(load_curves(chosen))
    weights = {place: own.set_index("source")["weight"] for place, own in curves.groupby(_PLACE)}
    rows: list[dict[str, Any]] = []
    for place, cell in _cells(runs).items():
        experiment, method, target = place
        if wholes[experiment] is not None:
            continue
        others = {}
        for name, less in known.items():
            if wholes[name] == experiment and method in less.methods and target in less.targets:
                others[str(less.experiment.without)] = less
        if place not in weights and not others:
            continue
        weighed = weights.get(place, pd.Series(dtype=float))
        of_source = worth.of(cell["dataset"], target)
        own = pd.DataFrame({"weight": weighed, "worth": pd.Series(of_source, dtype=float)})
        own = own.reindex([*dict.fromkeys([*cell["sources"], *weighed.index])])
        about = _about(known[experiment], method, target)
        without = _without(known[experiment], others, method, target)
        for source, values in own.iterrows():
            rows.append(without.get(str(source), {}) | about | {"source": source, **values})
    frame = with_results(pd.DataFrame(rows, columns=[*COLUMNS]), results_of(runs))
    numbers = set(COLUMNS).difference(_WHOLE, _TEXTS)
    return frame.astype(dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(numbers, float))


def _about(whole: ScoreTable, method: str, target: str) -> dict[str, Any]:
    """What all sources of a method and target have in common."""
    score = summarize(whole.merits[target].by_seed[method].values())
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
    whole: ScoreTable, others: Mapping[str, ScoreTable], method: str, target: str
) -> dict[str, dict[str, Any]]:
    """By source, the comparison with the experiment without it."""
    compared = test_family([_compare(whole, less, method, target) for less in others.values()], "sources")
    rows = {}
    for (source, less), comparison in zip(others.items(), compared, strict=True):
        _, scores = paired(whole.merits[target].by_seed[method], less.merits[target].by_seed[method])
        row = {name: getattr(comparison, name) for name in _OF_COMPARISON}
        row["without"] = less.experiment.name
        row["mean_without"] = less.sign * mean_of(scores)
        rows[source] = row
    return rows


def _whole(experiment: Experiment, known: Mapping[str, ScoreTable]) -> str | None:
    """The experiment that this one repeats without a source."""
    names = (name for name in known if experiment.without and experiment.name.startswith(f"{name}-without-"))
    return max(names, key=len, default=None)


def _cells(runs: pd.DataFrame) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """The cell of the first run of each experiment, method and target that has a record with sources."""
    recorded = runs[(runs["status"] != "missing").to_numpy()].astype(dict.fromkeys(_PLACE, object))
    recorded = recorded.drop_duplicates(_PLACE)
    cells = load_cells(recorded)
    places = recorded[["key", *_PLACE]].itertuples(index=False, name=None)
    return {(name, method, at): cells[key] for key, name, method, at in places if "sources" in cells.get(key, {})}


def _compare(whole: ScoreTable, less: ScoreTable, method: str, target: str) -> PairedComparison:
    merits = whole.merits[target]
    with_all, without = paired(merits.by_seed[method], less.merits[target].by_seed[method])
    return paired_statistics(
        "target",
        target,
        (method, method),
        [score - whole_score for score, whole_score in zip(without, with_all, strict=True)],
        len({*whole.seeds} & {*less.seeds}),
        metric=whole.metric,
        alpha=whole.experiment.alpha,
        decimals=merits.decimals,
        overlap=max(whole.overlap[target], less.overlap[target]),
    )


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
            Column("weight", formats.three_decimals, ["weight"]),
            Column("worth", formats.one_decimal, ["worth"]),
        ]
        if block["without"].notna().any():
            columns += [
                Column("without", formats.number, ["mean_without"], unit),
                Column("change", formats.difference, ["mean_difference"], unit),
                Column("p", formats.p_in_brackets, ["p_holm", "outcome", "reason", "n_paired"]),
                Column("n", formats.of_planned, ["n_paired", "n_planned"]),
            ]
        title = f"{table.name} ({table.dataset}): {unit.label}; alpha {table.alpha:g}"
        yield Table(f"{table.name}-sources", title, block, tuple(columns))


def sources_report(runs: pd.DataFrame, worth: SourceTransferability) -> Report:
    """What `msda-bench sources` answers: each source's part in each method and target."""
    rows = sources(runs, worth)
    line = Line("caption", LEGEND)
    if rows.empty:
        none = "no method here weighs single sources, no run leaves one out, or none of them has a result"
        line = Line("nothing", none, wrapped=False)
    below = Section(lines=(line, *folder_lines(runs, worth.notes)))
    return Report((Section(tuple(sources_tables(rows))), below), rows, is_whole(runs))
