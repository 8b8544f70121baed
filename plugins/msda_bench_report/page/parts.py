"""Builds the parts of an experiment: charts with their numbers, or a sentence if there is nothing to conclude."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pandas as pd

from msda_bench.analysis import (
    ALL,
    AVERAGE,
    Experiment,
    against,
    best_of,
    conclusive,
    control_of,
    counted,
    criteria_notes,
    differ,
    listed,
    main_pairs,
    main_rows,
    name_of,
    testable,
)
from msda_bench_report import plots
from msda_bench_report.page.figures import Figure, figure
from msda_bench_report.plots.epochs import LAST, MOST_LINES, last_weights, over_sources, weighing
from msda_bench_report.plots.parts import Chart

MOST_FIGURES = 60
"""The maximum number of figures on a page, shared equally by the experiments."""
_KINDS = 7
"""The number of figures per target."""
_ALONE = 4
"""The number of figures per experiment that do not belong to a target."""
_MOST_PARAMETERS = 8
_MOST_CLASSES = 40
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
_PAIRS = [
    *("first", "second", "outcome", "reason", "hodges_lehmann", "hl_low", "hl_high", "p_holm", "n_paired"),
    *("detectable", "improvement"),
]
_CRITERIA = [
    "criterion",
    "selects",
    "mean",
    "regret",
    "regret_standard_error",
    "rank_correlation",
    "n_rank_correlation",
]


class Part(NamedTuple):
    """A folded part: an introduction or the reason why it is empty, charts, and numbers without a chart."""

    id: str
    title: str
    lede: str
    figures: tuple[Figure, ...] = ()
    undrawn: int = 0
    """The number of targets without a figure."""
    table: pd.DataFrame | None = None


@dataclass(frozen=True)
class Frames:
    """The data of an experiment's parts: its rows of each frame; `curves` are from `by_epoch`.

    `shown` holds the methods that charts show at first. `targets` holds the targets with figures, and their slugs.
    """

    id: str
    experiment: Experiment
    runs: pd.DataFrame
    board: pd.DataFrame
    pairs: pd.DataFrame
    curves: pd.DataFrame
    classes: pd.DataFrame
    criteria: pd.DataFrame
    tried: pd.DataFrame
    shown: tuple[str, ...]
    targets: Mapping[str, str]

    @property
    def ok(self) -> pd.DataFrame:
        """The runs that are ok."""
        return self.runs[(self.runs["status"] == "ok").to_numpy()].astype({"method": object})

    @property
    def sampled(self) -> str:
        """A sentence if the curves of only some seeds are shown, otherwise empty."""
        drawn, every = self.curves["seeds"].max(), self.ok["seed"].nunique()
        return f" Curves of {drawn} of {every} seeds." if drawn < every else ""

    def part(
        self, name: str, title: str, lede: str, figures: Iterable[Figure] = (), table: pd.DataFrame | None = None
    ) -> Part:
        """Builds a part of this experiment."""
        made = tuple(figures)
        of_targets = not any(one.wide for one in made)
        undrawn = len(self.experiment.targets) - len(self.targets) if made and of_targets else 0
        return Part(f"{self.id}-{name}", title, lede, made, undrawn, table)

    def figure(
        self, name: str, title: str, label: str, chart: Chart, values: pd.DataFrame, *, wide: bool = False
    ) -> Figure:
        """Builds a figure of this experiment."""
        return figure(f"{self.id}-{name}", title, label, chart, values, self.shown, wide=wide)

    def by_target(
        self,
        name: str,
        label: str,
        rows: pd.DataFrame,
        draw: Callable[[pd.DataFrame], Chart],
        values: Callable[[pd.DataFrame], pd.DataFrame],
        title: str = "",
    ) -> Iterator[Figure]:
        """A figure for each target that has rows, with the numbers that `values` computes from them.

        Its title is the name of the target, after `title` if a part has several figures per target.
        """
        for target, slug in self.targets.items():
            own = rows[(rows["target"] == target).to_numpy()]
            if len(own):
                yield self.figure(
                    f"{name}-{slug}", f"{title}{target}", f"{label} at {name_of(target)}", draw(own), values(own)
                )


def drawn_targets(experiment: Experiment, experiments: int) -> dict[str, str]:
    """The slugs of the targets that have figures."""
    return slugs(experiment.targets[: max(0, (MOST_FIGURES // experiments - _ALONE) // _KINDS)])


def headline(frames: Frames) -> Iterator[Figure]:
    """The forest plot, then the differences from the best method or, if only those can be tested, from the control."""
    rows = main_rows(frames.board)
    if not rows["mean"].notna().any():
        return
    values = rows[["method", "rank", "mean", "standard_error", "mean_low", "mean_high", "n_ok"]]
    label = f"Mean of each method with its {100 * (1 - frames.experiment.alpha):g} % bootstrap interval"
    yield frames.figure("forest", "Means", f"{label}; dashed: the baseline", plots.forest(rows), values, wide=True)
    pairs = main_pairs(frames.pairs)
    if not len(pairs):
        return
    best, control = best_of(pairs), control_of(pairs)
    to = best if control is None or testable(against(pairs[pairs["control"].isna()], best)).any() else control
    if testable(against(pairs, to)).any():
        label = f"Difference of each method from {name_of(to)}, paired by seed, with p after Holm's correction"
        chart, title = plots.differences(pairs, to), f"Differences from {name_of(to)}"
        yield frames.figure("differences", title, label, chart, against(pairs, to), wide=True)


def parts(frames: Frames) -> Iterator[Part]:
    """Yields every part, with its content or the reason why it is empty."""
    if len(frames.ok):
        yield _every_run(frames)
        if len(frames.pairs):
            yield _pairs(frames)
        yield _beyond(frames)
        if len(frames.classes):
            yield _classes(frames)
    if len(frames.curves):
        yield from _weights(frames)
        yield _curves(frames)
    if frames.ok["train_seconds"].notna().any():
        yield _time(frames)
    if len(frames.criteria):
        yield _settings(frames)


def _every_run(frames: Frames) -> Part:
    lede = (
        "Each run is a point, and a line the mean. What lies far outside is drawn as an arrow at the edge with its "
        "number, so that it does not squeeze the rest. Zoom with the buttons, the keys + - 0, or Shift and the wheel; "
        "drag to move."
    )

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.groupby("method", sort=False)["score"].agg(["count", "mean", "min", "max"]).reset_index()

    figures = frames.by_target("runs", "Scores of every run by method", frames.ok, plots.points, values)
    return frames.part("runs", "Every run", lede, figures)


def _pairs(frames: Frames) -> Part:
    title, known, main = "Pairs of methods", conclusive(frames.pairs), main_pairs(frames.pairs)
    if known.empty:
        few = f"With {counted(int(main['n_paired'].max()), 'paired seed')} no test of a pair of methods"
        lede = f"{few} can be significant after Holm's correction over {counted(len(main), 'pair')}."
        return frames.part("pairs", title, lede)
    ids = {AVERAGE: "average", "across_targets": "across", **frames.targets}
    places = sorted(dict.fromkeys(known["place"]), key=lambda where: where != AVERAGE)
    differing = {*known.loc[differ(known), "place"]}
    none = ""
    if quiet := [_place(where) for where in places if where not in differing]:
        none = f"No difference between methods was shown: {listed(quiet)}."
    if not differing:
        return frames.part("pairs", title, none)
    lede = (
        "Two-sided exact signed-rank tests, paired by seed, with Holm's correction; the colour shows whether the row's "
        "method is better than the column's. Charts in which nothing was shown are skipped."
    )
    drawn = [where for where in places if where in differing and where in ids]
    figures = []
    for where in drawn:
        rows = known[(known["place"] == where).to_numpy()]
        label = f"p-values of pairs of methods: {_place(where)}"
        figures.append(frames.figure(f"pairs-{ids[where]}", _place(where), label, plots.pairs(rows), rows[_PAIRS]))
    part = frames.part("pairs", title, f"{lede} {none}".strip(), figures)
    return part._replace(undrawn=len(differing) - len(drawn))


def _place(where: str) -> str:
    return "across targets" if where == "across_targets" else name_of(where)


def _beyond(frames: Frames) -> Part:
    rows = main_rows(frames.board).sort_values(["reference", "rank"], kind="stable")
    table = rows.loc[rows["mean"].notna(), list(_BEYOND)].rename(columns=_BEYOND).dropna(axis=1, how="all")
    lede = (
        "Bootstrap intervals stratified by target; an interquartile mean leaves out the lowest and highest quarter of "
        "the runs at each target; gains are over the baseline."
    )
    harmed = frames.board[frames.board["negative_transfer"].astype("boolean").fillna(value=False).astype(bool)]
    where = [f"{name_of(row.method)} ({name_of(row.target)})" for row in harmed.itertuples()]
    if where:
        lede += f" The baseline is significantly better than {', '.join(where[:12])}."
    return frames.part("beyond", "Beyond the mean", lede, table=table)


def _classes(frames: Frames) -> Part:
    title, count = "Single classes", frames.classes["class"].nunique()
    if count > _MOST_CLASSES:
        lede = f"{count} are too many for a chart; msda-bench leaderboard --per-class has them."
        return frames.part("classes", title, lede)
    lede = (
        "Test examples of each class that are classified correctly, in percent, mean of the seeds. Blue is more than "
        "the mean of the methods in the chart, orange less; the scale reaches at least 5 points to both sides."
    )

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        wide = rows.astype({"method": object}).pivot_table("accuracy", "method", "class", sort=False)
        return wide.sort_index(axis=1).reset_index()

    figures = frames.by_target("classes", "Accuracy on each class by method", frames.classes, plots.classes, values)
    return frames.part("classes", title, lede, figures)


def _weights(frames: Frames) -> Iterator[Part]:
    title, found = "Weights of the sources", weighing(frames.curves)
    if found.empty:
        yield frames.part("weights", title, "No method here weighs single sources.")
        return
    lede = (
        "Weights at the last epoch, mean of the seeds. Blue is more than equal weights (1/k), orange less; the scale "
        f"reaches at least 0.05 to both sides, so that noise does not look like a preference.{frames.sampled}"
    )

    def values(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[["method", "source", "weight", "equal", "seeds"]]

    def ends(rows: pd.DataFrame) -> pd.DataFrame:
        return _ends(rows)[["method", "source", "epoch", "weight", "deviation"]]

    last = last_weights(found)
    figures = frames.by_target("weights", "Weight of each source by method", last, plots.weight_map, values)
    yield frames.part("weights", title, lede, figures)
    few = found[found.groupby("target", observed=True)["source"].transform("nunique") <= MOST_LINES]
    label = "Weight of each source over the epochs, one row per method,"
    lede = "One row per method; lines are means over seeds with a band of one standard deviation; grey: equal weights."
    if courses := [*frames.by_target("course", label, few, plots.weights, ends)]:
        yield frames.part("course", "Weights over the epochs", lede + frames.sampled, courses)


def _ends(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first and the last epoch."""
    return rows[rows["epoch"].isin([1, rows["epoch"].max()])]


