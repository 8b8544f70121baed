"""The folded parts of an experiment: charts with their numbers, or a sentence where there is nothing to conclude."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pandas as pd

from msda_bench.results import plots
from msda_bench.results.page.figures import Figure, figure, shown_rows
from msda_bench.results.plots.epochs import MOST_LINES, final_weights, weighing
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
        targets: that have figures.
        places: of each target its part of an id.
    """

    id: str
    experiment: Experiment
    runs: pd.DataFrame
    board: pd.DataFrame
    pairs: pd.DataFrame
    curves: pd.DataFrame
    shown: tuple[str, ...]
    targets: tuple[str, ...]
    places: Mapping[str, str]


def drawn_targets(experiment: Experiment, experiments: int) -> tuple[str, ...]:
    """The targets that have figures."""
    return experiment.targets[: max(0, (MOST_FIGURES // experiments - _ALONE) // _KINDS)]


def headline(frames: Frames) -> tuple[Figure, ...]:
    """The forest plot, and the differences from the best where a test can conclude."""
    rows = main_rows(frames.board)
    if not rows["mean"].notna().any():
        return ()
    columns = ["method", "rank", "mean", "standard_error", "mean_low", "mean_high", "n_ok"]
    name = frames.experiment.dataset
    percent = f"{100 * (1 - frames.experiment.alpha):g} %"
    label = f"Mean of each method with its {percent} bootstrap interval on {name_of(name)}; dashed: the baseline"
    found = [_figure(frames, "forest", "Means", label, plots.forest(rows), rows[columns], wide=True)]
    pairs = main_pairs(frames.pairs)
    if _concludes(pairs) and (best := best_of(pairs)) is not None:
        label = f"Difference of each method from {name_of(best)}, paired by seed, with p after Holm's correction"
        values = against(pairs, best)
        title = f"Differences from {name_of(best)}"
        found.append(_figure(frames, "differences", title, label, plots.differences(pairs, best), values, wide=True))
    return tuple(found)


def parts(frames: Frames) -> Iterator[Part]:
    """Every part that has something to show, or says why not."""
    for make in (_every_run, _pairs, _beyond, _weights, _weights_over_epochs, _curves, _time):
        part = make(frames)
        if part is not None:
            yield part


def _every_run(frames: Frames) -> Part | None:
    ok = frames.runs[(frames.runs["status"] == "ok").to_numpy()]
    if ok.empty:
        return None
    lede = (
        "Each run is a point, and a line the mean. What lies far outside is drawn as an arrow at the edge with its "
        "number, so that it does not squeeze the rest."
    )
    spread = {"mean": "mean", "median": "median", "lowest": "min", "highest": "max", "runs": "count"}

    def values(target: str) -> pd.DataFrame:
        own = ok[(ok["target"] == target).to_numpy()].astype({"method": object})
        return own.groupby("method", sort=False)["score"].agg(**spread).reset_index()

    return _by_target(frames, "runs", "Every run", lede, ok, plots.points, values)


def _pairs(frames: Frames) -> Part | None:
    if frames.pairs.empty:
        return None
    known = conclusive(frames.pairs)
    if known.empty:
        most = int(frames.pairs["n_paired"].max())
        lede = f"With {most} paired seeds no test of a pair of methods can be significant after Holm's correction."
        return Part(f"{frames.id}-pairs", "Pairs of methods", lede)
    lede = (
        "Two-sided exact signed-rank tests, paired by seed, with Holm's correction over all pairs; the colour says "
        "whether the row's method is better than the column's. Places where no test can conclude are left out."
    )
    columns = ["first", "second", "better", "hodges_lehmann", "hl_low", "hl_high", "p_two_sided", "p_holm", "n_paired"]
    columns += ["improvement"]
    places = sorted(dict.fromkeys(known["place"]), key=lambda place: place != "average")
    kept = [place for place in places if place in {"average", "across_targets", *frames.targets}]
    figures = []
    for place in kept:
        rows = known[(known["place"] == place).to_numpy()]
        title = f"{name_of(place).replace('_', ' ') if place not in frames.experiment.targets else name_of(place)}"
        label = f"p-values of pairs of methods: {title}"
        figures.append(
            _figure(frames, f"pairs-{frames.places.get(place, place)}", title, label, plots.pairs(rows), rows[columns])
        )
    return Part(f"{frames.id}-pairs", "Pairs of methods", lede, tuple(figures), len(places) - len(kept))


def _beyond(frames: Frames) -> Part | None:
    rows = main_rows(frames.board)
    rows = rows[rows["mean"].notna()]
    if rows.empty:
        return None
    columns = {
        "method": "method",
        "mean": "mean",
        "mean_low": "low",
        "mean_high": "high",
        "iqm": "interquartile mean",
        "iqm_low": "low ",
        "iqm_high": "high ",
        "gain": "gain over the baseline",
        "gain_standard_error": "±",
        "negative_transfer": "baseline significantly better",
        "regret": "regret to the oracle",
        "regret_standard_error": "± ",
    }
    table = rows[list(columns)].rename(columns=columns).dropna(axis=1, how="all")
    harmed = frames.board[frames.board["negative_transfer"].fillna(value=False).astype(bool)]
    where = [
        f"{name_of(row.method)} at {name_of(row.target)}" for row in harmed.itertuples() if row.target != "average"
    ]
    lede = (
        "Bootstrap intervals stratified by target; an interquartile mean leaves out the lowest and highest quarter of "
        "the runs at each target."
    )
    if where:
        lede += f" The baseline is significantly better (one-sided, uncorrected) than {', '.join(where[:12])}."
    return Part(f"{frames.id}-beyond", "Beyond the mean", lede, table=table)


def _weights(frames: Frames) -> Part | None:
    if frames.curves.empty:
        return None
    title = "Weights of the sources"
    found = weighing(frames.curves)
    if found.empty:
        return Part(f"{frames.id}-weights", title, "No method here gives single sources weights of their own.")
    last = final_weights(frames.curves).astype({"target": object, "method": object})

    def values(target: str) -> pd.DataFrame:
        return last[last["target"] == target][["method", "source", "weight", "equal", "seeds"]]

    lede = (
        "Weights at the last epoch, mean of the seeds. Blue is more than equal weights (1/k), orange less; the scale "
        "reaches at least 0.05 to both sides, so that noise does not look like a preference."
    )
    return _by_target(frames, "weights", title, lede, found, plots.weight_map, values)


def _weights_over_epochs(frames: Frames) -> Part | None:
    found = weighing(frames.curves)
    found = found[found.groupby("target", observed=True)["source"].transform("nunique") <= MOST_LINES]
    if found.empty:
        return None

    def values(target: str) -> pd.DataFrame:
        ends = _ends(found[(found["target"] == target).to_numpy()])
        return ends.groupby(["method", "source", "epoch"], sort=False)["weight"].agg(["mean", "std"]).reset_index()

    lede = "Lines are means over seeds with a band of one standard deviation; dashed: equal weights. A row is a method."
    return _by_target(frames, "course", "Weights over the epochs", lede, found, plots.weights, values)


def _ends(curves: pd.DataFrame) -> pd.DataFrame:
    """The first and the last epoch."""
    found = curves[curves["epoch"].isin([1, curves["epoch"].max()])]
    return found.astype({"method": object, "source": object})


def _curves(frames: Frames) -> Part | None:
    if frames.curves.empty:
        return None
    figures = []
    for what in ("risk", "gap"):
        known = frames.curves[frames.curves[what].abs() > 0]
        for target in frames.targets:
            own = known[(known["target"] == target).to_numpy()]
            if own.empty:
                continue
            values = _ends(own).groupby(["method", "epoch"], sort=False)[what].mean().reset_index()
            title = f"{target}: {what}"
            label = f"{what} of each method for {name_of(target)} over the epochs, mean of sources and seeds"
            figures.append(
                _figure(frames, f"{what}-{frames.places[target]}", title, label, plots.curves(own, what), values)
            )
    lede = (
        "Mean over the sources and seeds. The gap is what a method's discrepancy makes of source and target; those of "
        "different discrepancies cannot be compared."
    )
    left = len(frames.experiment.targets) - len(frames.targets)
    return Part(f"{frames.id}-curves", "Risks and gaps over the epochs", lede, tuple(figures), left)


def _time(frames: Frames) -> Part | None:
    ok = frames.runs[(frames.runs["status"] == "ok").to_numpy()]
    if not ok["train_seconds"].notna().any():
        return None
    lede = (
        "Seconds of training, mean of the runs that are ok; runs that were trained as one stack share its time. Times "
        "of different devices, or of a busy one, cannot be compared."
    )
    of = ok.astype({"method": object}).groupby("method", sort=False)
    values = of.agg(
        seconds=("train_seconds", "mean"), steps=("steps", "mean"), score=("score", "mean"), runs=("score", "count")
    )
    values = values.assign(milliseconds_a_step=1000 * values["seconds"] / values["steps"]).reset_index()
    label = "Mean score of each method by its mean seconds of training"
    drawn = _figure(frames, "cost", "Score against time", label, plots.cost(ok), values, wide=True)
    return Part(f"{frames.id}-time", "Time", lede, (drawn,))


def _concludes(pairs: pd.DataFrame) -> bool:
    return bool(can_conclude(pairs).any())


def _by_target(
    frames: Frames,
    name: str,
    title: str,
    lede: str,
    rows: pd.DataFrame,
    draw: Callable[[pd.DataFrame], Chart],
    values: Callable[[str], pd.DataFrame],
) -> Part:
    figures = []
    for target in frames.targets:
        own = rows[(rows["target"] == target).to_numpy()]
        if len(own):
            label = f"{title}: scores at {name_of(target)} by method"
            figures.append(_figure(frames, f"{name}-{frames.places[target]}", target, label, draw(own), values(target)))
    left = len(frames.experiment.targets) - len(frames.targets)
    return Part(f"{frames.id}-{name}", title, lede, tuple(figures), left)


def _figure(
    frames: Frames, name: str, title: str, label: str, chart: Chart, values: pd.DataFrame, *, wide: bool = False
) -> Figure:
    return figure(f"{frames.id}-{name}", title, label, chart, values, frames.shown, wide=wide)


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Names as parts of ids: letters, digits and hyphens, no two alike."""
    found: dict[str, str] = {}
    for name in names:
        words = "".join(char if char.isascii() and char.isalnum() else "-" for char in name[:60]).strip("-").lower()
        slug = words or "x"
        taken = set(found.values())
        found[name] = next(
            one for one in (slug, *(f"{slug}-{n}" for n in range(2, len(taken) + 3))) if one not in taken
        )
    return found
