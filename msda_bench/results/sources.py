"""Reports the effect of each source on a target: its weight, its worth, and the score without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.api import Component, KnowsRelatedness
from msda_bench.blame import blaming
from msda_bench.errors import BenchError, PluginError
from msda_bench.plugins import Registry
from msda_bench.results.criteria import rank_correlation
from msda_bench.results.decision import BETTER, UNKNOWN, WORSE, Row, decided, measured
from msda_bench.results.estimates import mean_of, summarize
from msda_bench.results.frame import load_curves
from msda_bench.results.notes import folder_lines, is_whole
from msda_bench.results.recorded import load_cells
from msda_bench.results.report import Column, Line, Report, Section, Table, Unit
from msda_bench.results.scores import Grid, grids, paired
from msda_bench.results.select import select
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import Search

COLUMNS = (
    *("experiment", "dataset", "method", "target", "metric", "alpha", "n_ok", "mean", "standard_error"),
    *("rank_correlation", "loss_correlation", "baseline_loss_correlation"),
    *("source", "weight", "worth", "without", "outcome", "reason", "n_family", "n_planned", "n_paired"),
    *("mean_without", "mean_difference", "standard_deviation", "median_difference", "hodges_lehmann"),
    *("hl_low", "hl_high", "wins", "ties", "losses", "p_two_sided", "p_holm", "attainable_p", "detectable"),
)
LEGEND = (
    "weight: alpha, a moving average over steps at the end of the last epoch, mean over seeds. worth: the source's "
    "worth according to the dataset, for classification the accuracy on the target of the best classifier for the "
    "source, in percent. without: mean score without the source, over the pairs, a pair being a seed that is ok with "
    "and without it. change: mean difference, positive if the target is better off without the source; p: exact "
    "two-sided Wilcoxon signed-rank test; Holm: corrected over the sources of the table; W/T/L: pairs better, equal, "
    "worse without it; n: pairs at hand / planned. transfer: negative where the target is significantly better off "
    "without the source, positive where it is worse off, or why neither was shown."
)
_TEXTS = ("experiment", "dataset", "method", "target", "metric", "source", "without", "outcome", "reason")
_WHOLE = ("n_ok", "n_family", "n_planned", "n_paired", "wins", "ties", "losses")
_TRANSFER = {BETTER: "negative", WORSE: "positive"}
"""Transfer from a source by the outcome without it."""
_PLACE = ["experiment", "method", "target"]


class Place(NamedTuple):
    """A method at a target, with all its seeds."""

    experiment: str
    method: str
    target: str


class Setting(NamedTuple):
    """The source domains of a run, its dataset, and everything else that changes its numbers, except the seed."""

    sources: tuple[str, ...]
    dataset: Mapping[str, Any]
    rest: str


class Worth:
    """The worth of sources by dataset and target; caches answers, and notes why there are none."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[str, str], Mapping[str, float]] = {}
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for each dataset that could not answer."""
        return tuple(self._notes)

    def of(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        """The worth by source, in percent; empty if the dataset of a record's cell does not know it or fails."""
        identity = (canonical_json(dict(dataset)), target)
        if identity not in self._known:
            self._known[identity] = self._ask(dataset, target)
        return self._known[identity]

    def _ask(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        try:
            with blaming(()):
                component = self._component(dataset)
                return dict(component.relatedness(target)) if isinstance(component, KnowsRelatedness) else {}
        except BenchError as error:
            self._notes[f"the worth of the sources of {dataset['name']} is unknown: {error.lines[0]}"] = None
            return {}

    def _component(self, dataset: Mapping[str, Any]) -> Component:
        entry, version = self._registry.entry("dataset", dataset["name"]), dataset["version"]
        if entry.cls.version != version:
            raise PluginError(f"version {entry.cls.version} is installed, the records have version {version}")
        return entry.recreate(dataset["params"])


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
    domains = means.groupby([*_PLACE, "part_of"], sort=False, as_index=False)
    return domains.agg(weight=("weight", lambda weights: weights.sum(skipna=False))).rename(
        columns={"part_of": "source"}
    )


def sources(runs: pd.DataFrame, worth: Worth) -> pd.DataFrame:
    """Reports each source, for all methods that weigh single sources or were also trained without one.

    The runs without a source are those of another experiment that differs only in this source and uses the same
    metric. That experiment has no rows itself.

    Args:
        runs: a frame from `load_results`; records are read again from their folder.
        worth: provides the worth of sources, as known to their datasets.

    Returns:
        One row for each experiment, method, target and source; the parts of a split domain share one row. `without`
        names the experiment without the source. The columns after it compare the scores without the source with
        those of all sources, over the seeds that are ok in both: `better` is negative transfer, `worse` positive;
        `p_holm` is corrected over the sources. The correlations are Spearman's, over the target's sources, of the
        weight with the worth, with the method's loss without the source, and with the baseline's loss.
    """
    chosen = select(runs)
    settings = _settings(runs)
    known = {grid.experiment.name: grid for grid in grids(chosen)}
    shown = {place: known[place.experiment].experiment.measure for place in settings}
    others = {
        place: left_out(place, {other: setting for other, setting in settings.items() if shown[other] == shown[place]})
        for place in settings
    }
    smaller = {other.experiment for without in others.values() for other in without.values()}
    weights: dict[Place, dict[str, float]] = {}
    for *names, source, weight in final_weights(load_curves(chosen)).itertuples(index=False):
        weights.setdefault(Place(*names), {})[source] = weight
    rows = []
    for place, setting in settings.items():
        if place.experiment not in smaller and (place in weights or others[place]):
            values = {"weight": weights.get(place, {}), "worth": worth.of(setting.dataset, place.target)}
            rows += list(_rows(place, setting, known, others[place], values))
    baselines = {name: grid.experiment.baseline for name, grid in known.items()}
    frame = _with_losses(pd.DataFrame(rows, columns=[*COLUMNS]), baselines)
    frame.attrs = dict(runs.attrs)
    return frame.astype(dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(set(COLUMNS).difference(_WHOLE, _TEXTS), float))


def _with_losses(rows: pd.DataFrame, baselines: Mapping[str, str | None]) -> pd.DataFrame:
    """Adds the correlations of the weights with the losses of the method and of the baseline."""
    place = ["experiment", "target", "source"]
    loss = -rows["mean_difference"].astype(float)
    is_base = [baselines[name] == method for name, method in rows[["experiment", "method"]].to_numpy()]
    base = loss[is_base].set_axis(pd.MultiIndex.from_frame(rows.loc[is_base, place]))
    losses = {"loss_correlation": loss}
    losses["baseline_loss_correlation"] = base.reindex(pd.MultiIndex.from_frame(rows[place])).set_axis(rows.index)
    for name, values in losses.items():
        pairs = pd.DataFrame({"weight": rows["weight"].astype(float), "worth": values})
        for _, of_place in rows.groupby(_PLACE, sort=False):
            rows.loc[of_place.index, name] = _rank_correlation(pairs.loc[of_place.index])
    return rows


def _settings(runs: pd.DataFrame) -> dict[Place, Setting]:
    """The settings of the runs that have a record, in the plan's order; a place's first record stands for all seeds.

    For methods whose settings are selected, it is the first candidate's setting together with the list of all
    candidates, since another candidate may be selected without a source.
    """
    first = runs["candidate"].fillna(0).eq(0).to_numpy() & runs["left_out"].isna().to_numpy()
    recorded = runs[first & (runs["status"] != "missing").to_numpy()]
    recorded = recorded.astype(dict.fromkeys(_PLACE, object)).drop_duplicates(_PLACE)
    tables = runs.attrs["plan"].experiments
    searches = {(table.name, method.name): method.search for table in tables for method in table.methods}
    cells, settings = load_cells(recorded), {}
    for key, *names in recorded[["key", *_PLACE]].itertuples(index=False):
        if "sources" in cells.get(key, {}):
            place = Place(*names)
            settings[place] = setting_of(cells[key], searches.get((place.experiment, place.method)))
    return settings


def setting_of(cell: Mapping[str, Any], search: Search | None = None) -> Setting:
    """The setting of a cell in the form of `Cell.to_json`, and of the search if the cell is its first candidate."""
    rest = {name: value for name, value in cell.items() if name not in {"sources", "seed"}}
    tried = {} if search is None else {"candidates": list(search.candidates), "by": search.by}
    return Setting(tuple(cell["sources"]), cell["dataset"], canonical_json(rest | tried))


def left_out(place: Place, settings: Mapping[Place, Setting]) -> dict[str, Place]:
    """For each source, the place whose runs differ from this place's only by the missing source."""
    whole = settings[place]
    others: dict[str, Place] = {}
    for other, setting in settings.items():
        absent = [source for source in whole.sources if source not in setting.sources]
        if setting.rest == whole.rest and len(absent) == 1 and len(setting.sources) == len(whole.sources) - 1:
            others.setdefault(absent[0], other)
    return {source: others[source] for source in whole.sources if source in others}


def _rows(
    place: Place,
    setting: Setting,
    known: Mapping[str, Grid],
    others: Mapping[str, Place],
    columns: Mapping[str, Mapping[str, float]],
) -> Iterator[Row]:
    grid = known[place.experiment]
    merits = grid.merits[place.target]
    score = summarize(merits.by_seed[place.method].values())
    names = dict.fromkeys([*setting.sources, *columns["weight"]])
    values = pd.DataFrame({name: pd.Series(of, index=list(names), dtype=float) for name, of in columns.items()})
    without, correlation = _without(place, known, others), _rank_correlation(values)
    for source in names:
        yield {
            "experiment": place.experiment,
            "dataset": grid.experiment.dataset,
            "method": place.method,
            "target": place.target,
            "metric": grid.metric,
            "alpha": grid.experiment.alpha,
            "n_ok": score.n,
            "mean": grid.sign * score.mean,
            "standard_error": score.standard_error,
            "rank_correlation": correlation,
            "source": source,
            **values.loc[source],
            **without.get(source, {}),
        }


def _rank_correlation(values: pd.DataFrame) -> float | None:
    """Spearman's rho of weight and worth, over the sources that have both."""
    return rank_correlation([*values[["weight", "worth"]].dropna().itertuples(index=False, name=None)])


def _without(place: Place, known: Mapping[str, Grid], others: Mapping[str, Place]) -> dict[str, Row]:
    whole = known[place.experiment]
    rows = [_compare(whole, known[other.experiment], place, other) for other in others.values()]
    return dict(zip(others, decided(rows, family="sources"), strict=True))


def _compare(whole: Grid, less: Grid, place: Place, other: Place) -> Row:
    """Compares the scores without a source with those of all sources, over the seeds that are ok in both."""
    merits = whole.merits[place.target]
    with_all, without = paired(merits.by_seed[place.method], less.merits[other.target].by_seed[other.method])
    row = measured(
        "target",
        place.target,
        (other.method, place.method),
        [score - whole_score for score, whole_score in zip(without, with_all, strict=True)],
        len({*whole.seeds} & {*less.seeds}),
        alpha=whole.experiment.alpha,
        decimals=merits.decimals,
    )
    return row | {"without": other.experiment, "mean_without": less.sign * mean_of(without)}


def sources_tables(rows: pd.DataFrame) -> Iterator[Table]:
    """A table for each method and target of a frame from `sources`."""
    known = {table.name: table for table in rows.attrs["plan"].experiments}
    outcome, transfer = rows["outcome"], rows["outcome"].replace(_TRANSFER)
    rows = rows.assign(transfer=transfer.where(outcome != UNKNOWN, rows["reason"]).where(rows["without"].notna(), "-"))
    for _, block in rows.groupby(_PLACE, sort=False):
        first = block.iloc[0]
        unit = Unit.of(known[first["experiment"]].measure, block[["mean", "mean_without"]].min())
        error = "" if pd.isna(first["standard_error"]) else f" +- {unit.show(first['standard_error'])}"
        title = (
            f"{first['experiment']} ({first['dataset']}), {first['method']}, target {first['target']}: {unit.label}: "
            f"{unit.show(first['mean'])}{error} with all sources; alpha {first['alpha']:g}"
        )
        columns = (
            Column("source", "text", ["source"]),
            Column("weight", "weight", ["weight"]),
            Column("worth", "worth", ["worth"]),
            *(_change_columns(unit) if block["without"].notna().any() else ()),
        )
        yield Table(f"{first['experiment']}-sources-{first['method']}-{first['target']}", title, block, columns)


def _change_columns(unit: Unit) -> Iterator[Column]:
    yield Column("without", "number", ["mean_without"], unit)
    yield Column("change", "difference", ["mean_difference"], unit)
    yield Column("p", "p", ["p_two_sided"])
    yield Column("Holm", "p", ["p_holm"])
    yield Column("W/T/L", "won/tied/lost", ["wins", "ties", "losses", "n_paired"])
    yield Column("n", "n/planned", ["n_paired", "n_planned"])
    yield Column("transfer", "text", ["transfer"])


def sources_report(runs: pd.DataFrame, worth: Worth) -> Report:
    """What `msda-bench sources` answers: each source's part in each method and target."""
    rows = sources(runs, worth)
    tables, line = tuple(sources_tables(rows)), Line("caption", LEGEND)
    if rows.empty:
        none = "no method here weighs single sources, no run leaves one out, or none of them has a result"
        line = Line("nothing", none, wrapped=False)
    below = Section(lines=(line, *folder_lines(runs, worth.notes)))
    return Report((Section(tables), below), rows, is_whole(runs))
