"""Scores of one column as whole numbers, more being better, so that differences are exact and fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msda_bench.stats.exact import scaled_integers
from msda_bench.stats.scores import Column, Scores


@dataclass(frozen=True)
class Merits:
    """What methods scored in one column.

    Attributes:
        by_seed: of each method, by seed, in units of 1 / scale of the score's own; negative where less is better.
        scale: at least 1.
    """

    by_seed: Mapping[str, Mapping[int, int]]
    scale: int

    def paired(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """The merits of two methods at the seeds that both have, in order."""
        firsts, seconds = self.by_seed[first], self.by_seed[second]
        if firsts.keys() == seconds.keys():  # both in the order of the seeds
            return list(firsts.values()), list(seconds.values())
        both = [seed for seed in firsts if seed in seconds]
        return [firsts[seed] for seed in both], [seconds[seed] for seed in both]

    def differences(self, first: str, second: str) -> list[int]:
        """Merit of the first - merit of the second, at each seed that both have."""
        return [one - other for one, other in zip(*self.paired(first, second), strict=True)]


def merits(scores: Scores, column: Column, methods: Iterable[str]) -> Merits:
    """The merits of some methods in one column."""
    found = [(name, scores.by_seed(name, column)) for name in methods]
    numbers, scale = scaled_integers(score for _, by_seed in found for score in by_seed.values())
    signed = (scores.sign * number for number in numbers)
    return Merits({name: {seed: next(signed) for seed in by_seed} for name, by_seed in found}, scale)
