"""Says what to do after an experiment: which method to use, what to expect of it, where it fails, and what comes next.

Methods are equal here if none of them was shown to be worse than the best mean, as the marks of the tables say.
"""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from msda_bench.errors import StoreError
from msda_bench.results.chance import BesideChance
from msda_bench.results.compare import main_pairs, main_rows
from msda_bench.results.decision import INCOMPLETE
from msda_bench.results.runs import results_of
from msda_bench.results.small import averaged_targets, small_tests
from msda_bench.results.words import counted, first_of, name_of
from msda_bench.suite.plan import Experiment, MetricInfo

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
    experiment: Experiment, runs: pd.DataFrame, board: pd.DataFrame, pairs: pd.DataFrame, chance: BesideChance
) -> Advice:
    """What to do after an experiment, from its selected runs, and its rows of the leaderboard and the comparisons.

    The method to use is the simplest of those that were not shown to be worse than the best: one that is fitted at once
    before a network, and one without inputs of the target before one that adapts; then the one that trains fastest.
    """
    rows = main_rows(board)
    ranked = rows[rows["rank"].notna()].sort_values("rank", kind="stable")
    obstacle = _obstacle(experiment, runs, ranked, main_pairs(pairs), chance)
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
    return _advice(experiment, runs, board, ranked, chance, equals, method)


def _obstacle(
    experiment: Experiment, runs: pd.DataFrame, ranked: pd.DataFrame, pairs: pd.DataFrame, chance: BesideChance
) -> tuple[str, str] | None:
    """Why no method can be recommended, and what would change that; None if one can."""
    if ranked.empty:
        return _unranked(experiment, runs)
    if small_tests(runs).keys() >= set(experiment.targets):
        return "the tests have too few rows to show a difference", "label more rows of each domain"
    methods = ranked["method"].astype(object)
    if chance.levels and all((chance.column, method) in chance.low for method in methods):
        where = "on average" if len(chance.levels) > 1 else f"at {name_of(chance.column)}"
        remedy = "look for inputs that tell the classes apart in every domain, or label rows of the new domain"
        return f"none does clearly better than {chance.what} {where}", remedy
    if len(ranked) > 1 and not _is_best(ranked).any():
        return _few_seeds(experiment, pairs)
    return None


def _is_best(ranked: pd.DataFrame) -> pd.Series[bool]:
    """Whether each method was not shown to be worse than the best, by tests that could show it."""
    return ranked["bold_holm"].eq(other=True).fillna(value=False).astype(bool)


def _unranked(experiment: Experiment, runs: pd.DataFrame) -> tuple[str, str]:
    """Why no method is ranked, and what would change that."""
    tests = runs.loc[(runs["status"] == "ok").to_numpy(), "n_test"]
    if len(tests) and (tests == 0).all():
        where = first_of(map(name_of, experiment.targets))
        rehearse = "compare the methods on the domains that have labels (`data identify ... --unlabelled drop`)"
        return f"{where} has no labels to measure by", f"{rehearse}, and label some rows of {where}"
    if runs["reference"].to_numpy(dtype=bool).all():
        return "all are references", "add a method to the suite"
    return "none has a result at every target", "run the suite again, or look at the runs that failed"


def _few_seeds(experiment: Experiment, pairs: pd.DataFrame) -> tuple[str, str]:
    """Why no test can show a difference, and what would change that."""
    if (pairs["reason"] == INCOMPLETE).any():
        return "runs are missing, and the others are too few for a test", "run the suite again"
    tests = int(pairs["n_family"].max())
    needed = 1 + math.ceil(math.log2(tests / experiment.alpha))
    paired = int(pairs["n_paired"].max())
    if paired >= needed:
        return "too many runs of a seed have equal scores to show a difference", "take more seeds, or more test rows"
    seeds = counted(paired, "seed")
    return f"{seeds} are too few for {counted(tests, 'comparison')}", f"set `seeds: {needed}` in the suite and run it"


