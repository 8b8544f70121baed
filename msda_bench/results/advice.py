"""Says what to do after an experiment: which method to use, what to expect of it, where it fails, and what comes next.

Methods are equal here if none of them was shown to be worse than the best mean, as the marks of the tables say.
"""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from msda_bench.component.task import MetricInfo
from msda_bench.errors import StoreError
from msda_bench.results.chance import BesideChance
from msda_bench.results.decision import INCOMPLETE, PairedComparison, pairs_of_mean
from msda_bench.results.differences import needed_pairs
from msda_bench.results.leaderboard import Row, by_rank, rows_of_mean
from msda_bench.results.runs import ok_runs, results_of
from msda_bench.results.scores import ScoreTable
from msda_bench.results.small import averaged_targets
from msda_bench.results.words import counted, first_of, name_of
from msda_bench.suite.plan import Experiment

OWN_DATA = frozenset({"table", "arrays", "image_folder"})
"""The datasets of the user's own files, where `predict` answers new rows."""
SENTENCES = ("use", "expect", "where", "then")
"""The fields of an advice that are sentences, in order."""
_AS_CHEAP = 1.5
"""A method whose training takes up to this many times as long as another of its kind counts as equally cheap."""


@dataclass(frozen=True)
class Advice:
    """What to do after an experiment.

    Attributes:
        experiment: its name.
        method: the one to use; None where the runs do not tell.
        equals: the methods, this one included, that were not shown to be worse than the best mean.
        metric: the metric's name in CSV files, such as accuracy_percent.
        mean, low, high: of the method over the targets, with the interval of the leaderboard; NaN if not known.
        worst: the target where its mean is worst, empty of a single target.
        worst_mean, worst_low, worst_high: of the method there.
        at_chance: the targets where it is not clearly better than a constant answer.
        use, expect, where, then: the sentences on these, and on what comes next; empty where there is nothing to say.
    """

    experiment: str
    method: str | None
    equals: tuple[str, ...] = ()
    metric: str = ""
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    worst: str = ""
    worst_mean: float = math.nan
    worst_low: float = math.nan
    worst_high: float = math.nan
    at_chance: tuple[str, ...] = ()
    use: str = ""
    expect: str = ""
    where: str = ""
    then: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences that are not empty, in order."""
        return tuple(text for text in (self.use, self.expect, self.where, self.then) if text)


def advice_on(
    table: ScoreTable,
    runs: pd.DataFrame,
    rows: Sequence[Row],
    pairs: Sequence[PairedComparison],
    chance: BesideChance,
) -> Advice:
    """What to do after an experiment, from its selected runs, its rows of the leaderboard, and its comparisons.

    The method to use is the simplest of those that were not shown to be worse than the best: one that is fitted at once
    before a network, and one without inputs of the target before one that adapts; then the one that trains fastest.
    """
    experiment = table.experiment
    ranked = by_rank(rows_of_mean(table, rows))
    obstacle = _obstacle(table, runs, ranked, pairs_of_mean(pairs), chance)
    if obstacle is not None:
        why, remedy = obstacle
        return Advice(
            experiment.name,
            None,
            metric=experiment.measure.column,
            use=f"No method is recommended: {why}.",
            then=f"Next: {remedy}.",
        )
    equals = _equals(ranked, chance)
    costs = _costs(experiment, runs, equals)
    method = min(equals, key=costs.__getitem__)
    return _advice(table, runs, rows, ranked, chance, equals, method)


def _obstacle(
    table: ScoreTable,
    runs: pd.DataFrame,
    ranked: Sequence[Row],
    pairs: Sequence[PairedComparison],
    chance: BesideChance,
) -> tuple[str, str] | None:
    """Why no method can be recommended, and what would change that; None if one can."""
    experiment = table.experiment
    if not ranked:
        return _unranked(experiment, runs)
    if table.small >= set(experiment.targets):
        return "the tests have too few rows to show a difference", "label more rows of each domain"
    if chance.levels and all((chance.column, row["method"]) in chance.low for row in ranked):
        where = "on average" if len(chance.levels) > 1 else f"at {name_of(chance.column)}"
        remedy = "look for inputs that tell the classes apart in every domain, or label rows of the new domain"
        return f"none does clearly better than {chance.what} {where}", remedy
    if len(ranked) > 1 and not any(row["bold_holm"] for row in ranked):
        return _few_seeds(experiment, pairs)
    return None


def _unranked(experiment: Experiment, runs: pd.DataFrame) -> tuple[str, str]:
    """Why no method is ranked, and what would change that."""
    tests = ok_runs(runs)["n_test"]
    if len(tests) and (tests == 0).all():
        where = first_of(map(name_of, experiment.targets))
        rehearse = "compare the methods on the domains that have labels (`data identify ... --unlabelled drop`)"
        return f"{where} has no labels to measure by", f"{rehearse}, and label some rows of {where}"
    if runs["reference"].to_numpy(dtype=bool).all():
        return "all are references", "add a method to the suite"
    return "none has a result at every target", "run the suite again, or look at the runs that failed"


def _few_seeds(experiment: Experiment, pairs: Sequence[PairedComparison]) -> tuple[str, str]:
    """Why no test can show a difference, and what would change that."""
    if any(pair.reason == INCOMPLETE for pair in pairs):
        return "runs are missing, and the others are too few for a test", "run the suite again"
    tests = max(pair.n_family for pair in pairs)
    needed = needed_pairs(tests, experiment.alpha)
    paired = max(pair.n_paired for pair in pairs)
    if paired >= needed:
        return "too many runs of a seed have equal scores to show a difference", "take more seeds, or more test rows"
    seeds = counted(paired, "seed")
    return f"{seeds} are too few for {counted(tests, 'comparison')}", f"set `seeds: {needed}` in the suite and run it"


def _equals(ranked: Sequence[Row], chance: BesideChance) -> list[str]:
    """The methods that were not shown to be worse than the best, without those that are no better than chance."""
    if len(ranked) == 1:
        return [ranked[0]["method"]]
    best = [row["method"] for row in ranked if row["bold_holm"]]
    if not chance.levels:
        return best
    useful = [name for name in best if (chance.column, name) not in chance.low]
    return useful or best


def _costs(experiment: Experiment, runs: pd.DataFrame, names: Sequence[str]) -> dict[str, tuple[int, float, int]]:
    """The order of equal methods, the simplest and cheapest first: kind, seconds of training, place by the mean.

    The kinds are a model that is fitted at once, a network, and each of these with inputs of the target. Seconds are 0
    where they are not known, or about as few as the least of the kind.
    """
    planned = {method.name: method for method in experiment.methods}
    median_steps = _medians(runs, "steps")
    median_seconds = _medians(runs, "train_seconds")
    kinds: dict[str, int] = {}
    seconds: dict[str, float] = {}
    least: dict[int, float] = {}
    for name in names:
        sees_target = planned[name].sees_target
        if sees_target is None:
            sees_target = name != experiment.baseline
        takes_steps = median_steps.get(name, 0.0) > 0
        kind = 2 * sees_target + takes_steps
        kinds[name] = kind
        seconds[name] = median_seconds.get(name, math.nan)
        if not math.isnan(seconds[name]):
            least[kind] = min(least.get(kind, math.inf), seconds[name])
    costs = {}
    for place, name in enumerate(names):
        kind = kinds[name]
        is_known = not math.isnan(seconds[name])
        is_dear = is_known and seconds[name] > _AS_CHEAP * least[kind]
        costs[name] = (kind, seconds[name] if is_dear else 0.0, place)
    return costs


def _medians(runs: pd.DataFrame, column: str) -> dict[str, float]:
    """The median of a column over the runs of each method that are ok, without missing values."""
    known = ok_runs(runs)[["method", column]].dropna().astype({column: float})
    medians = known.groupby("method", observed=True)[column].median()
    return {str(name): float(value) for name, value in medians.items()}


def _advice(
    table: ScoreTable,
    runs: pd.DataFrame,
    rows: Sequence[Row],
    ranked: Sequence[Row],
    chance: BesideChance,
    equals: Sequence[str],
    method: str,
) -> Advice:
    experiment = table.experiment
    (row,) = (row for row in ranked if row["method"] == method)
    averaged = averaged_targets(experiment.targets, table.small)
    worst: Row = {}
    if len(averaged) > 1:
        worst = _worst(experiment, method, rows, averaged)
    low = tuple(chance.places(method))
    where = ""
    if low:
        where = f"It is not clearly better than {chance.what} at {chance.shown(low)}."
    return Advice(
        experiment.name,
        method,
        tuple(equals),
        experiment.measure.column,
        mean=row["mean"],
        low=row["mean_low"],
        high=row["mean_high"],
        worst=str(worst.get("target", "")),
        worst_mean=worst.get("mean", math.nan),
        worst_low=worst.get("mean_low", math.nan),
        worst_high=worst.get("mean_high", math.nan),
        at_chance=low,
        use=_use(experiment.measure, ranked, equals, row),
        expect=_expect(experiment.measure, row, worst, averaged),
        where=where,
        then=_then(experiment, runs, method, low),
    )


def _worst(experiment: Experiment, method: str, rows: Sequence[Row], averaged: Sequence[str]) -> Row:
    """The row of the target where the mean of a method is worst, of the first one among equals; empty without any."""
    sign = experiment.measure.sign
    known = []
    for row in rows:
        if row["method"] == method and row["target"] in averaged and not math.isnan(row["mean"]):
            known.append(row)
    return min(known, key=lambda row: sign * row["mean"], default={})


def _use(measure: MetricInfo, ranked: Sequence[Row], equals: Sequence[str], row: Row) -> str:
    """Which method to use, and why."""
    method = name_of(row["method"])
    if len(ranked) == 1:
        return f"Use {method}: no other method is ranked."
    if len(equals) == 1:
        return f"Use {method}: it has the best mean, and {_worse(ranked)}."
    many = f"the simplest and cheapest of the {len(equals)} methods that were not shown to be worse than the best"
    if row["rank"] == 1:
        return f"Use {method}: it has the best mean, and is {many}."
    best = ranked[0]
    less = abs(best["mean"] - row["mean"])
    size = f"{less:.2f} points" if measure.percent else f"{less:.3g}"
    return f"Use {method}: {many}; the mean of {name_of(best['method'])} is {size} better, which is not shown."


def _worse(ranked: Sequence[Row]) -> str:
    """How many of the others were shown to be worse than the best; some may have too few runs for a test."""
    others = len(ranked) - 1
    worse = sum(row["bold_holm"] is False for row in ranked)
    if worse < others:
        verb = "was" if worse == 1 else "were"
        return f"{worse} of {others} others {verb} shown to be worse"
    every = {1: "the other method was", 2: "both others were"}
    who = every.get(others, f"all {others} others were")
    return f"{who} shown to be worse"


def _expect(measure: MetricInfo, row: Row, worst: Row, averaged: Sequence[str]) -> str:
    """The score to expect at a new domain, and the worst so far."""
    if len(averaged) == 1:
        only = f"the mean at {name_of(averaged[0])}, the only target"
        return f"At a new domain expect {_size(measure, row)} {measure.label}, {only}."
    text = f"At a new domain expect {_size(measure, row)} {measure.label}, the mean over {len(averaged)} targets"
    if not worst:
        return f"{text}."
    return f"{text}; at the worst of them, {name_of(worst['target'])}, it was {_size(measure, worst)}."


def _size(measure: MetricInfo, row: Row) -> str:
    """A mean with its interval, such as `66.8 % [60.5, 73.1]`."""
    form = "{:.1f}" if measure.percent else "{:.3g}"
    mean = form.format(row["mean"])
    if measure.percent:
        mean += " %"
    if math.isnan(row["mean_low"]):
        return mean
    return f"{mean} [{form.format(row['mean_low'])}, {form.format(row['mean_high'])}]"


def _then(experiment: Experiment, runs: pd.DataFrame, method: str, low: Sequence[str]) -> str:
    """What comes next: targets to look at, and the command that predicts new rows of the user's own data."""
    steps = []
    if low:
        steps.append(f"look at {first_of(map(name_of, low))}, or label some rows there")
    if experiment.dataset in OWN_DATA:
        command = ["msda-bench", "predict", _suite_of(runs), "NEW.csv", "--method", method, "--out", "answers.csv"]
        steps.append(f"to answer new rows: `{shlex.join(command)}`")
    if not steps:
        return ""
    return f"Next: {'; '.join(steps)}."


def _suite_of(runs: pd.DataFrame) -> str:
    """The suite that the folder was made from, as the last command named it; SUITE if it is not known."""
    store = results_of(runs).store
    if store is None:
        return "SUITE"
    with contextlib.suppress(StoreError, ValueError):
        for command in reversed(store.commands()):
            words = shlex.split(command)
            if words[:2] != ["msda-bench", "run"]:
                continue
            for word in words[2:]:
                if Path(word).suffix in {".yaml", ".yml"}:
                    return word
    return "SUITE"
