"""`sources DIR --json`: all that is printed, as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msda_bench.report.effect_columns import effect_columns
from msda_bench.report.problems import problems_of
from msda_bench.report.sources import Source, SourceTable, Without
from msda_bench.stats.scores import Scores

SOURCES_SCHEMA = 1
"""Version of the layout of `sources DIR --json`."""


def sources_json(
    folder: Path, tables: Sequence[SourceTable], scores: Sequence[Scores], notes: Sequence[str], faults: Sequence[str]
) -> dict[str, Any]:
    """The tables; docs/diagnostics.md explains the keys."""
    return {
        "schema": SOURCES_SCHEMA,
        "command": "sources",
        "folder": str(folder),
        "tables": [_table(table) for table in tables],
        "notes": list(notes),
        "problems": {one.experiment.name: [str(problem) for problem in problems_of(one)] for one in scores},
        "faults": list(faults),
    }


def _table(table: SourceTable) -> dict[str, Any]:
    experiment = table.scores.experiment
    return {
        "experiment": experiment.name,
        "dataset": experiment.dataset,
        "method": table.method,
        "target": table.target,
        "metric": table.scores.metric,
        "alpha": experiment.alpha,
        "n_ok": table.score.n,
        "mean": table.score.mean,
        "standard_error": table.score.standard_error,
        "rank_correlation": table.rank_correlation,
        "sources": [_source(one) for one in table.sources],
    }


def _source(one: Source) -> dict[str, Any]:
    known = {"source": one.name, "weight": one.weight, "worth": one.worth}
    return known | {"without": None if one.without is None else _without(one.without)}


def _without(one: Without) -> dict[str, Any]:
    change = one.change
    tested = change.n_paired > 0
    return {
        "experiment": one.experiment,
        "n_planned": change.n_planned,
        "n_paired": change.n_paired,
        "mean": change.b.mean,
        **effect_columns(change.effect),
        "p_two_sided": change.test.p if tested else None,
        "p_holm": change.p_holm if tested else None,
        "attainable_p_holm": change.attainable_p_holm,
        "transfer": one.transfer,
    }
