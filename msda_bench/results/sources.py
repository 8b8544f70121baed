"""What each source does to a target: how much it weighs, what it is worth, and what happens without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.results.frame import load_cells, load_curves
from msda_bench.results.pairs import Row, adjusted, compared
from msda_bench.results.scores import Grid, grids
from msda_bench.results.select import select
from msda_bench.results.summary import summarize
from msda_bench.results.worth import Worth
from msda_bench.suite.cell import canonical_json

COLUMNS = (
    *("experiment", "dataset", "method", "target", "metric", "alpha", "n_ok", "mean", "standard_error"),
    *("rank_correlation", "source", "weight", "worth", "without", "n_planned", "n_paired", "mean_without"),
    *("mean_difference", "median_difference", "hodges_lehmann", "hl_low", "hl_high", "wins", "ties", "losses"),
    *("p_two_sided", "p_holm", "attainable_p_holm", "transfer"),
)
_TEXTS = ("experiment", "dataset", "method", "target", "metric", "source", "without", "transfer")
_WHOLE = ("n_ok", "n_planned", "n_paired", "wins", "ties", "losses")
_PLACE = ["experiment", "method", "target"]
_FEWEST_RANKED = 3
"""Of fewer sources a rank correlation says nothing."""


class Run(NamedTuple):
    """A method at a target, in all seeds."""

    experiment: str
    method: str
    target: str


class Setting(NamedTuple):
    """How a run was trained: its source domains, the dataset, and all that changes its numbers but sources and seed."""

    sources: tuple[str, ...]
    dataset: Mapping[str, Any]
    rest: str


def final_weights(curves: pd.DataFrame) -> pd.DataFrame:
    """The weights in the last epoch, a mean over the seeds that are ok, of methods that weigh single sources.

    Args:
        curves: of `load_curves`.

    Returns:
        `experiment, method, target, source, part_of` (the domain that a split source is a part of, else the source),
        `alpha` (the weight) and `runs` (seeds that the mean is over), in the curves' order.
    """
    run = [*_PLACE, "seed"]
    ok = curves[curves["status"] == "ok"].astype(dict.fromkeys(_PLACE, object))
    last = ok[ok["epoch"] == ok.groupby(run)["epoch"].transform("max")]
    of_run = last.groupby(run)
    last = last[~of_run["pooled"].transform("any").astype(bool) & (of_run["source"].transform("size") > 1)]
    by_source = last.groupby([*_PLACE, "source", "part_of"], sort=False, as_index=False)
    found = by_source.agg(alpha=("weight", "mean"), seeds=("weight", "size"))
    found = found.merge(last.groupby(_PLACE)["seed"].nunique().rename("runs"), on=_PLACE)
    return found.assign(alpha=found["alpha"].where(found.pop("seeds") == found["runs"]))


def by_domain(weights: pd.DataFrame) -> pd.DataFrame:
    """Weights of `final_weights` summed over the parts of each domain, which serve a target together or not at all."""
    found = weights.groupby([*_PLACE, "part_of"], sort=False, as_index=False).agg(
        alpha=("alpha", lambda parts: parts.sum(skipna=False)), runs=("runs", "first")
    )
    return found.assign(source=found["part_of"])[[*weights.columns]]


def sources(runs: pd.DataFrame, worth: Worth) -> pd.DataFrame:
    """Each source of all methods that weigh single sources, or that also ran without one.

    Runs without a source are those of an experiment that differs in nothing but that source; it has no rows of its own.

    Args:
        runs: of `load_results`; records are read again from their folder.
        worth: asks datasets what their sources are worth.

    Returns:
        One row for each experiment, method, target and source, domains whole even where they were split: `mean` and
        `standard_error` with all sources over `n_ok` seeds; `weight`; `worth` (in percent, by the dataset);
        `rank_correlation` of the two (Spearman's, over the target's sources); `without`, the experiment without the
        source, and how its scores less those with all sources compare over the seeds that are ok in both, corrected
        over the sources (`p_holm`); `transfer` is `negative` or `positive` (without the source the target is better or
        worse off), `not shown`, `too few pairs` or `no differences`. What is not known is missing.
    """
    chosen = select(runs)
    found = _settings(chosen)
    known = {grid.experiment.name: grid for grid in grids(chosen)}
    smaller = {other.experiment for run in found for other in left_out(run, found).values()}
    weights = by_domain(final_weights(load_curves(chosen)))
    alphas: dict[Run, dict[str, float]] = {}
    for *place, source, alpha in weights[[*_PLACE, "source", "alpha"]].itertuples(index=False):
        alphas.setdefault(Run(*place), {})[source] = alpha
    rows = []
    for run, setting in found.items():
        others = left_out(run, found)
        if run.experiment not in smaller and (run in alphas or others):
            values = worth.of(setting.dataset, run.target)
            rows += list(_rows(run, setting, known, others, {"weight": alphas.get(run, {}), "worth": values}))
    frame = pd.DataFrame(rows, columns=[*COLUMNS])
    return frame.astype(dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(set(COLUMNS).difference(_WHOLE, _TEXTS), float))


def _settings(chosen: pd.DataFrame) -> dict[Run, Setting]:
    """How each run with a record was trained, in the plan's order; its first record speaks for all seeds."""
    made = chosen[chosen["status"] != "missing"].astype(dict.fromkeys(_PLACE, object)).drop_duplicates(_PLACE)
    cells, found = load_cells(made), {}
    for key, *place in made[["key", *_PLACE]].itertuples(index=False):
        if "sources" in cells.get(key, {}):
            found[Run(*place)] = setting_of(cells[key])
    return found


