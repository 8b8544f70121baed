"""A runner process to be killed: `python fake_runner.py FOLDER SECONDS_PER_CELL EXECUTOR`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import fake_training

from msda_bench.run.executors.inline import InlineExecutor
from msda_bench.run.executors.local import LocalExecutor
from msda_bench.run.interrupt import terminable
from msda_bench.run.runner import run_suite
from msda_bench.run.survey import survey
from msda_bench.store import Store


def main(folder: Path, seconds: str, kind: str) -> int:
    os.environ["FAKE_TRAINING_NAP"] = seconds  # not in the cells, whose keys it would change
    expansion = fake_training.fake_expansion(seeds=6, do="nap")
    store = Store.create(folder)
    store.write_plan(expansion.plan)
    executor = (
        InlineExecutor("cpu", fake_training.TRAINER)
        if kind == "inline"
        else LocalExecutor("cpu", 2, trainer=fake_training.TRAINER)
    )
    with terminable():
        summary = run_suite(survey(expansion, store), store, executor)  # type: ignore[arg-type]
    if summary.interrupted:
        return 130
    return 0 if summary.complete else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
