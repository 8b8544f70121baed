"""The parts of an experiment: charts with their numbers, or a sentence where there is nothing to conclude."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pandas as pd

from msda_bench.results import plots
from msda_bench.results.frame import AVERAGE
from msda_bench.results.page.figures import Figure, figure, shown_rows
from msda_bench.results.plots.epochs import MOST_LINES, last_weights, weighing
from msda_bench.results.plots.pairs import against, best_of, can_conclude, conclusive, main_pairs
from msda_bench.results.plots.parts import Chart, name_of
from msda_bench.results.plots.scores import main_rows
from msda_bench.suite.plan import Experiment

MOST_FIGURES = 60
"""Figures of a page; experiments share them alike."""
_KINDS = 6
"""Figures of one target."""
_ALONE = 4
"""Figures of an experiment that are of no target."""
_BEYOND = {
    "method": "method",
    "mean_low": "mean, low",
    "mean_high": "mean, high",
    "iqm": "interquartile mean",
    "iqm_low": "its low",
    "iqm_high": "its high",
    "gain": "gain",
    "gain_standard_error": "±",
    "regret": "regret to the oracle",
    "regret_standard_error": "± ",
}


@dataclass(frozen=True)
class Part:
    """One folded part.

    Attributes:
        id: in the page.
        title: its heading.
        lede: how to read it; alone, why there is nothing to see.
        figures: its charts.
        left_out: targets without a figure.
        table: numbers that have no figure.
    """

    id: str
    title: str
    lede: str
    figures: tuple[Figure, ...] = ()
    left_out: int = 0
    table: pd.DataFrame = field(default_factory=pd.DataFrame)

    def rows(self) -> Iterator[list[str]]:
        """The table's rows as text."""
        return shown_rows(self.table)


@dataclass(frozen=True)
class Frames:
    """What an experiment's parts are made of.

    Attributes:
        id: of the experiment in the page.
        experiment: the plan's.
        runs: its selected runs.
        board: its rows of the leaderboard.
        pairs: its rows of the comparisons.
        curves: its curves.
        shown: the methods that charts show at first.
        targets: those that have figures, each with its part of an id.
    """

    id: str
    experiment: Experiment
    runs: pd.DataFrame
    board: pd.DataFrame
    pairs: pd.DataFrame
    curves: pd.DataFrame
    shown: tuple[str, ...]
    targets: Mapping[str, str]

    @property
    def ok(self) -> pd.DataFrame:
        """The runs that are ok."""
        return self.runs[(self.runs["status"] == "ok").to_numpy()].astype({"method": object})

    @property
    def left_out(self) -> int:
        """How many targets have no figures."""
        return len(self.experiment.targets) - len(self.targets)

    @property
    def seeds(self) -> str:
        """Whose curves are drawn."""
        drawn, every = self.curves["seed"].nunique(), self.runs["seed"].nunique()
        return f"the first {drawn} of {every} seeds" if drawn < every else "the seeds"

    def figure(self, name: str, title: str, label: str, chart: Chart, values: pd.DataFrame, *, wide: bool) -> Figure:
        """A figure of this experiment."""
        return figure(f"{self.id}-{name}", title, label, chart, values, self.shown, wide=wide)

    def by_target(
        self,
        name: str,
        rows: pd.DataFrame,
        draw: Callable[[pd.DataFrame], Chart],
        values: Callable[[pd.DataFrame], pd.DataFrame],
        label: str,
    ) -> tuple[Figure, ...]:
        """A figure for each target that has rows, with the numbers that `values` makes of them."""
        found = []
        for target, slug in self.targets.items():
            own = rows[(rows["target"] == target).to_numpy()]
            if len(own):
                what = f"{label} at {name_of(target)}"
                found.append(self.figure(f"{name}-{slug}", target, what, draw(own), values(own), wide=False))
        return tuple(found)


