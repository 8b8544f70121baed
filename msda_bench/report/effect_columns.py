"""The size of paired differences as columns, the same in every table and document."""

from __future__ import annotations

from msda_bench.report.csv_text import Value
from msda_bench.stats.effect import Effect

_COLUMNS = {
    "mean_difference": "mean",
    "median_difference": "median",
    "hodges_lehmann": "hodges_lehmann",
    "hl_low": "low",
    "hl_high": "high",
    "wins": "wins",
    "ties": "ties",
    "losses": "losses",
}


def effect_columns(effect: Effect | None) -> dict[str, Value]:
    """By column, explained in docs/results.md; all None where there are no pairs."""
    return {column: getattr(effect, name) if effect else None for column, name in _COLUMNS.items()}
