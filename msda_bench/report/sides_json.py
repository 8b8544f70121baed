"""`compare A B --json`: all that is printed, as plain JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from msda_bench.report.csv_text import Value
from msda_bench.report.effect_columns import effect_columns
from msda_bench.report.folder import Folder
from msda_bench.report.problems import problems_of
from msda_bench.report.sides import Pairing, Sides
from msda_bench.report.sides_verdict import sides_verdict
from msda_bench.stats.difference import Difference
from msda_bench.stats.scores import AVERAGE

SIDES_SCHEMA = 1
"""Version of the layout of `compare A B --json`."""


def sides_json(sides: Sides) -> dict[str, Any]:
    """Two folders beside each other; docs/results.md explains the keys."""
    verdict = sides_verdict(sides)
    return {
        "schema": SIDES_SCHEMA,
        "command": "compare",
        "a": _folder(sides.a),
        "b": _folder(sides.b),
        "status": verdict.status,
        "verdict": verdict.line,
        "experiments": [_pairing(pairing) for pairing in sides.pairings],
        "only_in_a": [table.name for table in sides.only_a],
        "only_in_b": [table.name for table in sides.only_b],
        "faults": [*sides.a.lines, *sides.b.lines],
    }


def _folder(folder: Folder) -> dict[str, str]:
    return {"folder": str(folder.path), "suite": folder.plan.suite}


def _pairing(pairing: Pairing) -> dict[str, Any]:
    a, b = pairing.a.experiment, pairing.b.experiment
    return {
        "experiment_a": a.name,
        "experiment_b": b.name,
        "dataset": a.dataset,
        "metric": pairing.a.metric,
        "alpha": a.alpha,
        "alpha_b": b.alpha,
        "only_in_a": asdict(pairing.only_a),
        "only_in_b": asdict(pairing.only_b),
        "differs": [asdict(change) for change in pairing.changes],
        "runs": {
            "planned_by_both": pairing.n_runs,
            "ok_in_both": pairing.n_paired,
            "same_cell": pairing.n_same_cell,
            "equal_result": pairing.n_same_result,
        },
        "rows": [_row(one) for one in pairing.differences],
        "notes": {"a": list(a.notes), "b": list(b.notes)},
        "problems": {
            side: [str(problem) for problem in problems_of(scores)]
            for side, scores in (("a", pairing.a), ("b", pairing.b))
        },
    }


def _row(one: Difference) -> dict[str, Value]:
    """Keys mean what the columns of comparisons.csv do."""
    tested = one.n_paired > 0
    return {
        "target": AVERAGE if one.target is None else one.target,
        "method_a": one.method_a,
        "method_b": one.method_b,
        "status": one.status,
        "n_planned": one.n_planned,
        "n_paired": one.n_paired,
        "n_zero": one.test.n_zero,
        "mean_a": one.a.mean,
        "standard_error_a": one.a.standard_error,
        "mean_b": one.b.mean,
        "standard_error_b": one.b.standard_error,
        **effect_columns(one.effect),
        "statistic": one.test.statistic if tested else None,
        "p_two_sided": one.test.p if tested else None,
        "p_holm": one.p_holm if tested else None,
        "attainable_p": one.test.attainable_p,
        "attainable_p_holm": one.attainable_p_holm,
        "significant_holm": one.significant if one.tellable else None,
    }
