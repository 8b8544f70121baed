"""What follows from two result folders beside each other, in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msda_bench.report.figures_text import Unit
from msda_bench.report.sides import Pairing, Sides
from msda_bench.stats.difference import Difference

_MOST = 6

SidesStatus: TypeAlias = Literal["same", "better", "worse", "mixed", "not_told_apart", "nothing_in_common"]


@dataclass(frozen=True)
class SidesVerdict:
    """What follows.

    Attributes:
        status: same (every run that is ok in both is of the same cell, with an equal result); better, worse or mixed
            (what B is, by the methods that are told apart on their mean over targets); not_told_apart;
            nothing_in_common (no run is ok in both).
        line: the same in words.
    """

    status: SidesStatus
    line: str


def sides_verdict(sides: Sides) -> SidesVerdict:
    """Judges two folders by the means over the targets that both have."""
    paired = sum(pairing.n_paired for pairing in sides.pairings)
    if not paired:
        return SidesVerdict("nothing_in_common", f"nothing in common: no run is ok in both{_to_match(sides)}")
    reservations = [*_unlike(sides), *_changed(sides)]
    if sum(pairing.n_same_result for pairing in sides.pairings) == paired:
        return SidesVerdict(
            "same", "; ".join([f"the same: {paired} runs of the same cells have equal results", *reservations])
        )
    judged = [(pairing, one) for pairing in sides.pairings for one in pairing.differences if one.target is None]
    apart = [(pairing, one, one.effect.hodges_lehmann) for pairing, one in judged if one.significant and one.effect]
    better = [_named(sides, pairing, one) for pairing, one, shift in apart if shift > 0]
    worse = [_named(sides, pairing, one) for pairing, one, shift in apart if shift < 0]
    untold = [one for _, one in judged if not one.significant]
    line = (
        f"of {len(judged)} methods B is better for {_count(better)}, worse for {_count(worse)}, not told apart for "
        f"{len(untold)}{_why(untold)}"
    )
    return SidesVerdict(_status(better, worse), "; ".join([line, *reservations]))


def unit_of(pairing: Pairing) -> Unit:
    """What the numbers of a pairing are shown in."""
    columns = dict.fromkeys(one.target for one in pairing.differences)
    means = (
        [mean for one in pairing.differences if one.target == column for mean in (one.a.mean, one.b.mean)]
        for column in columns
    )
    return Unit.for_means(
        pairing.a.metric, (min((mean for mean in found if mean is not None), default=0.0) for found in means)
    )


def _to_match(sides: Sides) -> str:
    """How to compare methods of other names, where an experiment stands on both sides and no name does."""
    for pairing in sides.pairings:
        if not pairing.methods:
            x, y = pairing.only_a.methods[0], pairing.only_b.methods[0]
            return f"; the methods have other names: set X of A beside Y of B by --match X=Y, such as --match {x}={y}"
    return ""


def _status(better: Sequence[str], worse: Sequence[str]) -> SidesStatus:
    if better and worse:
        return "mixed"
    return "better" if better else "worse" if worse else "not_told_apart"


def _named(sides: Sides, pairing: Pairing, one: Difference) -> str:
    name = one.method_a if len(sides.pairings) == 1 else f"{pairing.a.experiment.name}: {one.method_a}"
    return f"{name} {unit_of(pairing).show_signed(one.effect.hodges_lehmann)}" if one.effect else name


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def _why(untold: Sequence[Difference]) -> str:
    equal = sum(one.test.status == "no_differences" for one in untold)
    few = sum(one.attainable_p_holm > one.alpha for one in untold) - equal
    parts = [f"{count} {what}" for count, what in ((equal, "equal"), (few, "with too few pairs to tell")) if count]
    return f" ({', '.join(parts)})" if parts else ""


def _unlike(sides: Sides) -> Iterator[str]:
    runs = sum(pairing.n_runs for pairing in sides.pairings)
    lost = runs - sum(pairing.n_paired for pairing in sides.pairings)
    if lost:
        yield f"{lost} of {runs} runs are not ok in both"
    unequal = sum(pairing.n_same_cell - pairing.n_same_result for pairing in sides.pairings)
    if unequal:
        yield f"{unequal} runs of the same cell have another result"
    one_sided = [only for pairing in sides.pairings for only in (pairing.only_a, pairing.only_b)]
    if sides.only_a or sides.only_b or any(only.methods or only.targets or only.seeds for only in one_sided):
        yield "one side has more than the other"


def _changed(sides: Sides) -> Iterator[str]:
    names = dict.fromkeys(change.what for pairing in sides.pairings for change in pairing.changes)
    if "fingerprint" in names:
        yield "the data differ, so a seed does not draw the same split in both"
    if names:
        listed = list(names)[:_MOST]
        yield f"what differs: {', '.join(listed)}{', ...' if len(names) > _MOST else ''}"
