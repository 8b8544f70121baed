"""Differences between methods in sentences: which gain over a baseline, how much, and whether there is headroom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from msda_bench.results.decision import BETTER, SAME, TOO_FEW, UNTESTED, WORSE, PairedComparison, with_method
from msda_bench.results.words import counted, first_of, name_of
from msda_bench.suite.plan import Experiment

UNDECIDED = "undecided"
_KINDS = (BETTER, SAME, WORSE, UNDECIDED, TOO_FEW)


class Difference(NamedTuple):
    """A method's mean difference from another one, with its interval; `of` is the number of experiments with one."""

    method: str
    size: float
    low: float
    high: float
    of: str = ""


Groups: TypeAlias = dict[str, list[Difference]]
"""The differences of methods by what these are, the best first, and in each the largest gain."""


class GainUnit(NamedTuple):
    """How sentences show differences: the `form` of numbers, and the `label` of their unit."""

    form: str
    label: str

    @classmethod
    def of(cls, experiment: Experiment) -> GainUnit:
        """The unit of an experiment's metric."""
        measure = experiment.measure
        if measure.percent:
            return cls("{:+.2f}", "points")
        return cls("{:+.3g}", f"in {measure.label}")

    def size(self, size: float) -> str:
        """A size without a sign."""
        if self.label == "points":
            return f"{size:.1f} points"
        return f"{size:.2g} {self.label}"

    def gains(self, differences: Iterable[Difference]) -> str:
        """Names methods with their mean differences and intervals."""
        return first_of(map(self.gain, differences))

    def gain(self, difference: Difference) -> str:
        """Names a method with its mean difference and interval."""
        size = self.interval(difference.size, difference.low, difference.high)
        return f"{name_of(difference.method)} {size}{difference.of}"

    def interval(self, size: float, low: float, high: float) -> str:
        """A difference with its interval, if it has one."""
        text = self.form.format(size)
        if math.isnan(low):
            return text
        return f"{text} [{self.form.format(low)}, {self.form.format(high)}]"


def groups_of(pairs: Iterable[PairedComparison], method: str | None) -> Groups:
    """The other methods by their outcome against this one."""
    by_kind: Groups = {kind: [] for kind in _KINDS}
    for pair in with_method(pairs, method):
        name = pair.other(str(method))
        difference = Difference(name, *pair.difference_of(name))
        if not math.isnan(difference.size):
            by_kind[_kind_of(pair, name)].append(difference)
    groups = {}
    for kind, found in by_kind.items():
        if found:
            groups[kind] = sorted(found, key=lambda difference: difference.size, reverse=True)
    return groups


def _kind_of(pair: PairedComparison, method: str) -> str:
    """What one of two methods is, beside the other."""
    if pair.reason in UNTESTED:
        return TOO_FEW
    outcome = pair.outcome_of(method)
    return outcome if outcome in _KINDS else UNDECIDED


def answer(unit: GainUnit, base: str, groups: Groups, why: str) -> str:
    """Whether methods gain over the baseline, which, and how much; `why` is the reason why nothing can be shown."""
    n = sum(len(rows) for rows in groups.values())
    if BETTER in groups:
        count = len(groups[BETTER])
        return f"{some_gain(count, n, base)}: {unit.gains(groups[BETTER])} {unit.label}."
    if why:
        return f"Whether a method gains over {base} is open: {why}; {largest(unit, groups)}."
    return f"{none_gains(n, base)}; {largest(unit, groups)}."


def some_gain(count: int, n: int, base: str) -> str:
    """Says how many methods gain."""
    verb = "gains" if count == 1 else "gain"
    return f"{count} of {counted(n, 'method')} {verb} over {base}"


def none_gains(n: int, base: str) -> str:
    """Says that no method gains."""
    who = f"None of {n} methods" if n > 1 else "No method"
    return f"{who} was shown to gain over {base}"


def largest(unit: GainUnit, groups: Groups) -> str:
    """Names the largest difference."""
    best = max((found[0] for found in groups.values()), key=lambda difference: difference.size)
    return f"the largest difference is {unit.gain(best)} {unit.label}"


def other_groups(unit: GainUnit, base: str, groups: Groups) -> Iterator[str]:
    """A sentence on the methods of each outcome other than `better`."""
    leads = {
        SAME: f"Equal to {base} in every pair",
        WORSE: f"Worse than {base}",
        UNDECIDED: f"Not shown to differ from {base}",
        TOO_FEW: f"Not tested against {base}, too few seeds",
    }
    for kind, rows in groups.items():
        if not kind.startswith(BETTER):
            yield f"{leads.get(kind, capitalised(kind))}: {unit.gains(rows)}."


def headroom_sentence(unit: GainUnit, difference: Difference, *, is_shown: bool, alone: str = "") -> str:
    """The headroom, by a reference; `alone` says how little it learns from, if it does not see the sources."""
    gain = f"{unit.gain(difference)} {unit.label}"
    if is_shown:
        return f"There is headroom: with labels of the target, {gain}."
    if alone:
        return f"Headroom is not shown: {gain}; {name_of(difference.method)} {alone}, so a JOINT would tell more."
    if difference.low < difference.high <= 0:
        return f"Labels of the target would not help: {gain}."
    return f"Headroom is not shown: with labels of the target, {gain}."


def needed_pairs(tests: int, alpha: float) -> int:
    """The fewest pairs with which one of this many two-sided tests can be significant after Holm's correction."""
    return math.ceil(math.log2(2 * tests / alpha))


def capitalised(text: str) -> str:
    """The text with a capital at its start."""
    return f"{text[0].upper()}{text[1:]}"
