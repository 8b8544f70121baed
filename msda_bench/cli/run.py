"""`msda-bench run SUITE`: trains missing cells and prints the leaderboard."""

from __future__ import annotations

import argparse
import contextlib
import signal
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msda_bench.cli.command import make_parser
from msda_bench.cli.lines import warn_of
from msda_bench.cli.suites import load

if TYPE_CHECKING:
    import pandas as pd


def run(
    suite: str | Path,
    out: str | Path = "results",
    *,
    only: str | None = None,
    limit: int | None = None,
    device: str = "auto",
    workers: int | None = None,
    keep_going: bool = False,
    fetch: bool = False,
    quiet: bool = False,
    trust_files: bool = False,
    no_shift: bool = False,
    methods: str | Path | Mapping[str, Any] | None = None,
    against: str | Path | None = None,
) -> pd.DataFrame:
    """Runs a suite as `msda-bench run` does: trains missing cells, writes and prints the leaderboard.

    Args:
        suite: a suite that comes with msda-bench, such as `quickstart`, or a file, such as `mine.yaml`.
        out: parent of the result folder.
        only: a part of the suite, such as `method=DARN,target=books,seed=0-4`.
        limit: the maximum number of cells to train.
        device: auto, cpu or cuda.
        workers: the number of processes that train; None for as many as suit the machine.
        keep_going: whether the other runs are trained although a method's first run fails.
        fetch: whether missing data may be downloaded.
        quiet: print no progress, no verdict and no explanation of the tables.
        trust_files: whether the code of Python files that the suite names as estimators may run.
        no_shift: keep no picture of your own data for the page: two components of at most 1200 rows.
        methods: your own estimators by name, rows beside the suite's: anything with `fit` and `predict`, or
            `{"estimator": it, "sees": "target"}`; or a file with `methods`, which are trained instead of the suite's.
        against: rank them among recorded methods of the same protocol: `reference`, those that come with msda-bench, or
            a result folder or a file of `store reference`.

    Returns:
        The runs of the result folder (`msda_bench.load_results`); those that failed or are missing have their status.

    Raises:
        TypeError, ValueError: an argument has another type, or is out of range.
        BenchError: the suite, a plugin, the data or the result folder cannot be used.
        KeyboardInterrupt: it was interrupted; the same call resumes.
    """
    from pydantic import PositiveInt

    from msda_bench.results.door import argument
    from msda_bench.results.frame import load_results
    from msda_bench.suite.described import own_methods

    kinds: dict[str, tuple[object, object]] = {
        "out": (out, str | Path),
        "only": (only, str | None),
        "limit": (limit, PositiveInt | None),
        "device": (device, Literal["auto", "cpu", "cuda"]),
        "workers": (workers, PositiveInt | None),
        "methods": (None if isinstance(methods, Mapping) else methods, str | Path | None),
        "against": (against, str | Path | None),
        "keep-going": (keep_going, bool),
        "fetch": (fetch, bool),
        "trust-files": (trust_files, bool),
        "no-shift": (no_shift, bool),
        "quiet": (quiet, bool),
    }
    own = own_methods(methods) if isinstance(methods, Mapping) else None
    suite = str(argument("suite", suite, str | Path))
    given = {name: argument(name.replace("-", "_"), value, kind) for name, (value, kind) in kinds.items()}
    values = {f"--{name}": str(value) for name, value in given.items() if not isinstance(value, bool | None)}
    flags = [f"--{name}" for name, value in given.items() if value is True]
    # So that a value, or the suite, may begin with a dash.
    args = make_parser().parse_args(["run", *map("=".join, values.items()), *flags, "--", suite])
    args.added = own
    args.words = ["run", suite, *chain.from_iterable(values.items()), *flags]
    command(args)
    return load_results(args.folder)


def command(args: argparse.Namespace) -> int:
    """Trains what is missing and prints the leaderboard."""
    from rich.console import Console

    aside = Console(stderr=True, soft_wrap=True, quiet=args.quiet)
    with aside.status("loading the suite and its components") if aside.is_terminal else contextlib.nullcontext():
        from msda_bench.cli.train import Work, find_executor, train_suite
        from msda_bench.running.execute import Interrupt

        trains = find_executor(args)
        registry, suite, expansion = load(args, args.own)
        warn_of(expansion.warnings)
        args.fetch = args.fetch or suite.fetch
    with Interrupt(signal.SIGTERM) as stop, stop.raising():
        return train_suite(args, Work(expansion, registry, trains, aside))