def setting_of(cell: Mapping[str, Any]) -> Setting:
    """The setting of a cell, as `Cell.to_json` has it."""
    rest = {name: value for name, value in cell.items() if name not in {"sources", "seed"}}
    return Setting(tuple(cell["sources"]), cell["dataset"], canonical_json(rest))


def left_out(run: Run, found: Mapping[Run, Setting]) -> dict[str, Run]:
    """By source, the run that differs from this one in nothing but that it does without this source.

    Args:
        run: one of them.
        found: how each run was trained.
    """
    whole = found[run]
    others: dict[str, Run] = {}
    for other, setting in found.items():
        absent = [source for source in whole.sources if source not in setting.sources]
        if setting.rest == whole.rest and len(absent) == 1 and len(setting.sources) == len(whole.sources) - 1:
            others.setdefault(absent[0], other)
    return {source: others[source] for source in whole.sources if source in others}


def _rows(
    run: Run,
    setting: Setting,
    known: Mapping[str, Grid],
    others: Mapping[str, Run],
    columns: Mapping[str, Mapping[str, float]],
) -> Iterator[Row]:
    grid = known[run.experiment]
    merits = grid.merits[run.target]
    score = summarize(merits.by_seed[run.method].values(), merits.unit)
    names = dict.fromkeys([*setting.sources, *columns["weight"]])
    values = pd.DataFrame({name: pd.Series(of, index=list(names), dtype=float) for name, of in columns.items()})
    without, correlation = _without(run, known, others), _rank_correlation(values)
    for source in names:
        yield {
            "experiment": run.experiment,
            "dataset": grid.experiment.dataset,
            "method": run.method,
            "target": run.target,
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
    """None where fewer than three sources have both values, or one has no two values."""
    both = values.dropna()
    if len(both) < _FEWEST_RANKED or (both.nunique() == 1).any():
        return None
    return float(both["weight"].corr(both["worth"], "spearman"))


def _without(run: Run, known: Mapping[str, Grid], others: Mapping[str, Run]) -> dict[str, Row]:
    """What leaving out each source does, corrected over them."""
    whole = known[run.experiment]
    rows = [_change(whole, known[other.experiment], run, other) for other in others.values()]
    alpha = whole.experiment.alpha
    return {
        source: row | {"transfer": _transfer(row, alpha)}
        for source, row in zip(others, adjusted(rows, alpha), strict=True)
    }


def _change(whole: Grid, less: Grid, run: Run, other: Run) -> Row:
    """The score without a source less that with all, over the seeds that are ok in both."""
    a, b = whole.merits[run.target], less.merits[other.target]
    with_all, without = a.by_seed[run.method], b.by_seed[other.method]
    planned = [seed for seed in whole.seeds if seed in less.seeds]
    paired = [seed for seed in planned if seed in with_all and seed in without]
    differences = [b.unit * without[seed] - a.unit * with_all[seed] for seed in paired]
    row = compared(
        "target",
        run.target,
        (run.method, other.method),
        differences,
        len(planned),
        complete=True,
        alpha=whole.experiment.alpha,
    )
    mean = summarize((without[seed] for seed in paired), b.unit).mean
    return row | {"without": other.experiment, "mean_without": less.sign * mean}


def _transfer(row: Row, alpha: float) -> str:
    if row["attainable_p_holm"] > alpha:
        return "no differences" if 0 < row["n_zero"] == row["n_paired"] else "too few pairs"
    if row["p_holm"] is None or row["p_holm"] > alpha:
        return "not shown"
    # By the ranks that were tested, of which the mean may be on the other side.
    return "negative" if row["hodges_lehmann"] > 0 else "positive"
