"""Formats our runs beside published numbers: a table, sources with their certainty, one verdict."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from msda_bench.results.frame import AVERAGE
from msda_bench.results.notes import folder_lines
from msda_bench.results.report import BETTER_MARK, Column, Line, Report, Section, Table, Unit
from msda_bench.results.verify import FAR, ORIGIN, Verification, verified_frame

_SPREADS = {"standard error": "", "standard deviation": " sd", "not said": " ?"}
_ABOUT = {"backbone": "Network", "protocol": "Protocol", "certainty": "Certainty"}
LEGEND = (
    "difference: ours - published; z: the same divided by its standard error, which uses the published runs' standard "
    "deviation where n is 1, and ours alone if a source gives no spread or does not state its kind (?). Both are shown "
    "only where network and protocol are comparable. *: in bold in the source; of ours, by the paper's rule."
)


def verify_report(runs: pd.DataFrame, verified: Sequence[Verification]) -> Report:
    """What `msda-bench verify` answers."""
    names = {verification.experiment.name for verification in verified}
    without = [table.name for table in runs.attrs["plan"].experiments if table.name not in names]
    sections = [Section(tuple(_tables(verification)), tuple(_sentences(verification))) for verification in verified]
    notes = (Line("note", f"{name} names no published table and is not verified", wrapped=False) for name in without)
    verdicts = (Line("verdict", verdict(verification), wrapped=False) for verification in verified)
    last = Section(lines=(Line("line", "", wrapped=False), *notes, *verdicts))
    fine = all(verification.status in {"agrees", "not comparable"} for verification in verified)
    return Report((*sections, last), verified_frame(verified), fine and not runs.attrs["fault_lines"])


def _sources(verification: Verification) -> pd.DataFrame:
    """Each list of numbers once, in the order of the table, with the number that the table has for it."""
    sources = verification.cells[[*ORIGIN, "comparable"]].drop_duplicates(ignore_index=True)
    return sources.assign(number=[f"[{place}]" for place in range(1, len(sources) + 1)])


def _tables(verification: Verification) -> Iterator[Table]:
    """A row for each published number, if there are any."""
    unit, experiment = Unit("accuracy in percent"), verification.experiment.name
    rows = verification.cells.merge(_sources(verification), "left", [*ORIGIN, "comparable"])
    spread = rows["published_spread_is"].map(_SPREADS).where(rows["published_spread"].notna(), "").fillna("")
    # A bold set of ours is of interest only beside a published one.
    star = _stars(rows["bold_paper"]).where(rows["published_bold"].notna(), "")
    columns = [
        Column("method", "text", ["method"]),
        Column("target", "text", ["target"]),
        Column("published", "number with error", ["published_mean", "published_spread", "spread"], unit),
        Column("source", "text", ["number"]),
        Column("ours", "number with error", ["mean", "standard_error", "star"], unit),
        Column("n", "n/planned", ["n_ok", "n_planned"]),
        Column("difference", "difference if comparable", ["difference", "comparable"], unit),
        Column("z", "z if comparable", ["standardised_difference", "comparable"]),
    ]
    rows = rows.assign(spread=spread + _stars(rows["published_bold"]), star=star)
    title = f"{experiment}: {unit.label} beside the numbers of {verification.table.name}"
    if len(rows):
        yield Table(f"{experiment}-verify", title, rows, tuple(columns))


def _stars(bold: pd.Series[Any]) -> pd.Series[str]:
    return bold.eq(True).fillna(value=False).map({True: BETTER_MARK, False: ""})  # noqa: FBT003 - pandas names it other


def _sentences(verification: Verification) -> Iterator[Line]:
    """Each source and its certainty, how to read the table, and what is wrong with our runs."""
    for row in _sources(verification).to_dict("records"):
        about = "".join(f" {word}: {row[name]}." for name, word in _ABOUT.items() if row[name])
        about += "" if row["comparable"] else " Not comparable: another network or protocol than the suite names."
        yield Line("caption", f"{row['number']} {row['source']}, {row['source_table']}.{about}")
    yield Line("caption", LEGEND)
    absent = [
        f"{what} without a published number, skipped: {', '.join(names)}"
        for what, names in verification.absent.items()
        if names
    ]
    yield from folder_lines(verification.runs, absent)


def verdict(verification: Verification) -> str:
    """One sentence with the status, and for each comparison the numbers that agree."""
    cells, bad = verification.cells, int((verification.runs["status"] != "ok").sum())
    parts = [*_judged(verification), *_near(verification), *_order(verification)]
    if line := disagreement(verification):
        parts.append(line)
    rest = int((~cells["comparable"]).sum())
    if not parts:
        parts = [f"none of {len(cells)} published numbers is of the suite's network and protocol"]
    elif rest:
        parts.append(f"{rest} of {len(cells)} published numbers are not comparable")
    why = f" ({bad} of {len(verification.runs)} runs are not ok)" if bad else ""
    return f"{verification.experiment.name}: {verification.status}{why}: {'; '.join(parts)}"


def disagreement(verification: Verification) -> str:
    """On how many numbers comparable sources disagree, and by how much; empty if they agree."""
    ranges = verification.disagreements
    apart = (ranges["high"] - ranges["low"]).max()
    return f"sources disagree on {len(ranges)} numbers, by up to {apart:.1f} points" if len(ranges) else ""


def _judged(verification: Verification) -> Iterator[str]:
    judged = verification.judged
    away = judged[~judged["within"].fillna(value=False)]
    off = ", ".join(f"{row['method']} at {row['target']} {_off(row)}" for row in away.to_dict("records"))
    noun = "averages" if (judged["target"] == AVERAGE).any() else "numbers"
    if len(judged):
        yield f"{judged['within'].sum()} of {len(judged)} {noun} within the published range{off and f' (not {off})'}"


def _off(row: Mapping[Hashable, Any]) -> str:
    """The distance from our mean to the nearest published number."""
    if pd.isna(row["mean"]):
        return "without a mean"
    nearest = min(row["low"], row["high"], key=lambda value: abs(row["mean"] - value))
    few = ", too few runs" if pd.isna(row["within"]) else ""
    return f"{row['mean'] - nearest:+.2f}{few}"


def _near(verification: Verification) -> Iterator[str]:
    """How many targets' cells are near, and how many are not expected to be if all true means are equal."""
    from scipy.special import stdtr

    cells = verification.cells[verification.cells["comparable"] & (verification.cells["target"] != AVERAGE)]
    near, expected = cells["within_2_se"], 2 * stdtr(cells["degrees_of_freedom"].dropna(), -FAR).sum()
    if len(near.dropna()):
        outside = f"{(~near.dropna()).sum()} outside, {expected:.1f} expected by chance"
        without = f", {near.isna().sum()} with too few runs" if near.isna().any() else ""
        yield f"{near.sum()} of {len(near)} cells within {FAR:g} standard errors ({outside}{without})"


def _order(verification: Verification) -> Iterator[str]:
    pairs, inversions = len(verification.pairs), verification.inversions
    within = int(inversions["within_2_se"].sum())
    counts = (within, "within"), (len(inversions) - within, "beyond")
    turned = ", ".join(f"{count} turned {how} noise" for count, how in counts if count)
    if pairs:
        yield f"order of methods agrees in {pairs - len(inversions)} of {pairs} pairs{turned and f' ({turned})'}"
