"""A runner process to be killed: `python fake_runner.py FOLDER EXECUTOR SEEDS DO`, with four cells a seed.

EXECUTOR is inline, local, dask, or the address of a dask scheduler.
"""

import contextlib
import signal
import sys
from pathlib import Path

import fake_training

from msda_bench.cli.end import end, listen
from msda_bench.errors import BenchError, Interrupted, StoreError
from msda_bench.executors import Interrupt, Noted
from msda_bench.running.runner import Observer, missing_runs, run_suite
from msda_bench.store import Store
from msda_bench.store.compact import compact


class Teller(Observer):
    """Prints notes."""

    def see(self, event):
        if isinstance(event, Noted):
            print(event.line, file=sys.stderr)


def main(folder, kind, seeds, do):
    expansion = fake_training.fake_expansion(seeds=int(seeds), do=do)
    store = Store.create(Path(folder))
    store.write_plan(expansion.plan)
    executor = fake_training.executor("dask", scheduler=kind) if ":" in kind else fake_training.executor(kind)
    try:
        with Interrupt(signal.SIGTERM) as stop, stop.raising():
            summary = run_suite(missing_runs(expansion, store), store, executor, Teller())
    except BenchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if summary.interrupted:
        return 130
    if summary.complete:
        with contextlib.suppress(StoreError):  # another process does
            compact(store)
    return 0 if summary.complete else 1


if __name__ == "__main__":
    listen()  # as the command does: a second signal finds no default handler between our own ones
    try:
        code = main(*sys.argv[1:])
    except Interrupted:
        code = 130
    end(code)