def _curves(frames: Frames) -> Part:
    figures: list[Figure] = []
    for what in ("risk", "gap"):
        draw, label = partial(plots.curves, what=what), f"{what.capitalize()} of each method over the epochs"

        def values(rows: pd.DataFrame, what: str = what) -> pd.DataFrame:
            return _ends(over_sources(rows, what))[["method", "epoch", "value"]].rename(columns={"value": what})

        known = frames.curves[frames.curves[what].abs() > 0]
        rows = known[known["epoch"] != LAST]
        figures += frames.by_target(what, label, rows, draw, values, f"{what.capitalize()} at ")
    lede = (
        "Mean over the sources and seeds. The gap is the method's discrepancy between source and target; gaps of "
        "different discrepancies cannot be compared."
        f"{frames.sampled}"
    )
    return frames.part("curves", "Risks and gaps over the epochs", lede, figures)


def _time(frames: Frames) -> Part:
    lede = (
        "Seconds of training, mean of the runs that are ok; runs that were trained as one stack share its time. Times "
        "of different devices, or of a busy one, cannot be compared."
    )
    of = frames.ok.groupby("method", sort=False)
    values = of.agg(seconds=("train_seconds", "mean"), steps=("steps", "mean"), runs=("score", "count")).reset_index()
    values = values.assign(milliseconds_a_step=1000 * values["seconds"] / values["steps"])
    label = "Mean seconds of training of each method, the best mean score first"
    drawn = frames.figure(
        "cost", "Seconds of training, best mean first", label, plots.cost(frames.ok), values, wide=True
    )
    return frames.part("time", "Time", lede, [drawn])


