"""Formats our runs beside published numbers: tables, sources with their certainty, one verdict."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from msda_bench.results.frame import AVERAGE
from msda_bench.results.notes import note_lines, problem_lines
from msda_bench.results.report import BETTER_MARK, Column, Line, Report, Section, Table, Unit
from msda_bench.results.verify import FAR, ORIGIN, Verification, verified_frame

_FINE = ("agrees", "not comparable")
"""The statuses with exit code 0."""
_SPREADS = {"standard error": "", "standard deviation": " sd", "not said": " ?"}
_ORIGINS = {"backbone": "Network", "protocol": "Protocol", "certainty": "Certainty"}


def verify_tables(verification: Verification) -> Iterator[Table]:
    """A table for each target, with a row for each published number."""
    unit, rows = Unit("accuracy in percent"), _numbered(verification)
    experiment = verification.experiment.name
    # A bold set of ours is of interest only beside a published one.
    rows = rows.assign(
        source_number="[" + (rows["number"] + 1).astype(str) + "]",
        spread=rows["published_spread_is"].map(_SPREADS).where(rows["published_spread"].notna(), "").fillna("")
        + _stars(rows["published_bold"]),
        star=_stars(rows["bold_paper"]).where(rows["published_bold"].notna(), ""),
    )
    for target, block in rows.groupby("target", sort=False):
        columns = [
            Column("method", "text", ["method"]),
            Column("published", "number with error", ["published_mean", "published_spread", "spread"], unit),
            Column("source", "text", ["source_number"]),
            Column("ours", "number with error", ["mean", "standard_error", "star"], unit),
            Column("n", "n/planned", ["n_ok", "n_planned"]),
        ]
        if block["comparable"].any():
            columns.append(Column("difference", "difference if comparable", ["difference", "comparable"], unit))
            columns.append(Column("z", "z if comparable", ["standardised_difference", "comparable"]))
        title = f"{experiment}, {target}: {unit.label} beside the numbers of {verification.table.name}"
        yield Table(f"{experiment}-verify-{target}", title, block, tuple(columns))


def _numbered(verification: Verification) -> pd.DataFrame:
    """The rows, each with the number of its source."""
    sources = verification.sources.rename_axis("number").reset_index()
    return verification.cells.merge(sources, "left", [*ORIGIN, "comparable"])


def _stars(bold: pd.Series[Any]) -> pd.Series[str]:
    return bold.eq(True).fillna(value=False).map({True: BETTER_MARK, False: ""})  # noqa: FBT003 - pandas names it other


def _sentences(verification: Verification) -> Iterator[Line]:
    """Paragraphs on each source and its certainty, on notable differences, how to read the tables, and our runs."""
    lines = (*_sources(verification), *_disagreements(verification), *_order_lines(verification), _legend(verification))
    yield from (Line("caption", line) for line in lines)
    notes = [*note_lines(verification.runs).get(verification.experiment.name, ())]
    notes += [
        f"{what} without a published number, skipped: {', '.join(names)}"
        for what, names in verification.absent.items()
        if names
    ]
    yield from (Line("note", line) for line in notes)
    yield from (Line("problem", line) for line in problem_lines(verification.runs))


def verify_report(runs: pd.DataFrame, verified: Sequence[Verification]) -> Report:
    """What `msda-bench verify` answers."""
    names = {verification.experiment.name for verification in verified}
    without = [table.name for table in runs.attrs["plan"].experiments if table.name not in names]
    sections = [
        Section(tuple(verify_tables(verification)), tuple(_sentences(verification))) for verification in verified
    ]
    notes = (Line("note", f"{name} names no published table and is not verified", wrapped=False) for name in without)
    verdicts = (Line("verdict", verdict(verification), wrapped=False) for verification in verified)
    last = Section(lines=(Line("line", "", wrapped=False), *notes, *verdicts))
    complete = not runs.attrs["fault_lines"] and all(verification.status in _FINE for verification in verified)
    return Report((*sections, last), verified_frame(verified), complete)


def _sources(verification: Verification) -> Iterator[str]:
    for index, row in enumerate(verification.sources.to_dict("records"), 1):
        origin = "".join(f" {word}: {row[name]}." for name, word in _ORIGINS.items() if row[name])
        yield f"[{index}] {row['source']}, {row['source_table']}.{origin}{_why_not(verification, row)}"


def _why_not(verification: Verification, row: Mapping[Hashable, Any]) -> str:
    table = verification.table
    if row["comparable"]:
        return ""
    if not table.backbones and not table.protocols:
        return " Not comparable: the suite does not name comparable networks and protocols."
    choices = {"network": ("backbone", table.backbones), "protocol": ("protocol", table.protocols)}
    other = [part for part, (column, names) in choices.items() if row[column] not in ("", *names)]
    return f" Not comparable: another {' and '.join(other)}."


def _disagreements(verification: Verification) -> Iterator[str]:
    numbered = _numbered(verification)
    numbered = numbered[numbered["comparable"]]
    for row in verification.disagreements.to_dict("records"):
        same = numbered[(numbered["target"] == row["target"]) & (numbered["method"] == row["method"])]
        pairs = zip(same["published_mean"], same["number"], strict=True)
        numbers = " and ".join(f"{mean:g} [{number + 1}]" for mean, number in pairs)
        within = "too few runs" if pd.isna(row["within"]) else "within" if row["within"] else "outside"
        yield f"Sources disagree on {row['method']} at {row['target']}: {numbers}; ours {row['mean']:.2f}: {within}."


def _order_lines(verification: Verification) -> Iterator[str]:
    for pair in verification.inversions.to_dict("records"):
        figures = f"published {pair['published']:+.2f}, ours {pair['ours']:+.2f}"
        noise = f"z {pair['standardised_difference']:+.1f}: {'within' if pair['within_2_se'] else 'beyond'} noise"
        yield f"Order by average: {pair['first']} - {pair['second']}: {figures}, {noise}."


def _legend(verification: Verification) -> str:
    single = ", which uses the published runs' standard deviation where n is 1"
    bold = (
        " *: in bold in the source; of ours, by the paper's rule." if verification.cells["published_bold"].any() else ""
    )
    return (
        "difference: ours - published; z: the same divided by its standard error"
        f"{single if (verification.cells['n_ok'] == 1).any() else ''}, or by ours alone if a source gives no spread or "
        f"does not state its kind (?). Both are shown only where network and protocol are comparable.{bold}"
    )


def verdict(verification: Verification) -> str:
    """One sentence with the status, and for each comparison the numbers that agree."""
    cells, rest = verification.cells, int((~verification.cells["comparable"]).sum())
    parts = [*_judged(verification), *_near(verification), *_order(verification)]
    if line := disagreement(verification):
        parts.append(line)
    if not parts:
        parts = [f"none of {len(cells)} published numbers is of the suite's network and protocol"]
    elif rest:
        parts.append(f"{rest} of {len(cells)} published numbers are not comparable")
    why = f" ({verification.n_not_ok} of {len(verification.runs)} runs are not ok)" if verification.n_not_ok else ""
    return f"{verification.experiment.name}: {verification.status}{why}: {'; '.join(parts)}"


def disagreement(verification: Verification) -> str:
    """On how many numbers comparable sources disagree, and by how much; empty if they agree."""
    ranges = verification.disagreements
    apart = (ranges["high"] - ranges["low"]).max()
    return f"sources disagree on {len(ranges)} numbers, by up to {apart:.1f} points" if len(ranges) else ""


def _judged(verification: Verification) -> Iterator[str]:
    judged = verification.judged
    if judged.empty:
        return
    away = judged[~judged["within"].fillna(value=False)]
    off = [f"{row['method']} at {row['target']} {_off(row)}" for row in away.to_dict("records")]
    noun = "averages" if (judged["target"] == AVERAGE).any() else "numbers"
    text = f"{judged['within'].sum()} of {len(judged)} {noun} within the published range"
    yield f"{text} (not {', '.join(off)})" if off else text


def _off(row: Mapping[Hashable, Any]) -> str:
    """The distance from our mean to the nearest published number."""
    if pd.isna(row["mean"]):
        return "without a mean"
    nearest = min(row["low"], row["high"], key=lambda value: abs(row["mean"] - value))
    few = ", too few runs" if pd.isna(row["within"]) else ""
    return f"{row['mean'] - nearest:+.2f}{few}"


def _near(verification: Verification) -> Iterator[str]:
    near = verification.of_targets["within_2_se"]
    if len(near.dropna()):
        outside = f"{(~near.dropna()).sum()} outside, {verification.expected_far:.1f} expected by chance"
        without = f", {near.isna().sum()} with too few runs" if near.isna().any() else ""
        yield f"{near.sum()} of {len(near)} cells within {FAR:g} standard errors ({outside}{without})"


def _order(verification: Verification) -> Iterator[str]:
    pairs, inversions = len(verification.pairs), verification.inversions
    if pairs:
        within = inversions["within_2_se"].sum()
        counts = (within, "within"), (len(inversions) - within, "beyond")
        turned = [f"{count} turned {how} noise" for count, how in counts if count]
        text = f"order of methods agrees in {pairs - len(inversions)} of {pairs} pairs"
        yield f"{text} ({', '.join(turned)})" if turned else text
