"""Formats our runs beside published numbers: tables, sources with their certainty, one verdict, JSON."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from msda_bench.errors import LONGEST_LINE, printable
from msda_bench.results.frame import AVERAGE
from msda_bench.results.notes import note_lines, problem_lines
from msda_bench.results.serialize import rows_of
from msda_bench.results.tables import Table, Unit
from msda_bench.results.verify import FAR, ORIGIN, Verification

VERIFY_SCHEMA = 3
"""Version of the layout of `verify --json`."""
_SPREADS = {"standard error": "", "standard deviation": " sd", "not said": " ?"}
_ORIGINS = {"backbone": "Network", "protocol": "Protocol", "certainty": "Certainty"}


def verify_tables(verification: Verification, digits: int = 2) -> Iterator[Table]:
    """A table for each target, with a row for each published number."""
    unit, numbered = Unit("accuracy in percent", digits=digits), _numbered(verification)
    experiment = verification.experiment.name
    for target, rows in numbered.groupby("target", sort=False):
        title = f"{experiment}, {target}: {unit.label} beside the numbers of {verification.table.name}"
        cells = pd.DataFrame([_row(unit, row) for row in rows.to_dict("records")])
        if not rows["comparable"].any():
            cells = cells.drop(columns=["difference", "z"])
        yield Table(f"{experiment}-verify-{target}", printable(title), cells)


def _numbered(verification: Verification) -> pd.DataFrame:
    """The rows, each with the number of its source."""
    sources = verification.sources.rename_axis("number").reset_index()
    return verification.cells.merge(sources, "left", [*ORIGIN, "comparable"])


def _row(unit: Unit, row: Mapping[Hashable, Any]) -> dict[str, str]:
    spread, z, error = row["published_spread"], row["standardised_difference"], row["standard_error"]
    published = "" if pd.isna(spread) else f" +- {unit.show(spread)}{_SPREADS[row['published_spread_is']]}"
    ours = "" if pd.isna(error) else f" +- {unit.show(error)}"
    return {
        "method": printable(row["method"]),
        "published": f"{unit.show(row['published_mean'])}{published}{_star(row['published_bold'])}",
        "source": f"[{row['number'] + 1}]",
        # A bold set of ours is of interest only beside a published one.
        "ours": f"{unit.show(row['mean'])}{ours}{'' if pd.isna(row['published_bold']) else _star(row['bold_paper'])}",
        "n": f"{row['n_ok']}/{row['n_planned']}",
        "difference": unit.show(row["difference"], signed=True) if row["comparable"] else "",
        "z": ("-" if pd.isna(z) else f"{z:+.1f}") if row["comparable"] else "",
    }


def _star(bold: Any) -> str:
    return "*" if bold is True else ""


def verify_notes(verification: Verification) -> list[str]:
    """Paragraphs on each source and its certainty, on notable differences, and on how to read the tables."""
    lines = (*_sources(verification), *_disagreements(verification), *_order_lines(verification), _legend(verification))
    return [printable(line, LONGEST_LINE) for line in lines]


def verify_problems(verification: Verification) -> list[str]:
    """Paragraphs on our runs: notes, then problems."""
    notes = [*note_lines(verification.runs).get(verification.experiment.name, ())]
    notes += [
        f"{what} without a published number, skipped: {', '.join(names)}"
        for what, names in verification.absent.items()
        if names
    ]
    problems = problem_lines(verification.runs)
    lines = [*(f"note: {line}" for line in notes), *(f"problem: {line}" for line in problems)]
    return [printable(line, LONGEST_LINE) for line in lines]


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
    if len(disagreements := verification.disagreements):
        apart = (disagreements["high"] - disagreements["low"]).max()
        parts.append(f"sources disagree on {len(disagreements)} numbers, by up to {apart:.1f} points")
    if not parts:
        parts = [f"none of {len(cells)} published numbers is of the suite's network and protocol"]
    elif rest:
        parts.append(f"{rest} of {len(cells)} published numbers are not comparable")
    why = f" ({verification.n_not_ok} of {len(verification.runs)} runs are not ok)" if verification.n_not_ok else ""
    return f"{verification.experiment.name}: {verification.status}{why}: {'; '.join(parts)}"


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


def unverified(runs: pd.DataFrame, verified: Sequence[Verification]) -> list[str]:
    """The experiments without published numbers."""
    names = {verification.experiment.name for verification in verified}
    return [table.name for table in runs.attrs["plan"].experiments if table.name not in names]


def verify_json(runs: pd.DataFrame, verified: Sequence[Verification]) -> dict[str, Any]:
    """The printed text and the contents of verify.csv as plain JSON values; docs/verify.md explains the keys."""
    compared = [verification.status == "agrees" for verification in verified if verification.status != "not comparable"]
    return {
        "schema": VERIFY_SCHEMA,
        "suite": runs.attrs["plan"].suite,
        "agrees": all(compared) if compared else None,
        "experiments": [_experiment(verification) for verification in verified],
        "not_verified": unverified(runs, verified),
    }


def _experiment(verification: Verification) -> dict[str, Any]:
    table, near = verification.table, verification.of_targets["within_2_se"]
    turned = verification.inversions.rename(columns={"within_2_se": "within_noise"}).drop(columns="degrees_of_freedom")
    return {
        "experiment": verification.experiment.name,
        "table": {
            "name": table.name,
            "backbone": table.backbones,
            "protocol": table.protocols,
            "methods": table.methods,
        },
        "status": verification.status,
        "verdict": verdict(verification),
        "runs_not_ok": verification.n_not_ok,
        "absent": verification.absent,
        "sources": rows_of(verification.sources),
        "ranges": rows_of(verification.ranges),
        "cells": {
            "compared": int(near.notna().sum()),
            "within_2_se": int(near.sum()),
            "expected_outside": verification.expected_far,
        },
        "order": {"pairs": len(verification.pairs), "turned": rows_of(turned)},
        "rows": rows_of(verification.cells),
        "notes": note_lines(verification.runs).get(verification.experiment.name, []),
        "problems": list(problem_lines(verification.runs)),
    }
