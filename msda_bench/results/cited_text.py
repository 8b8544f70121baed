"""Formats our runs beside published numbers: tables, the publications with their certainty, and one verdict."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.cited import ORIGIN, Cited
from msda_bench.results.frame import AVERAGE
from msda_bench.results.notes import note_lines, problem_lines
from msda_bench.results.serialize import rows_of
from msda_bench.results.tables import Table, Unit

_SPREADS = {"standard error": "", "standard deviation": " sd", "not said": " ?"}


def tables(found: Cited, digits: int = 2) -> Iterator[Table]:
    """A table for each target, with a row for each published number."""
    unit, numbered = Unit("accuracy in percent", digits=digits), _numbered(found)
    for target, rows in numbered.groupby("target", sort=False):
        title = f"{found.experiment.name}, {target}: {unit.label} beside the numbers of {found.table.name}"
        cells = pd.DataFrame([_row(unit, row) for row in rows.to_dict("records")])
        if not rows["comparable"].any():
            cells = cells.drop(columns=["difference", "z"])
        yield Table(f"{found.experiment.name}-verify-{target}", printable(title), cells)


def _numbered(found: Cited) -> pd.DataFrame:
    """The rows, each with the number of its publication."""
    return found.cells.merge(found.sources.rename_axis("number").reset_index(), "left", [*ORIGIN, "comparable"])


def _row(unit: Unit, row: Mapping[Hashable, Any]) -> dict[str, str]:
    spread, z, own = row["published_spread"], row["standardised_difference"], row["standard_error"]
    more = "" if pd.isna(spread) else f" +- {unit.show(spread)}{_SPREADS[row['published_spread_is']]}"
    compared = row["comparable"]
    return {
        "method": printable(row["method"]),
        "published": f"{unit.show(row['published_mean'])}{more}",
        "source": f"[{row['number'] + 1}]",
        "ours": unit.show(row["mean"]) + ("" if pd.isna(own) else f" +- {unit.show(own)}"),
        "n": f"{row['n_ok']}/{row['n_planned']}",
        "difference": unit.show(row["difference"], signed=True) if compared else "",
        "z": ("-" if pd.isna(z) else f"{z:+.1f}") if compared else "",
    }


def notes(found: Cited) -> Iterator[str]:
    """Paragraphs on each publication and its certainty, on disagreements, and on how to read the tables."""
    for index, row in enumerate(found.sources.to_dict("records"), 1):
        where = f"{row['source']}, {row['source_table']}"
        what = f"Network: {row['backbone']}. Protocol: {row['protocol']}. Certainty: {row['certainty']}."
        yield f"[{index}] {where}. {what}{_why_not(found, row)}"
    yield from _disagreements(found)
    yield (
        "difference: ours - published; z: the same divided by its standard error, or by ours alone if a source gives "
        "no spread or does not state its kind (?). Both are shown only where network and protocol are comparable."
    )


def _why_not(found: Cited, row: Mapping[Hashable, Any]) -> str:
    if row["comparable"]:
        return ""
    if not found.table.backbones and not found.table.protocols:
        return " Not comparable: the suite does not name comparable networks and protocols."
    parts = {"network": ("backbone", found.table.backbones), "protocol": ("protocol", found.table.protocols)}
    other = " and ".join(part for part, (column, own) in parts.items() if row[column] not in own)
    return f" Not comparable: another {other}."


def _disagreements(found: Cited) -> Iterator[str]:
    numbered = _numbered(found)
    for row in found.disagreements.to_dict("records"):
        same = (numbered["target"] == row["target"]) & (numbered["method"] == row["method"]) & numbered["comparable"]
        numbers = " and ".join(
            f"{one['published_mean']:g} [{one['number'] + 1}]" for one in numbered[same].to_dict("records")
        )
        place = f"{row['method']} at {row['target']}"
        yield f"Sources disagree on {place}: {numbers}; ours {row['mean']:.2f}: {_word(row['within'])}."


def _word(within: Any) -> str:
    return "too few runs" if pd.isna(within) else "within" if within else "outside"


def unmatched(found: Cited) -> Iterator[str]:
    """Methods and targets of the suite without a published number."""
    for what, names in found.absent.items():
        if names:
            yield f"{what} without a published number, skipped: {', '.join(names)}"


def verdict(found: Cited) -> str:
    """One sentence with the status and how many of our numbers are within the published range."""
    why = f" ({found.n_not_ok} of {len(found.runs)} runs are not ok)" if found.n_not_ok else ""
    judged, rest = found.judged, int((~found.cells["comparable"]).sum())
    parts = [f"{judged['within'].sum()} of {len(judged)} {_noun(judged)} within the published range{_outside(judged)}"]
    if len(found.disagreements):
        apart = (found.disagreements["high"] - found.disagreements["low"]).max()
        parts.append(f"sources disagree on {len(found.disagreements)} numbers, by up to {apart:.1f} points")
    if rest:
        none = f"none of {len(found.cells)} published numbers is of the suite's network and protocol"
        parts.append(f"{rest} of {len(found.cells)} published numbers are not comparable" if len(judged) else none)
    return f"{found.experiment.name}: {found.status}{why}: {'; '.join(parts if len(judged) else parts[1:])}"


def _noun(judged: pd.DataFrame) -> str:
    return "averages" if (judged["target"] == AVERAGE).any() else "numbers"


def _outside(judged: pd.DataFrame) -> str:
    away = judged[~judged["within"].fillna(value=False)]
    off = [f"{row['method']} at {row['target']} {_off(row)}" for row in away.to_dict("records")]
    return f" (not {', '.join(off)})" if off else ""


def _off(row: Mapping[Hashable, Any]) -> str:
    """The distance from our mean to the nearest published number."""
    if pd.isna(row["mean"]):
        return "without a mean"
    nearest = min(row["low"], row["high"], key=lambda value: abs(row["mean"] - value))
    few = ", too few runs" if pd.isna(row["within"]) else ""
    return f"{row['mean'] - nearest:+.2f}{few}"


def as_json(found: Cited) -> dict[str, Any]:
    """The printed text and the contents of verify.csv as plain JSON values."""
    table = found.table
    chosen = {"backbone": table.backbones, "protocol": table.protocols, "methods": table.methods}
    return {
        "experiment": found.experiment.name,
        "table": {"name": table.name, **chosen},
        "status": found.status,
        "verdict": verdict(found),
        "runs_not_ok": found.n_not_ok,
        "absent": found.absent,
        "sources": rows_of(found.sources),
        "ranges": rows_of(found.ranges),
        "rows": rows_of(found.cells),
        "notes": note_lines(found.runs).get(found.experiment.name, []),
        "problems": list(problem_lines(found.runs)),
    }
