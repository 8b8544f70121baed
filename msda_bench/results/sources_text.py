"""What each source does, for readers: a table for each method and target, and the JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.notes import problem_lines
from msda_bench.results.serialize import rows_of
from msda_bench.results.tables import Table, Unit, show_p

SOURCES_SCHEMA = 2
"""Version of the layout of `sources DIR --json`."""
LEGEND = (
    "weight: alpha, a moving average over steps at the end of the last epoch, mean over seeds. worth: what the dataset "
    "knows the source to be worth, for classification the accuracy on the target of the best classifier for the "
    "source, in percent. without: mean score without the source, over the pairs, a pair being a seed that is ok with "
    "and without it. change: mean difference, positive where the target is better off without the source; p: exact "
    "two-sided Wilcoxon signed-rank test; Holm: corrected over the sources of the table; W/T/L: pairs better, equal, "
    "worse without it; n: pairs at hand / planned. transfer is negative or positive where Holm's p is at most alpha."
)
_OF_TABLE = ("experiment", "dataset", "method", "target", "metric", "alpha", "n_ok", "mean", "standard_error")


def sources_tables(found: pd.DataFrame, digits: int = 2) -> Iterator[Table]:
    """A table for each method and target of a frame of `sources`."""
    for _, rows in found.groupby(["experiment", "method", "target"], sort=False):
        first = rows.iloc[0]
        unit = Unit.of(first["metric"], rows[["mean", "mean_without"]].min(), digits)
        error = "" if pd.isna(first["standard_error"]) else f" +- {unit.show(first['standard_error'])}"
        title = (
            f"{first['experiment']} ({first['dataset']}), {first['method']}, target {first['target']}: {unit.label}: "
            f"{unit.show(first['mean'])}{error} with all sources; alpha {first['alpha']:g}"
        )
        tested = rows["without"].notna().any()
        cells = [_known(row) | (_change(row, unit) if tested else {}) for _, row in rows.iterrows()]
        correlation = first["rank_correlation"]
        text = f"Rank correlation of weight and worth (Spearman): {correlation:+.2f}."
        name = f"{first['experiment']}-sources-{first['method']}-{first['target']}"
        yield Table(name, printable(title), pd.DataFrame(cells), () if pd.isna(correlation) else (text,))


def _known(row: pd.Series[Any]) -> dict[str, str]:
    weight, worth = row["weight"], row["worth"]
    known = {"source": printable(row["source"]), "weight": "-" if pd.isna(weight) else f"{weight:.3f}"}
    return known | {"worth": "-" if pd.isna(worth) else f"{worth:.1f}"}


def _change(row: pd.Series[Any], unit: Unit) -> dict[str, str]:
    if pd.isna(row["without"]):
        return dict.fromkeys(("without", "change", "p", "Holm", "W/T/L", "n", "transfer"), "-")
    paired = row["n_paired"] > 0
    return {
        "without": unit.show(row["mean_without"]),
        "change": unit.show(row["mean_difference"], signed=True),
        "p": show_p(row["p_two_sided"]),
        "Holm": show_p(row["p_holm"]),
        "W/T/L": f"{row['wins']}/{row['ties']}/{row['losses']}" if paired else "-",
        "n": f"{row['n_paired']}/{row['n_planned']}",
        "transfer": row["transfer"],
    }


def sources_json(runs: pd.DataFrame, found: pd.DataFrame, notes: Sequence[str]) -> dict[str, Any]:
    """A frame of `sources` by table, with what could not be asked; docs/diagnostics.md explains the keys."""
    tables = []
    for _, rows in found.groupby(["experiment", "method", "target"], sort=False):
        shared = rows_of(rows[[*_OF_TABLE, "rank_correlation"]].iloc[:1])[0]
        own = rows.drop(columns=[*_OF_TABLE, "rank_correlation"])
        tables.append(shared | {"sources": rows_of(own)})
    return {
        "schema": SOURCES_SCHEMA,
        "command": "sources",
        "folder": str(Path(runs.attrs["folder"])) if runs.attrs["folder"] else None,
        "tables": tables,
        "notes": list(notes),
        "problems": list(problem_lines(runs)),
        "faults": list(runs.attrs["fault_lines"]),
    }
