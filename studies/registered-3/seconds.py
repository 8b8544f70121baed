"""Measures the seconds of training of every row: one run at a time, on a machine that does nothing else.

`python studies/registered-3/seconds.py TASK ...` trains each row of a task at its own settings, once for each target at
seed 0, and writes the task's rows of seconds.csv. The first row is measured by itself at three seeds, since the first
run of a process takes longer. The records' own seconds cannot be compared, since new rows were trained beside other
work and reused ones were not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import yaml

import msda_bench as mb

HERE = Path(__file__).parent
SUITES = HERE.parents[1] / "suites" / "registered-3"
SECONDS = HERE / "seconds.csv"


def measured(task: str) -> pd.DataFrame:
    """The seconds of each row at each target: `task, method, target, seconds`, of the first row three times."""
    suite = yaml.safe_load((SUITES / f"{task}.yaml").read_text(encoding="utf-8"))
    del suite["select"]
    for method in suite["methods"].values():
        method.pop("search", None)
    first = next(iter(suite["methods"]))
    with TemporaryDirectory() as folder:
        of_first = _trained(suite | {"seeds": 3}, Path(folder, "first"), only=f"method={first}")
        of_all = _trained(suite | {"seeds": 1}, Path(folder, "all"))
    others = of_all[~of_all["method"].isin([first, "chance"])]
    rows = pd.concat([of_first[of_first["method"] == first], others])
    return rows[["method", "target", "train_seconds"]].rename(columns={"train_seconds": "seconds"}).assign(task=task)


def _trained(suite: dict[str, Any], folder: Path, only: str | None = None) -> pd.DataFrame:
    path = folder.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
    return mb.run(path, folder, only=only, workers=1, quiet=True).round({"train_seconds": 3})


def main(tasks: list[str]) -> None:
    """Measures these tasks, and keeps what the file has of others."""
    before = pd.read_csv(SECONDS) if SECONDS.exists() else pd.DataFrame(columns=["task", "method", "target", "seconds"])
    kept = before[~before["task"].isin(tasks)]
    rows = pd.concat([kept, *map(measured, tasks)], ignore_index=True)
    rows.sort_values("task", kind="stable")[[*before]].to_csv(SECONDS, index=False)


if __name__ == "__main__":
    main(sys.argv[1:])