def drawn_targets(experiment: Experiment, experiments: int) -> dict[str, str]:
    """The targets that have figures, each with its part of an id."""
    return slugs(experiment.targets[: max(0, (MOST_FIGURES // experiments - _ALONE) // _KINDS)])


def headline(frames: Frames) -> Iterator[Figure]:
    """The forest plot, and the differences from the best where a test can conclude."""
    rows = main_rows(frames.board)
    if not rows["mean"].notna().any():
        return
    values = rows[["method", "rank", "mean", "standard_error", "mean_low", "mean_high", "n_ok"]]
    level = f"{100 * (1 - frames.experiment.alpha):g} %"
    label = f"Mean of each method with its {level} bootstrap interval; dashed: the baseline"
    yield frames.figure("forest", "Means", label, plots.forest(rows), values, wide=True)
    pairs = main_pairs(frames.pairs)
    if can_conclude(pairs).any():
        best = best_of(pairs)
        label = f"Difference of each method from {name_of(best)}, paired by seed, with p after Holm's correction"
        title, chart = f"Differences from {name_of(best)}", plots.differences(pairs, best)
        yield frames.figure("differences", title, label, chart, against(pairs, best), wide=True)


def parts(frames: Frames) -> Iterator[Part]:
    """Every part that has something to show, or says why not."""
    if len(frames.ok):
        yield _every_run(frames)
        if len(frames.pairs):
            yield _pairs(frames)
        yield _beyond(frames)
    if len(frames.curves):
        yield from _weights(frames)
        yield _curves(frames)
    if frames.ok["train_seconds"].notna().any():
        yield _time(frames)


def _every_run(frames: Frames) -> Part:
    lede = (
        "Each run is a point, and a line the mean. What lies far outside is drawn as an arrow at the edge with its "
        "number, so that it does not squeeze the rest. Shift and the wheel zoom, dragging moves, a double click undoes."
    )

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        scores = rows.groupby("method", sort=False)["score"]
        return scores.agg(["mean", "median", "min", "max", "count"]).reset_index()

    figures = frames.by_target("runs", frames.ok, plots.points, values, "Scores of every run by method")
    return Part(f"{frames.id}-runs", "Every run", lede, figures, frames.left_out)


def _pairs(frames: Frames) -> Part:
    place, title, known = f"{frames.id}-pairs", "Pairs of methods", conclusive(frames.pairs)
    if known.empty:
        seeds = int(frames.pairs["n_paired"].max())
        return Part(
            place,
            title,
            f"With {seeds} paired seeds no test of a pair of methods can be significant after Holm's correction.",
        )
    lede = (
        "Two-sided exact signed-rank tests, paired by seed, with Holm's correction over all pairs; the colour says "
        "whether the row's method is better than the column's. Places where no test can conclude are left out."
    )
    columns = ["first", "second", "better", "hodges_lehmann", "hl_low", "hl_high", "p_holm", "n_paired", "improvement"]
    places = sorted(dict.fromkeys(known["place"]), key=lambda where: where != AVERAGE)
    ids = {AVERAGE: "average", "across_targets": "across", **frames.targets}
    kept = [where for where in places if where in ids]
    figures = []
    for where in kept:
        rows = known[(known["place"] == where).to_numpy()]
        name = "across targets" if where == "across_targets" else name_of(where)
        label = f"p-values of pairs of methods: {name}"
        figures.append(frames.figure(f"pairs-{ids[where]}", name, label, plots.pairs(rows), rows[columns], wide=False))
    return Part(place, title, lede, tuple(figures), len(places) - len(kept))


def _beyond(frames: Frames) -> Part:
    rows = main_rows(frames.board)
    table = rows.loc[rows["mean"].notna(), list(_BEYOND)].rename(columns=_BEYOND).dropna(axis=1, how="all")
    lede = (
        "Bootstrap intervals stratified by target; an interquartile mean leaves out the lowest and highest quarter of "
        "the runs at each target; gains are over the baseline."
    )
    harmed = frames.board[frames.board["negative_transfer"].astype("boolean").fillna(value=False).astype(bool)]
    where = [f"{name_of(row.method)} ({name_of(row.target)})" for row in harmed.itertuples()]
    if where:
        lede += f" The baseline is significantly better (one-sided, not corrected) than {', '.join(where[:12])}."
    return Part(f"{frames.id}-beyond", "Beyond the mean", lede, table=table)


def _weights(frames: Frames) -> Iterator[Part]:
    place, title = f"{frames.id}-weights", "Weights of the sources"
    found = weighing(frames.curves)
    if found.empty:
        yield Part(place, title, "No method here gives single sources weights of their own.")
        return
    lede = (
        f"Weights at the last epoch, mean of {frames.seeds}. Blue is more than equal weights (1/k), orange less; the "
        "scale reaches at least 0.05 to both sides, so that noise does not look like a preference."
    )

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        return last_weights(rows)[["method", "source", "weight", "equal", "seeds"]]

    figures = frames.by_target("weights", found, plots.weight_map, values, "Weight of each source by method")
    yield Part(place, title, lede, figures, frames.left_out)
    few = found[found.groupby("target", observed=True)["source"].transform("nunique") <= MOST_LINES]
    lede = f"Lines are means over {frames.seeds} with a band of one standard deviation; dashed: equal weights. A row is"
    lede += " a method."
    label = "Weight of each source over the epochs, a row a method,"
    figures = frames.by_target("course", few, plots.weights, lambda rows: _ends(rows, "weight", "source"), label)
    if figures:
        yield Part(f"{frames.id}-course", "Weights over the epochs", lede, figures, frames.left_out)


def _ends(rows: pd.DataFrame, what: str, *by: str) -> pd.DataFrame:
    """Means at the first and the last epoch."""
    found = rows[rows["epoch"].isin([1, rows["epoch"].max()])]
    return found.groupby(["method", *by, "epoch"], observed=True, sort=False)[what].agg(["mean", "std"]).reset_index()


def _curves(frames: Frames) -> Part:
    figures: list[Figure] = []
    for what in ("risk", "gap"):
        rows = frames.curves[frames.curves[what].abs() > 0]
        label = f"{what.capitalize()} of each method over the epochs"
        figures += frames.by_target(what, rows, partial(plots.curves, what=what), partial(_ends, what=what), label)
    lede = (
        f"Mean over the sources and {frames.seeds}. The gap is what a method's discrepancy makes of source and target; "
        "those of different discrepancies cannot be compared."
    )
    return Part(f"{frames.id}-curves", "Risks and gaps over the epochs", lede, tuple(figures), frames.left_out)


def _time(frames: Frames) -> Part:
    lede = (
        "Seconds of training, mean of the runs that are ok; runs that were trained as one stack share its time. Times "
        "of different devices, or of a busy one, cannot be compared."
    )
    of = frames.ok.groupby("method", sort=False)
    values = of.agg(seconds=("train_seconds", "mean"), steps=("steps", "mean"), runs=("score", "count")).reset_index()
    values = values.assign(milliseconds_a_step=1000 * values["seconds"] / values["steps"])
    label = "Mean score of each method by its mean seconds of training"
    drawn = frames.figure("cost", "Score against time", label, plots.cost(frames.ok), values, wide=True)
    return Part(f"{frames.id}-time", "Time", lede, (drawn,))


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Names as parts of ids: letters, digits and hyphens, no two alike."""
    found: dict[str, str] = {}
    for name in names:
        words = "".join(char if char.isascii() and char.isalnum() else "-" for char in name[:60]).strip("-").lower()
        slug, taken = words or "x", set(found.values())
        found[name] = next(
            one for one in (slug, *(f"{slug}-{n}" for n in range(2, len(taken) + 3))) if one not in taken
        )
    return found
