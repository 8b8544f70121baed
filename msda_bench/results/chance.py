"""Finds scores that are no better than those of constant predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from msda_bench.results.estimates import mean_of
from msda_bench.results.frame import AVERAGE
from msda_bench.results.load import tested_classes
from msda_bench.results.small import averaged_targets, small_tests
from msda_bench.results.words import first_of, name_of
from msda_bench.suite.plan import Experiment, MetricInfo

_FREQUENT, _CHANCE = "always answering the most frequent class", "chance"
_NAMES = {"accuracy": _FREQUENT, **dict.fromkeys(("balanced_accuracy", "auc", "auroc", "auprc"), _CHANCE)}
"""What a score has to be better than, by metric; others have no such level."""


@dataclass(frozen=True)
class BesideChance:
    """The means of an experiment beside the score of the best constant answer.

    Attributes:
        what: what a score has to be better than, in words; empty if the metric has no such level.
        levels: that score by target in percent, and its mean over targets; empty if it is not known.
        low: the target and method of each mean that is not clearly above the level. A mean is clearly above if it is so
            by more than two standard errors; that of a single run, if it is above.
    """

    what: str
    levels: Mapping[str, float]
    low: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, experiment: Experiment, runs: pd.DataFrame, board: pd.DataFrame) -> BesideChance:
        """Compares the ranked means of an experiment's rows of the leaderboard; `runs` are its selected runs."""
        levels = _levels(experiment, runs)
        ranked = board[board["rank"].notna()]
        level = ranked["target"].astype(object).map(levels)
        is_low = (ranked["mean"] - 2 * ranked["standard_error"].fillna(0.0) <= level + 1e-9).to_numpy(dtype=bool)
        places = ranked.loc[is_low, ["target", "method"]].astype(object).itertuples(index=False, name=None)
        return cls(_NAMES.get(experiment.measure.name, ""), levels, frozenset(places))

    @property
    def column(self) -> str:
        """The mean over targets, or the only target, where a level is known."""
        return AVERAGE if AVERAGE in self.levels else [*self.levels][-1]

    def places(self, method: str) -> list[str]:
        """The targets where a method's mean is not clearly above the level."""
        return [name for name in self.levels if name != AVERAGE and (name, method) in self.low]

    def shown(self, targets: Iterable[str]) -> str:
        """Names targets with their levels."""
        return first_of(f"{name_of(target)} ({self.levels[target]:.1f} %)" for target in targets)


def chance_sentences(experiment: Experiment, board: pd.DataFrame, chance: BesideChance) -> Iterator[str]:
    """Names the targets and methods whose scores are not clearly above those of constant answers."""
    ranked = board[board["rank"].notna()]
    if not chance.levels or ranked.empty:
        return
    what, base, levels, column = chance.what, str(experiment.baseline), chance.levels, chance.column
    methods: dict[str, list[str]] = {}
    for target, method in ranked[["target", "method"]].astype(object).itertuples(index=False, name=None):
        methods.setdefault(target, []).append(method)
    low = {target: [name for name in methods.get(target, ()) if (target, name) in chance.low] for target in levels}
    nobody = [target for target in levels if target != AVERAGE and low[target] == methods.get(target, [])]
    if nobody:
        yield f"At {chance.shown(nobody)} no method does clearly better than {what}."
    if low[column] and {*nobody} < levels.keys() - {AVERAGE}:
        where = "on average" if column == AVERAGE else f"at {name_of(column)}"
        yield f"Not clearly better {where} than {what} ({levels[column]:.1f} %): {first_of(map(name_of, low[column]))}."
    if places := [name for name in chance.places(base) if name not in {*nobody, column}]:
        yield f"{name_of(base)} does not do clearly better than {what} at {chance.shown(places)}."


def _levels(experiment: Experiment, runs: pd.DataFrame) -> dict[str, float]:
    """The score of the best constant answer at each target with enough test examples, and its mean over targets.

    All methods are tested on the same examples, so that the records of one tell the classes of all.
    """
    if experiment.task != "classification" or experiment.measure.name not in _NAMES:
        return {}
    small = small_tests(runs)
    targets = [target for target in experiment.targets if target not in small]
    of_runs: dict[str, list[float]] = {}
    for (target, _), counts in tested_classes(runs[runs["target"].isin(targets).to_numpy()]).items():
        of_runs.setdefault(target, []).append(_level(experiment.measure, counts))
    levels = {target: mean_of(of_target) for target, of_target in of_runs.items()}
    averaged = averaged_targets(experiment.targets, small)
    if len(averaged) > 1 and levels.keys() >= {*averaged}:
        levels[AVERAGE] = mean_of(levels[target] for target in averaged)
    return levels


def _level(measure: MetricInfo, counts: Mapping[int, int]) -> float:
    total = sum(counts.values())
    if measure.name in {"auc", "auroc"}:
        return 50.0
    if measure.name == "balanced_accuracy":
        return 100 / len(counts)
    if measure.name == "accuracy":
        return 100 * max(counts.values()) / total
    positive = measure.params.get("positive", 1)
    return 100 * counts.get(positive, 0) / total if isinstance(positive, int) else 0.0
