"""How the registered measurement is read: the tables of its findings, as lines of Markdown, from frames of runs.

Written before all its tasks were recorded, and tested on recorded tasks whose methods' names are exchanged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import chdtri

import msda_bench as mb
from msda_bench.results.criteria import criteria
from msda_bench.results.power import Smallest, Spread
from msda_bench.results.select import select
from msda_bench.results.survival import survives
from msda_bench.results.words import listed

PRIMARY = ("CORAL", "MMD", "CDAN", "MCC", "BNM", "SHOT", "DARN", "MFSAN")
A, B, B2, C = TRACKS = ("first", "source_accuracy", "source_accuracy+infomax", "oracle")
MARKS = {"better by more than the margin": "++", "better": "+", "equivalent": "=", "worse": "-", "undecided": "?"}
LEVEL = 0.05
TUNING, N_SEEDS = range(100, 104), 20


def tracks_of(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The evaluated runs of each track, with the settings that it chose."""
    return {track: select(runs, track) for track in TRACKS}


def interval(*numbers: float) -> str:
    """A gain in points with its interval."""
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*numbers)


def holds(text: str, *phrases: str) -> None:
    """Fails unless the prose has each phrase, and no number beside them."""
    prose = re.sub(r"^(\|.*|    .*|!\[.*)$", "", text, flags=re.MULTILINE)
    left = " ".join(prose.split())
    for phrase in sorted(phrases, key=len, reverse=True):
        assert phrase in left, phrase
        left = left.replace(phrase, "")
    assert not re.findall(r".{0,40}(?<![A-Za-z])\d.{0,20}", re.sub(r"\]\([^)]*\)|`[^`]*`", "", left)), "not held"


def plain(numbers: tuple[float, float, float]) -> str:
    """The size of a difference, as a loss or a gain that the sentence names."""
    mean, *ends = numbers
    low, high = sorted(map(abs, ends)) if mean < 0 and max(ends) < 0 else ends
    return f"{abs(mean):.1f} [{low:.1f}, {high:.1f}]"


def percent(*numbers: float) -> str:
    """A share with its interval; empty without one."""
    return "" if pd.isna(numbers[0]) else "{:.0f} % [{:.0f}, {:.0f}]".format(*(100 * number for number in numbers))


def probability(p: float) -> str:
    """A p-value, as tables have it."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def line(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [line(head), "|---" * len(head) + "|", *map(line, rows)]


def over_targets(chosen: pd.DataFrame) -> pd.DataFrame:
    """Mean scores over a task's targets, by (experiment, seed) and method."""
    return chosen.groupby(["experiment", "seed", "method"], observed=True)["score"].mean().unstack()


def student(gains: pd.Series) -> tuple[float, float, float]:
    """The mean over seeds with its 95 % interval."""
    mean = gains.mean()
    return (mean, *stats.t.interval(1 - LEVEL, len(gains) - 1, mean, stats.sem(gains)))


def gains_over_src(chosen: pd.DataFrame) -> pd.DataFrame:
    """Each method's gain over SRC in one task, on the mean over targets, with both intervals.

    A row of comparisons that has SRC first is of SRC less the method, and is turned.
    """
    pairs = mb.compare(chosen)
    pairs = pairs[(pairs["scope"] == "average") & (pairs["control"] == "SRC")]
    assert set(pairs["first"]) == {"SRC"}
    pairs = pairs.set_index("second")
    turned = 0.0 - pairs[["hodges_lehmann", "hl_high", "hl_low", "corrected_t_high", "corrected_t_low"]]
    turned.columns = ["gain", "low", "high", "corrected_low", "corrected_high"]
    return pairs[["standing", "detectable", "n_paired"]].join(turned)


