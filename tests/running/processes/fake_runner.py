"""A runner process to be killed: `python fake_runner.py FOLDER SECONDS_PER_CELL EXECUTOR [SEEDS [DO]]`.

EXECUTOR is inline, local, dask, or the address of a dask scheduler. There are four cells a seed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import fake_training

from msda_bench.cli.main import end, listen
from msda_bench.errors import BenchError, Interrupted
from msda_bench.executors import Event, Noted
from msda_bench.running.execute import terminable
from msda_bench.running.runner import Observer, run_suite, survey
from msda_bench.store import Store


class Teller(Observer):
    """Prints notes if FAKE_TRAINING_TELL is set."""

    def see(self, event: Event) -> None:
        if isinstance(event, Noted) and "FAKE_TRAINING_TELL" in os.environ:
            print(event.line, file=sys.stderr)


def main(folder: Path, seconds: str, kind: str, seeds: str = "6", do: str = "nap") -> int:
    os.environ["FAKE_TRAINING_NAP"] = seconds  # not in the cells, whose keys it would change
    expansion = fake_training.fake_expansion(seeds=int(seeds), do=do)
    store = Store.create(folder)
    store.write_plan(expansion.plan)
    executor = fake_training.executor("dask", scheduler=kind) if ":" in kind else fake_training.executor(kind)
    try:
        with terminable():
            summary = run_suite(survey(expansion, store), store, executor, Teller())  # type: ignore[arg-type]
    except BenchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if summary.interrupted:
        return 130
    return 0 if summary.complete else 1


if __name__ == "__main__":
    listen()  # as the command does: a second signal finds no default handler between our own ones
    try:
        code = main(Path(sys.argv[1]), *sys.argv[2:])
    except Interrupted:
        code = 130
    end(code)
