"""Groups the runs that are not ok, and writes a line on each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.frame import PROBLEMS, experiments
from msda_bench.results.model_selection import select
from msda_bench.results.runs import are_ok

_MESSAGE = 200
"""The maximum length of a shown message."""
_WORDS = {"timeout": "timed out", "oom": "out of memory"}


def problems(runs: pd.DataFrame) -> pd.DataFrame:
    """Groups runs that are not ok by experiment, method and status, the worst status first.

    `target`, `seed` and `message` are those of the first run in table order; `planned` counts the method's runs.
    """
    placed = []
    chosen = select(runs)[["experiment", "method", "status", "target", "seed", "message"]]
    for experiment, own in experiments(chosen):
        planned = Counter(own["method"].astype(object))
        methods = list(planned)
        bad = own[~are_ok(own)]
        for (method, status), group in bad.groupby(["method", "status"], observed=True, sort=False):
            place = experiment.name, methods.index(method), PROBLEMS.index(str(status))
            first = group.iloc[0]
            row = {
                "experiment": experiment.name,
                "method": method,
                "status": status,
                "runs": len(group),
                "planned": planned[method],
                "target": first["target"],
                "seed": first["seed"],
                "message": None if pd.isna(first["message"]) else printable(first["message"], _MESSAGE),
            }
            placed.append((place, row))
    placed.sort(key=lambda pair: pair[0])
    columns = ["experiment", "method", "status", "runs", "planned", "target", "seed", "message"]
    return pd.DataFrame([row for _, row in placed], columns=columns, dtype=object)


def problem_lines(runs: pd.DataFrame) -> Iterator[str]:
    """The problems as sentences; methods with equal problems share one."""
    rows = problems(runs)
    same = ["experiment", "status", "runs", "planned", "target", "seed", "message"]
    for _, group in rows.groupby(same, dropna=False, sort=False):
        first = group.iloc[0]
        which = f"{', '.join(group['method'])}: {first['runs']} of {first['planned']} runs"
        if len(group) > 1:
            which += " each"
        status = _WORDS.get(first["status"], first["status"])
        place = f"first at target {printable(first['target'])}, seed {first['seed']}"
        line = f"{first['experiment']}: {which} {status}, {place}"
        if not pd.isna(first["message"]):
            line += f": {first['message']}"
        yield line
