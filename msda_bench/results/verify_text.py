"""Formats our runs beside a published table: tables, notable differences, one verdict, and the JSON document."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from msda_bench.errors import LONGEST_LINE, printable
from msda_bench.results import cited_text
from msda_bench.results.cited import Cited
from msda_bench.results.notes import note_lines, problem_lines
from msda_bench.results.serialize import rows_of
from msda_bench.results.standardised import FAR
from msda_bench.results.tables import Table, Unit
from msda_bench.results.verify import TOLERANCE, Verification

VERIFY_SCHEMA = 2
"""Version of the layout of `verify --json`."""


def verify_tables(found: Verification | Cited, digits: int = 2) -> Iterator[Table]:
    """A table for each column of the published one, or for each target of published numbers."""
    if isinstance(found, Cited):
        yield from cited_text.tables(found, digits)
        return
    unit = Unit("accuracy in percent", digits=digits)
    for target, rows in found.cells.groupby("target", sort=False):
        title = f"{found.experiment.name}, {target}: {unit.label} beside {found.table.where} of {found.table.name}"
        cells = pd.DataFrame([_row(unit, row) for row in rows.to_dict("records")])
        yield Table(f"{found.experiment.name}-verify-{target}", printable(title), cells)


def _row(unit: Unit, row: Mapping[Hashable, Any]) -> dict[str, str]:
    theirs = _mean(unit, row["published_mean"], row["published_standard_error"], bold=row["published_bold"])
    known = {"method": printable(row["method"]), "published": theirs}
    if row["n_planned"] == 0:
        return known | {"ours": "not run", "n": "", "difference": "", "z": ""}
    z = row["standardised_difference"]
    return known | {
        "ours": _mean(unit, row["mean"], row["standard_error"], bold=row["bold_paper"] is True),
        "n": f"{row['n_ok']}/{row['n_planned']}",
        "difference": unit.show(row["difference"], signed=True),
        "z": "-" if pd.isna(z) else f"{z:+.1f}",
    }


def _mean(unit: Unit, mean: float, error: float, *, bold: bool) -> str:
    more = "" if pd.isna(error) else f" +- {unit.show(error)}"
    return f"{unit.show(mean)}{more}{'*' if bold else ''}"


def verify_notes(found: Verification | Cited) -> list[str]:
    """Paragraphs on notable differences, and on how to read the tables."""
    if isinstance(found, Cited):
        lines: Iterable[str] = cited_text.notes(found)
    else:
        lines = (*_bold_lines(found), *_order_lines(found), _legend(found))
    return [printable(line, LONGEST_LINE) for line in lines]


def verify_problems(found: Verification | Cited) -> list[str]:
    """Paragraphs on our runs: notes, then problems."""
    unmatched = cited_text.unmatched(found) if isinstance(found, Cited) else _unmatched(found)
    notes = [*note_lines(found.runs).get(found.experiment.name, ()), *unmatched]
    lines = [*(f"note: {line}" for line in notes), *(f"problem: {line}" for line in problem_lines(found.runs))]
    return [printable(line, LONGEST_LINE) for line in lines]


def _bold_lines(found: Verification) -> Iterator[str]:
    for bold in found.bold:
        if bold.ours is not None and not bold.agree:
            yield f"Bold at {bold.target}: published {', '.join(bold.published)}; ours {', '.join(bold.ours)}."


def _order_lines(found: Verification) -> Iterator[str]:
    inversions = found.inversions.to_dict("records")
    if inversions:
        published, ours = (", ".join(found.order(column)) for column in ("published_mean", "mean"))
        yield f"Order by average: published {published}; ours {ours}."
    for pair in inversions:
        figures = f"published {pair['published']:+.2f}, ours {pair['ours']:+.2f}"
        noise = f"z {pair['standardised_difference']:+.1f}: {'within' if pair['within_2_se'] else 'beyond'} noise"
        yield f"{pair['first']} - {pair['second']}: {figures}, {noise}."


def _legend(found: Verification) -> str:
    one = ", which uses the published runs' standard deviation where n is 1"
    return (
        f"Published: over {found.table.runs} runs ({found.table.citation}). difference: ours - published; z: the "
        f"difference divided by its standard error{one if (found.cells['n_ok'] == 1).any() else ''}. *: the bold set; "
        "ours is by the paper's rule."
    )


def _unmatched(found: Verification) -> Iterator[str]:
    for what, names in found.absent.items():
        if names:
            yield f"published {what} that are not in the suite: {', '.join(names)}"
    for what, names in found.extra.items():
        if names:
            yield f"{what} that are not in the table, skipped: {', '.join(names)}"
    if found.absent["targets"]:
        yield "the published averages are over other targets, so neither averages nor the order of methods are compared"


def verdict(found: Verification | Cited) -> str:
    """One sentence with the status, and for each comparison the numbers that agree."""
    if isinstance(found, Cited):
        return cited_text.verdict(found)
    absent = [*found.absent["methods"], *(f"target {name}" for name in found.absent["targets"])]
    why = [f"{found.n_not_ok} of {len(found.runs)} runs are not ok"] if found.n_not_ok else []
    why += [f"not in the suite: {', '.join(absent)}"] if absent else []
    reasons = f" ({'; '.join(why)})" if why else ""
    parts = "; ".join([_averages(found), _cells(found), _bold(found), _order(found)])
    return f"{found.experiment.name}: {found.status}{reasons}: {parts}"


def _averages(found: Verification) -> str:
    averages = found.averages
    away = averages[~averages["within"]]
    off = [
        f"{name} without a mean" if pd.isna(difference) else f"{name} {difference:+.2f}"
        for name, difference in zip(away["method"], away["difference"], strict=True)
    ]
    text = f"averages within {TOLERANCE:g} points for {averages['within'].sum()} of {len(averages)} methods"
    return f"{text} (not {', '.join(off)})" if off else text


def _cells(found: Verification) -> str:
    near = found.of_targets["within_2_se"]
    text = f"{near.sum()} of {len(near)} cells within {FAR:g} standard errors"
    if near.isna().all():
        return text
    outside = f"{(~near.dropna()).sum()} outside, {found.expected_far:.1f} expected by chance"
    without = near.isna().sum()
    return f"{text} ({outside}{f', {without} without a run' if without else ''})"


def _bold(found: Verification) -> str:
    agree = [bold.agree for bold in found.bold if bold.agree is not None]
    if not agree:
        return "too few runs to compare bold sets" if found.bold else "the table has no bold"
    rest = len(found.bold) - len(agree)
    text = f"bold sets equal in {sum(agree)} of {len(found.bold)} columns"
    return f"{text} ({rest} cannot be compared)" if rest else text


def _order(found: Verification) -> str:
    pairs, inversions = len(found.pairs), found.inversions
    if not pairs:
        return "order of methods cannot be compared"
    within = inversions["within_2_se"].sum()
    counts = (within, "within"), (len(inversions) - within, "beyond")
    turned = [f"{count} turned {how} noise" for count, how in counts if count]
    text = f"order of methods agrees in {pairs - len(inversions)} of {pairs} pairs"
    return f"{text} ({', '.join(turned)})" if turned else text


def unverified(runs: pd.DataFrame, found: Sequence[Verification | Cited]) -> list[str]:
    """The experiments without a published table."""
    names = {one.experiment.name for one in found}
    return [table.name for table in runs.attrs["plan"].experiments if table.name not in names]


def verify_json(runs: pd.DataFrame, found: Sequence[Verification | Cited]) -> dict[str, Any]:
    """The printed text and the contents of verify.csv as plain JSON values; docs/results.md explains the keys."""
    return {
        "schema": VERIFY_SCHEMA,
        "suite": runs.attrs["plan"].suite,
        "agrees": _agrees([one.status for one in found]),
        "experiments": [cited_text.as_json(one) if isinstance(one, Cited) else _experiment(one) for one in found],
        "not_verified": unverified(runs, found),
    }


def _agrees(statuses: Iterable[str]) -> bool | None:
    """Whether everything that can be compared agrees; None if nothing can."""
    compared = [status == "agrees" for status in statuses if status != "not comparable"]
    return all(compared) if compared else None


def _experiment(found: Verification) -> dict[str, Any]:
    table, averages, near = found.table, found.averages, found.of_targets["within_2_se"]
    turned = found.inversions.rename(columns={"within_2_se": "within_noise"}).drop(columns="degrees_of_freedom")
    return {
        "experiment": found.experiment.name,
        "table": {"name": table.name, "where": table.where, "citation": str(table.citation), "runs": table.runs},
        "status": found.status,
        "verdict": verdict(found),
        "runs_not_ok": found.n_not_ok,
        "absent": found.absent,
        "extra": found.extra,
        "averages": {
            "tolerance": TOLERANCE,
            "within": list(averages.loc[averages["within"], "method"]),
            "not_within": list(averages.loc[~averages["within"], "method"]),
        },
        "cells": {
            "published": len(near),
            "compared": int(near.notna().sum()),
            "within_2_se": int(near.sum()),
            "expected_outside": found.expected_far,
        },
        "bold": [bold._asdict() | {"agree": bold.agree} for bold in found.bold],
        "order": {
            "published": found.order("published_mean"),
            "ours": found.order("mean"),
            "pairs": len(found.pairs),
            "turned": rows_of(turned),
        },
        "rows": rows_of(found.cells),
        "notes": note_lines(found.runs).get(found.experiment.name, []),
        "problems": list(problem_lines(found.runs)),
    }