def spread_at_tuning_seeds(runs: pd.DataFrame) -> Spread:
    """How much a task's gains over SRC vary between the tuning seeds, with the settings that track B chooses there."""
    there = runs["seed"].isin(TUNING) & (runs["status"] == "ok") & runs["method"].isin(["SRC", *PRIMARY])
    tried = runs[there].groupby(["method", "target", "candidate"], observed=True)
    is_whole = tried["score"].transform("size") == len(TUNING)
    criterion = tried[f"validator:{B}"].transform("mean").round(12).where(is_whole)
    best = criterion.groupby([runs["method"], runs["target"]], observed=True).transform("max")
    chosen = runs[there][criterion == best].drop_duplicates(["method", "target", "seed"])
    scores = chosen.groupby(["seed", "method"], observed=True)["score"].mean().unstack()
    deviations = scores[[*PRIMARY]].sub(scores["SRC"], axis=0).std()
    return Spread(dict(deviations), len(scores), ())


def upper_limit(freedom: float) -> float:
    """How many times its estimate a standard deviation is at most, with 80 % confidence."""
    return math.sqrt(freedom / chdtri(freedom, 0.8))


def of_mean(deviations: Sequence[float], level: float) -> Smallest:
    """What Student's t test of the mean gain over experiments finds; each has its own standard deviation and seeds.

    Variances add up, with Welch's and Satterthwaite's degrees of freedom.
    """
    from scipy.special import nctdtrinc, stdtrit

    error, freedom = math.hypot(*deviations) / len(deviations), _freedom(deviations)

    def smallest(seeds: int, power: float) -> float | None:
        if seeds < 2:
            return None
        df = freedom * (seeds - 1)
        return float(nctdtrinc(df, 1 - power, stdtrit(df, 1 - level / 2))) * error / math.sqrt(seeds)

    return smallest


class Design(NamedTuple):
    """The tests of an experiment, or of a mean over several, at their level.

    Attributes:
        deviation: the standard deviation of the gains, of the method that varies as half of them do.
        usual: the test of that method.
        careful: that with the upper limit of the standard deviation.
        worst: that of the method with the largest one.
    """

    deviation: float
    usual: Smallest
    careful: Smallest
    worst: Smallest