def _settings(frames: Frames) -> Part:
    """The regret of each criterion, and the score as a function of each parameter."""
    judged, tried = frames.criteria, frames.tried
    place = AVERAGE if (judged["target"] == AVERAGE).any() else frames.experiment.targets[0]
    whole = judged[((judged["method"] == ALL) & (judged["target"] == place)).to_numpy()]
    label, chart = "Regret to the oracle of each criterion", plots.regrets(judged)
    figures = [frames.figure("regret", "Regret by criterion", label, chart, whole[_CRITERIA], wide=True)]
    for parameter, slug in list(slugs(tried["parameter"]).items())[:_MOST_PARAMETERS]:
        rows = tried[(tried["parameter"] == parameter).to_numpy()]
        values, label = rows[["method", "value", "score"]], f"Score on the target by {parameter}"
        figures.append(frames.figure(f"by-{slug}", parameter, label, plots.sensitivity(rows), values))
    lede = (
        f"{' '.join(criteria_notes(judged))} The other charts show the score on the target of every candidate by one "
        "of its parameters, with the means of equal values joined: the oracle's view, for readers and not for tuning."
    )
    return frames.part("settings", "Selecting settings", lede, figures)


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Turns names into parts of ids: letters, digits and hyphens, all different."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        words = "".join(char if char.isascii() and char.isalnum() else "-" for char in name[:60]).strip("-").lower()
        slug, n = words or "x", 1
        while slug in found.values():
            n += 1
            slug = f"{words or 'x'}-{n}"
        found[name] = slug
    return found