def _equals(ranked: pd.DataFrame, chance: BesideChance) -> list[str]:
    """The methods that were not shown to be worse than the best, without those that are no better than chance."""
    names = ranked["method"].astype(object)
    if len(ranked) == 1:
        return names.tolist()
    best = names[_is_best(ranked)].tolist()
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
    ok = runs[(runs["status"] == "ok").to_numpy(dtype=bool)]
    by_method = ok[["steps", "train_seconds"]].astype(float).groupby(ok["method"].astype(object)).median()
    kinds: dict[str, int] = {}
    seconds: dict[str, float] = {}
    least: dict[int, float] = {}
    for name in names:
        sees_target = planned[name].sees_target
        if sees_target is None:
            sees_target = name != experiment.baseline
        takes_steps = bool(by_method["steps"].get(name, 0.0) > 0)
        kind = 2 * sees_target + takes_steps
        kinds[name] = kind
        seconds[name] = float(by_method["train_seconds"].get(name, math.nan))
        if not math.isnan(seconds[name]):
            least[kind] = min(least.get(kind, math.inf), seconds[name])
    costs = {}
    for place, name in enumerate(names):
        kind = kinds[name]
        is_known = not math.isnan(seconds[name])
        is_dear = is_known and seconds[name] > _AS_CHEAP * least[kind]
        costs[name] = (kind, seconds[name] if is_dear else 0.0, place)
    return costs


def _advice(
    experiment: Experiment,
    runs: pd.DataFrame,
    board: pd.DataFrame,
    ranked: pd.DataFrame,
    chance: BesideChance,
    equals: Sequence[str],
    method: str,
) -> Advice:
    mine = board[(board["method"] == method).to_numpy()]
    row = ranked[(ranked["method"] == method).to_numpy()].iloc[0].to_dict()
    averaged = averaged_targets(experiment.targets, small_tests(runs))
    of_targets = mine[mine["target"].isin(averaged).to_numpy() & mine["mean"].notna().to_numpy()]
    worst: dict[Any, Any] = {}
    if len(averaged) > 1 and len(of_targets):
        upwards = experiment.measure.higher_is_better
        worst = of_targets.sort_values("mean", ascending=upwards, kind="stable").iloc[0].to_dict()
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


def _use(measure: MetricInfo, ranked: pd.DataFrame, equals: Sequence[str], row: Mapping[Any, Any]) -> str:
    """Which method to use, and why."""
    method = name_of(row["method"])
    if len(ranked) == 1:
        return f"Use {method}: no other method is ranked."
    if len(equals) == 1:
        return f"Use {method}: it has the best mean, and {_worse(ranked)}."
    many = f"the simplest and cheapest of the {len(equals)} methods that were not shown to be worse than the best"
    if row["rank"] == 1:
        return f"Use {method}: it has the best mean, and is {many}."
    best = ranked.iloc[0].to_dict()
    less = abs(best["mean"] - row["mean"])
    size = f"{less:.2f} points" if measure.percent else f"{less:.3g}"
    return f"Use {method}: {many}; the mean of {name_of(best['method'])} is {size} better, which is not shown."


def _worse(ranked: pd.DataFrame) -> str:
    """How many of the others were shown to be worse than the best; some may have too few runs for a test."""
    others = len(ranked) - 1
    worse = int(ranked["bold_holm"].eq(other=False).sum())
    if worse < others:
        verb = "was" if worse == 1 else "were"
        return f"{worse} of {others} others {verb} shown to be worse"
    every = {1: "the other method was", 2: "both others were"}
    who = every.get(others, f"all {others} others were")
    return f"{who} shown to be worse"


def _expect(measure: MetricInfo, row: Mapping[Any, Any], worst: Mapping[Any, Any], averaged: Sequence[str]) -> str:
    """The score to expect at a new domain, and the worst so far."""
    if len(averaged) == 1:
        only = f"the mean at {name_of(averaged[0])}, the only target"
        return f"At a new domain expect {_size(measure, row)} {measure.label}, {only}."
    text = f"At a new domain expect {_size(measure, row)} {measure.label}, the mean over {len(averaged)} targets"
    if not worst:
        return f"{text}."
    return f"{text}; at the worst of them, {name_of(worst['target'])}, it was {_size(measure, worst)}."


def _size(measure: MetricInfo, row: Mapping[Any, Any]) -> str:
    """A mean with its interval, such as `66.8 % [60.5, 73.1]`."""
    form = "{:.1f}" if measure.percent else "{:.3g}"
    mean = form.format(row["mean"])
    if measure.percent:
        mean += " %"
    if pd.isna(row["mean_low"]):
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
