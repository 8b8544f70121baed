"""What follows from a published table and our runs beside it, in a line."""

from __future__ import annotations

from collections.abc import Iterator

from msda_bench.stats.standardised import FAR
from msda_bench.stats.verification import TOLERANCE, CheckedCell, Verification


def verdict(found: Verification) -> str:
    """One line: the status, and each thing that was looked at with how many of how many agree."""
    parts = (_averages(found), _cells(found), _bold(found), _order(found))
    return f"{found.experiment.name}: {found.status}{_missing(found)}: {'; '.join(parts)}"


def _differing(found: Verification) -> Iterator[str]:
    """The methods whose means over targets are off, or not there to compare."""
    for cell in found.averages:
        if not cell.is_within:
            yield f"{cell.method} {_signed(cell)}"


def _signed(cell: CheckedCell) -> str:
    return "without a mean" if cell.gap is None else f"{cell.gap.difference:+.2f}"


def _missing(found: Verification) -> str:
    parts = []
    if found.n_not_ok:
        parts.append(f"{found.n_not_ok} of {len(found.analysis.scores.statuses)} runs are not ok")
    absent = [*found.absent_methods, *(f"target {name}" for name in found.absent_targets)]
    if absent:
        parts.append(f"the suite lacks {', '.join(absent)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _averages(found: Verification) -> str:
    off = list(_differing(found))
    count = f"{len(found.averages) - len(off)} of {len(found.averages)}"
    return f"averages within {TOLERANCE:g} points for {count} methods" + (f" (not {', '.join(off)})" if off else "")


def _cells(found: Verification) -> str:
    text = f"{found.n_near} of {len(found.of_targets)} cells within {FAR:g} standard errors"
    if not found.gaps:
        return text
    outside = f"{len(found.gaps) - found.n_near} outside, {found.expected_far:.1f} expected by chance"
    without = len(found.of_targets) - len(found.gaps)
    return f"{text} ({outside}{f', {without} without a run' if without else ''})"


def _bold(found: Verification) -> str:
    if not found.bold:
        return "the table has no bold"
    told = [sets.agree for sets in found.bold if sets.agree is not None]
    if not told:
        return "bold sets cannot be told"
    untold = len(found.bold) - len(told)
    text = f"bold sets equal in {sum(told)} of {len(found.bold)} columns"
    return f"{text} ({untold} cannot be told)" if untold else text


def _order(found: Verification) -> str:
    order = found.order
    if not order.pairs:
        return "order of methods cannot be told"
    beyond = len(order.contradictions)
    within = len(order.inversions) - beyond
    text = f"order of methods agrees in {order.pairs - len(order.inversions)} of {order.pairs} pairs"
    turned = [f"{count} turned {how} noise" for count, how in ((within, "within"), (beyond, "beyond")) if count]
    return f"{text} ({', '.join(turned)})" if turned else text
