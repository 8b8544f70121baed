"""Finds scores that are no better than those of constant predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from msda_bench.component.task import MetricInfo
from msda_bench.results.estimates import mean_of
from msda_bench.results.frame import AVERAGE
from msda_bench.results.leaderboard import Row, ranked_rows
from msda_bench.results.load import tested_classes
from msda_bench.results.small import averaged_targets, small_tests
from msda_bench.results.words import first_of, name_of
from msda_bench.suite.plan import Experiment

_LEVELS = {
    "accuracy": "always answering the most frequent class",
    "balanced_accuracy": "chance",
    "auc": "chance",
    "auroc": "chance",
    "auprc": "chance",
}
"""What a score has to be better than, in words by metric; other metrics have no such level."""
_TOLERANCE = 1e-9
"""Rounding errors by which a mean may exceed its level without being better."""


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
    def of(cls, experiment: Experiment, runs: pd.DataFrame, rows: Sequence[Row]) -> BesideChance:
        """Compares the ranked means of an experiment's rows of the leaderboard; `runs` are its selected runs."""
        levels = _levels(experiment, runs)
        low = set()
        for row in ranked_rows(rows):
            level = levels.get(row["target"])
            if level is not None and _surely(row) <= level + _TOLERANCE:
                low.add((row["target"], row["method"]))
        return cls(_LEVELS.get(experiment.measure.name, ""), levels, frozenset(low))

    @property
    def column(self) -> str:
        """The mean over targets, or the only target, where a level is known."""
        return AVERAGE if AVERAGE in self.levels else list(self.levels)[-1]

    def places(self, method: str) -> list[str]:
        """The targets where a method's mean is not clearly above the level."""
        return [name for name in self.levels if name != AVERAGE and (name, method) in self.low]

    def shown(self, targets: Iterable[str]) -> str:
        """Targets with their levels, in words."""
        return first_of(f"{name_of(target)} ({self.levels[target]:.1f} %)" for target in targets)


def _surely(row: Row) -> float:
    """The mean less two standard errors; the mean of a single run."""
    error = row["standard_error"]
    mean: float = row["mean"]
    return mean if math.isnan(error) else mean - 2 * error


def chance_sentences(experiment: Experiment, rows: Sequence[Row], chance: BesideChance) -> Iterator[str]:
    """Names the targets and methods whose scores are not clearly above those of constant answers."""
    ranked = ranked_rows(rows)
    if not chance.levels or not ranked:
        return
    methods: dict[str, list[str]] = {column: [] for column in chance.levels}
    for row in ranked:
        if row["target"] in methods:
            methods[row["target"]].append(row["method"])
    targets = [column for column in chance.levels if column != AVERAGE]
    nobody = [target for target in targets if all((target, name) in chance.low for name in methods[target])]
    if nobody:
        yield f"At {chance.shown(nobody)} no method does clearly better than {chance.what}."
    below = [name for name in methods[chance.column] if (chance.column, name) in chance.low]
    if below and len(nobody) < len(targets):
        where = "on average" if chance.column == AVERAGE else f"at {name_of(chance.column)}"
        level = f"{chance.what} ({chance.levels[chance.column]:.1f} %)"
        yield f"Not clearly better {where} than {level}: {first_of(map(name_of, below))}."
    baseline = str(experiment.baseline)
    places = [target for target in chance.places(baseline) if target not in {*nobody, chance.column}]
    if places:
        yield f"{name_of(baseline)} does not do clearly better than {chance.what} at {chance.shown(places)}."


def _levels(experiment: Experiment, runs: pd.DataFrame) -> dict[str, float]:
    """The score of the best constant answer at each target with enough test examples, and its mean over targets.

    All methods are tested on the same examples, so that the records of one tell the classes of all.
    """
    if experiment.task != "classification" or experiment.measure.name not in _LEVELS:
        return {}
    small = small_tests(runs)
    large = [target for target in experiment.targets if target not in small]
    tested = tested_classes(runs[runs["target"].isin(large).to_numpy()])
    by_seed: dict[str, list[float]] = {}
    for (target, _seed), counts in tested.items():
        by_seed.setdefault(target, []).append(_level(experiment.measure, counts))
    levels = {target: mean_of(scores) for target, scores in by_seed.items()}
    averaged = averaged_targets(experiment.targets, small)
    if len(averaged) > 1 and levels.keys() >= set(averaged):
        levels[AVERAGE] = mean_of(levels[target] for target in averaged)
    return levels


def _level(measure: MetricInfo, counts: Mapping[int, int]) -> float:
    """The score of the best constant answer, in percent, where the test has so many examples of each class."""
    total = sum(counts.values())
    if measure.name in {"auc", "auroc"}:
        return 50.0
    if measure.name == "balanced_accuracy":
        return 100 / len(counts)
    if measure.name == "accuracy":
        return 100 * max(counts.values()) / total
    positive = measure.params.get("positive", 1)
    if not isinstance(positive, int):
        return 0.0
    return 100 * counts.get(positive, 0) / total