def design_of_mean(spreads: Sequence[Spread], level: float) -> Design | None:
    """The tests of the mean gains over several experiments at this level; None without a method of all of them."""
    names = [name for name in spreads[0].deviations if all(name in spread.deviations for spread in spreads)]
    if not names:
        return None
    by_size = sorted(
        ([spread.deviations[name] for spread in spreads] for name in names), key=lambda sizes: math.hypot(*sizes)
    )
    middle, seeds = by_size[(len(names) - 1) // 2], min(spread.seeds for spread in spreads)
    limit = upper_limit(_freedom(middle) * (seeds - 1))
    cases = (middle, [limit * size for size in middle], by_size[-1])
    return Design(math.hypot(*middle) / len(middle), *(of_mean(sizes, level) for sizes in cases))


def _freedom(deviations: Sequence[float]) -> float:
    """Welch's and Satterthwaite's degrees of freedom of the mean, over those of one experiment."""
    squares = [size**2 for size in deviations]
    return sum(squares) ** 2 / sum(square**2 for square in squares) if any(squares) else 1.0


def power_of_the_mean(spreads: Sequence[Spread]) -> str:
    """What the mean over tasks finds with the registered number of seeds, and with half of it."""
    design = design_of_mean(spreads, LEVEL / len(PRIMARY))
    assert design is not None
    usual, careful, worst = (test(N_SEEDS, 0.8) for test in (design.usual, design.careful, design.worst))
    return (
        f"{usual:.2f} points; {careful:.2f} if standard deviations are as large as four seeds leave possible with a "
        f"confidence of 80 %; and {worst:.2f} for the method whose gains vary most. {N_SEEDS // 2} seeds would find "
        f"{design.usual(N_SEEDS // 2, 0.8):.2f}."
    )


def task_table(chosen: Mapping[str, pd.DataFrame]) -> tuple[list[str], str]:
    """The rows of one task's table, gains over SRC in each track, and the sentences below them."""
    tracks = {track: gains_over_src(runs) for track, runs in chosen.items()}
    first, main = tracks[A], tracks[B]
    lines = []
    for method in main["gain"].sort_values(ascending=False).index:
        cells = [interval(*of.loc[method, ["gain", "low", "high"]]) for of in tracks.values()]
        secondary = "" if method in PRIMARY else ", secondary"
        lines.append([method + secondary, *cells, main.loc[method, "standing"]])
    for reference in ("TAR", "JOINT"):
        means = [over_targets(runs).dropna() for runs in chosen.values()]
        lines.append([reference, *(interval(*student(of[reference] - of["SRC"])) for of in means), "reference"])

    def which(are: pd.Series) -> str:
        return listed(main.index[are]) or "none"

    (seeds,) = {*main["n_paired"]}
    assert main["corrected_low"].notna().all()
    size = f"{main.loc[[*PRIMARY], 'detectable'].median():.1f} points (the median of the methods)"
    shared = f"above 0 for {which(main['corrected_low'] > 0)}, below 0 for {which(main['corrected_high'] < 0)}"
    less = f"{which(main['high'] < first['low'])}; with InfoMax added, for {which(tracks[B2]['high'] < first['low'])}"
    text = (
        f"Seeds 0 to {seeds - 1}. In track B a true gain of {size} would be found with a probability of 80 %. "
        f"Nadeau and Bengio's interval, which allows for examples that seeds share, is {shared}. "
        "Settings that accuracy on the sources chooses gain less than the authors' own, interval below interval, for "
        f"{less}."
    )
    return [*map(line, lines)], text


def longer_runs(runs: pd.DataFrame, longer: pd.DataFrame) -> tuple[list[str], str, str]:
    """The rows of one task's gains over SRC beside those of longer runs at the same seeds, and the sentence below them.

    SRC's own row has its accuracy. The last is whose gains change in track B, for pages without the table.
    """
    rows: dict[str, list[str]] = {method: [method] for method in ["SRC", *PRIMARY, "TAR", "JOINT"]}
    correlations, changed = {}, {}
    for track, name in ((A, "A"), (B, "B")):
        after = over_targets(select(longer, track))
        before = over_targets(select(runs, track)).loc[after.index]
        gains = [of.sub(of["SRC"], axis=0).assign(SRC=of["SRC"])[[*rows]] for of in (before, after)]
        change = {method: student(gains[1][method] - gains[0][method]) for method in rows}
        for method, cells in rows.items():
            cells += [f"{of[method].mean():+.1f}".removeprefix("+" if method == "SRC" else "") for of in gains]
            cells.append(interval(*change[method]))
        correlations[name] = stats.kendalltau(*(of[[*PRIMARY]].mean() for of in gains)).statistic
        rises, falls = ([m for m in PRIMARY if min(sign * end for end in change[m][1:]) > 0] for sign in (1, -1))
        changed[name] = f"rises for {listed(rises) or 'none'} and falls for {listed(falls) or 'none'}"
    text = (
        f"Kendall's rank correlation of the eight mean gains is {correlations['A']:+.2f} in track A and "
        f"{correlations['B']:+.2f} in track B. By an interval that leaves out 0 the gain {changed['A']} in track A, "
        f"and {changed['B']} in track B."
    )
    return [*map(line, rows.values())], text, changed["B"]


def overview(tasks: Mapping[str, pd.DataFrame]) -> list[str]:
    """The table of all tasks in one track, from each task's chosen runs; JOINT's mean gain over SRC is the last row."""
    columns = {}
    for name, chosen in tasks.items():
        main, means = gains_over_src(chosen), chosen.groupby("method", observed=True)["score"].mean()
        cells = {method: f"{main.loc[method, 'gain']:+.1f} {MARKS[main.loc[method, 'standing']]}" for method in PRIMARY}
        columns[name] = cells | {"JOINT": f"{means['JOINT'] - means['SRC']:+.1f}"}
    rows = [[method, *(cells[method] for cells in columns.values())] for method in [*PRIMARY, "JOINT"]]
    return markdown(["method", *columns], rows)


@dataclass(frozen=True)
class Reading:
    """The questions E1 to E3 over tasks, of the evaluated runs of each track."""

    chosen: Mapping[str, pd.DataFrame]

    @cached_property
    def headroom(self) -> dict[str, tuple[float, float, float]]:
        """JOINT less SRC of each task in track C, with its interval."""
        scores = over_targets(self.chosen[C])
        gaps = (scores["JOINT"] - scores["SRC"]).groupby("experiment", observed=True)
        return {str(name): student(gap) for name, gap in gaps}

    @cached_property
    def standings(self) -> dict[str, pd.DataFrame]:
        """What each track says of each method over the tasks that count, those with headroom."""
        return {track: mb.across(self.chosen[track]).set_index("method") for track in TRACKS}

    @property
    def counted(self) -> list[str]:
        """The tasks that count."""
        return [name.removeprefix("gain:") for name in self.standings[B] if name.startswith("gain:")]

    @property
    def _main(self) -> pd.DataFrame:
        """The primary methods in track B, the largest mean gain first."""
        return self.standings[B].loc[[*PRIMARY]].sort_values("mean_gain", ascending=False, kind="stable")

    @cached_property
    def survives(self) -> pd.DataFrame:
        """What of track C's mean gain is left in track B."""
        return survives(self.chosen[B], self.chosen[C]).set_index("method")

    @cached_property
    def _pairs(self) -> pd.DataFrame:
        """The comparisons of SRC with each primary method in track B."""
        pairs = mb.compare(self.chosen[B])
        return pairs[(pairs["first"] == "SRC") & pairs["second"].isin(PRIMARY)]

    @property
    def _over_tasks(self) -> pd.DataFrame:
        """Those over tasks, by the method."""
        return self._pairs[self._pairs["scope"] == "across_datasets"].set_index("second")

    @cached_property
    def _at_targets(self) -> pd.DataFrame:
        """Those at single targets; `gain` is the method's, `shown` at a false discovery rate of 5 %."""
        pairs = self._pairs[self._pairs["scope"] == "target"]
        shown = stats.false_discovery_control(pairs["p_two_sided"]) <= LEVEL
        return pairs.assign(gain=0.0 - pairs["mean_difference"], shown=shown)

    @cached_property
    def margin(self) -> float:
        """The mean margin of the tasks that count."""
        tables = self.chosen[B].attrs["plan"].experiments
        return round(float(np.mean([table.margin for table in tables if table.name in self.counted])), 2)

    def _of_tracks(self, method: str, *tracks: str) -> list[str]:
        return [interval(*self.standings[track].loc[method, _GAIN]) for track in tracks]

    def opening(self) -> str:
        """What a reader has to know: each method's standing, what the tests could see, and the gap that is left."""
        groups = []
        for standing, of in self._main.groupby("standing", sort=False):
            words = f"{standing} of {self.margin} points" if "margin" in str(standing) else str(standing)
            verb = "is" if len(of) == 1 else "are"
            groups.append((list(MARKS).index(str(standing)), f"{len(of)} {verb} {words}: {listed(of.index)}"))
        by_standing = "; ".join(text for _, text in sorted(groups))
        seeds, n_tasks = self.chosen[B]["seed"].nunique(), len(self.headroom)
        return (
            f"Against SRC, all sources pooled without adaptation, of {len(PRIMARY)} methods {by_standing}. These are "
            f"means over the {len(self.counted)} of {n_tasks} tasks with headroom, {seeds} seeds each, in points of "
            "accuracy, with settings that are chosen without labels of the target, from one search for all. A true "
            f"mean gain of {self._main['detectable'].median():.2f} points (the median of the methods) would be found "
            f"with a probability of 80 %. JOINT, which has the target's labels, too, gains "
            f"{self._of_tracks('JOINT', B)[0]}. Intervals are at 95 % and not corrected for their number, as the tests "
            "are."
        )

    def what_survives(self) -> str:
        """How much of a method's gain is left when its settings are chosen without labels of the target."""
        known = self.survives.loc[self._main.index, ["survives", "survives_low", "survives_high"]].dropna()
        shares = listed(f"{method} {percent(*row)}" for method, row in known.iterrows())
        first, main = self.standings[A], self.standings[B]
        more, less = (
            listed(name for name in self._main.index if low.loc[name, _GAIN[2]] < high.loc[name, _GAIN[1]]) or "none"
            for low, high in ((main, first), (first, main))
        )
        others = listed(name for name in self._main.index if name not in known.index) or "none"
        return (
            "Of the mean gain that settings chosen with the target's labels give, those chosen without them keep "
            f"{shares or 'an unknown share'}. No share can be given for {others}: with these labels, too, no gain is "
            "shown that holds when tasks are resampled. The authors' own settings gain more than those that accuracy "
            f"on the sources chooses, interval above interval, for {more}, and less for {less}."
        )

    def on_a_new_task(self) -> str:
        """What the best method would gain on a task like these, and what tasks say as a sample."""
        best, row = next(self._main.iterrows())
        expected = interval(*row[["expected_gain", "expected_low", "expected_high"]])
        pairs = self._over_tasks.loc[self._main.index]
        shown = listed(pairs.index[(pairs["p_corrected"] <= LEVEL) & (pairs["mean_difference"] < 0)]) or "no method"
        return (
            f"The intervals speak about these tasks. On a new one {best} is expected to gain {expected}, more than the "
            f"margin with a probability of {100 * row['p_new_beyond']:.0f} %. Signed ranks over the tasks show a gain "
            f"of {shown}."
        )

    def without_headroom(self) -> str:
        """The tasks that do not count, each with JOINT less SRC in track C."""
        gaps = (f"{name} ({interval(*gap)})" for name, gap in self.headroom.items() if name not in self.counted)
        return listed(gaps) or "none"

    def of_method(self, method: str) -> str:
        """The standing of one method, its place, and its gains in all tracks."""
        first, main, infomax, oracle = self._of_tracks(method, *TRACKS)
        standing, place = self._main.loc[method, "standing"], 1 + list(self._main.index).index(method)
        return (
            f"{method} is number {place} of {len(PRIMARY)} by its mean gain, {main}: {standing}. With its authors' "
            f"settings it gains {first}, with InfoMax in the choice {infomax}, and with settings that the target's "
            f"labels choose {oracle}."
        )

    def decision_table(self) -> list[str]:
        """Each primary method over the tasks that count, the largest mean gain of track B first."""
        rows = []
        for method, row in self._main.iterrows():
            tracks = [interval(*self.standings[track].loc[method, _GAIN]) for track in TRACKS]
            left = self.survives.loc[method, ["survives", "survives_low", "survives_high"]]
            shares = [percent(*left), percent(*row[["gap_closed", "gap_closed_low", "gap_closed_high"]])]
            rows.append([str(method), row["standing"], tracks[1], probability(row["p_corrected"]), *shares])
            rows[-1] += [tracks[0], tracks[2], tracks[3]]
        head = ["method", "over SRC", "B: mean gain", "p", "survives, B / C", "of JOINT's gap"]
        return markdown([*head, "A", "B with InfoMax", "C"], rows)

    def checks_table(self) -> list[str]:
        """What else is registered of each mean gain of track B, in the order of the decision table."""
        rows = []
        for method, row in self._main.iterrows():
            expected = interval(*row[["expected_gain", "expected_low", "expected_high"]])
            shares = [f"{100 * row[name]:.0f} %" for name in ("p_new_beyond", "p_new_within")]
            p_values = [probability(p) for p in (row["p_sign_flip"], self._over_tasks.loc[method, "p_corrected"])]
            rows.append([str(method), f"{row['detectable']:.2f}", *p_values, expected, f"{row['spread']:.1f}", *shares])
        head = ["method", "detectable", "p by sign flips", "p of signed ranks over tasks", "expected on a new task"]
        return markdown([*head, "spread of tasks", "above the margin", "within it"], rows)

    def without(self, task: str) -> list[str]:
        """The mean gains of track B without a task, beside those with it; exploratory."""
        fewer = self._without(task)
        both = [(str(method), with_all, fewer.loc[method]) for method, with_all in self._main.iterrows()]
        rows = [
            [method, *(f"{interval(*of[_GAIN])} {MARKS[of['standing']]}" for of in (with_all, with_fewer))]
            for method, with_all, with_fewer in both
        ]
        return markdown(["method", "all that count", f"without {task}"], rows)

    def without_in_words(self, task: str) -> str:
        """The mean gains of track B without a task; exploratory."""
        fewer = self._without(task).loc[[*PRIMARY]].sort_values("mean_gain", ascending=False, kind="stable")
        gains = listed(f"{method} {interval(*row[_GAIN])}" for method, row in fewer.iterrows())
        return f"Without {task}, which the plan did not leave out, the mean gains are {gains}."

    def _without(self, task: str) -> pd.DataFrame:
        runs = self.chosen[B]
        return mb.across(runs[runs["experiment"] != task]).set_index("method")

    def targets(self) -> list[str]:
        """The mean gains of track B at each target, with a mark where one is shown."""
        rows = []
        for (task, target), of in self._at_targets.groupby(["experiment", "target"], sort=False, observed=True):
            by_method = of.set_index("second").loc[[*PRIMARY]]
            marks = np.where(by_method["shown"], np.where(by_method["gain"] > 0, "\\*", "!"), "")
            rows.append(
                [str(task), str(target), *(f"{g:+.1f}{m}" for g, m in zip(by_method["gain"], marks, strict=True))]
            )
        return markdown(["task", "target", *PRIMARY], rows)

    def targets_in_words(self) -> str:
        """How many gains and losses are shown at single targets."""
        gains, shown = self._at_targets["gain"], self._at_targets["shown"]
        found = f"{(shown & (gains > 0)).sum()} find a gain and {(shown & (gains < 0)).sum()} a loss"
        return f"Of {len(gains)} tests at single targets {found}."

    def seconds(self) -> list[tuple[str, float]]:
        """Training time over SRC's in track B: the geometric mean over tasks, the fastest method first."""
        runs = self.chosen[B]
        by_task = runs.groupby(["experiment", "method"], observed=True)["train_seconds"].mean().unstack()
        ratios = np.exp(np.log(by_task.div(by_task["SRC"], axis=0)[[*PRIMARY]]).mean())
        return [(str(method), float(ratio)) for method, ratio in ratios.sort_values().items()]


_GAIN = ["mean_gain", "mean_gain_low", "mean_gain_high"]


@dataclass(frozen=True)
class Selection:
    """What criteria lose against the best of the eight candidates, on the mean over methods and tasks that count.

    The oracle's choice is the best at the tuning seeds. At the evaluated seeds another may be better, so that a track
    may lose less than nothing.
    """

    runs: pd.DataFrame
    counted: Sequence[str]

    @cached_property
    def means(self) -> pd.DataFrame:
        """Points lost at the tuning seeds, rank correlation, and points lost at the evaluated seeds, by criterion."""
        judged = criteria(self.runs)
        judged = judged[(judged["method"] == "all methods") & judged["experiment"].isin(self.counted)]
        whole = judged.groupby(["experiment", "criterion"], sort=False, observed=True).tail(1)
        numbers = whole.set_index("criterion")[["regret", "rank_correlation", "evaluated_regret"]].astype(float)
        return numbers.groupby(level=0, sort=False, observed=True).mean()

    def table(self) -> list[str]:
        """A row for each criterion."""
        forms = ("{:.2f}", "{:+.2f}", "{:.2f}")
        rows = [
            [str(name), *("" if pd.isna(x) else form.format(x) for x, form in zip(of, forms, strict=True))]
            for name, of in self.means.iterrows()
        ]
        return markdown(["criterion", "points lost", "rank correlation", "points lost at evaluated seeds"], rows)

    def in_words(self) -> str:
        """What the tracks lose."""
        lost = self.means[["regret", "evaluated_regret"]]
        form = "{:.2f} points at the tuning seeds and {:.2f} at the evaluated ones"
        of = {track: form.format(*lost.loc[track]) for track in (A, B, B2)}
        return f"it loses {of[B]}. Its sum with InfoMax loses {of[B2]}, the authors' settings lose {of[A]}."
