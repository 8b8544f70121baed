"""`msda-bench submit DIR SUITE`: writes the folder that a pull request adds, and says what a maintainer repeats."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say, warn_of
from msda_bench.cli.suites import add_methods_option, add_suite_argument
from msda_bench.errors import BenchError

if TYPE_CHECKING:
    import pandas as pd

LOCK = "lock.txt"
_NOT_SUBMITTED = ("commands.txt", "report.html", ".*")
_MOST = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the result folder")
    add_suite_argument(parser)
    add_methods_option(parser, "the file of methods that the suite was run with")
    out = "parent of the folder that is written (submission)"
    parser.add_argument("--out", type=Path, default=Path("submission"), metavar="PARENT", help=out)


def command(args: argparse.Namespace) -> int:
    """Checks the folder as `store verify --strict` does; writes it with its suite and a lock of what is installed."""
    from msda_bench.atomic import named
    from msda_bench.plugins import discover
    from msda_bench.results.files import refuse_result_folders
    from msda_bench.results.frame import load_results
    from msda_bench.results.notes import problem_lines
    from msda_bench.store.store import Store
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import composed, load_suite

    registry = discover()
    warn_of(registry.problems)
    suite = load_suite(args.suite, registry, args.own)
    plan = Store(args.folder, repair=False).read_plan()
    if {*plan.cells} != {*expand(suite, registry).plan.cells}:
        raise BenchError(f"{args.folder}: has other runs than the suite asks for; name its suite, and --methods if any")
    unplanned = _check(args.folder, {cell.key for cell in plan.cells})
    runs = load_results(args.folder)
    warn_of(problem_lines(runs), "problem")
    out = args.out / plan.suite
    refuse_result_folders(args.out)
    if os.path.lexists(out):
        raise BenchError(f"{out}: is there already; move it away, or name another folder with --out")
    with named(out, "cannot be written"):
        shutil.copytree(args.folder, out, ignore=partial(_left_out, unplanned))
        for name, data in composed(args.suite, args.own, plan.suite).items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(data)
        (out / LOCK).write_text("".join(f"{line}\n" for line in _installed()), encoding="utf-8")
    if unplanned:
        say(f"{args.folder}: records of {len(unplanned)} cells that the suite no longer asks for are left out")
    _tell(out, plan.suite, runs)
    return 0


def _left_out(unplanned: Collection[str], folder: str, names: list[str]) -> set[str]:
    """The files that are not submitted: those of cells that are not planned, and what is of this machine."""
    beyond = {name for name in names if name.partition(".")[0] in unplanned}
    return beyond | shutil.ignore_patterns(*_NOT_SUBMITTED)(folder, names)


def _check(folder: Path, planned: Collection[str]) -> set[str]:
    """Refuses a folder with faults; returns the keys of records that the plan does not name."""
    from msda_bench.cli.store import unfit_lines
    from msda_bench.results.repeated import FILE
    from msda_bench.store.store import Store
    from msda_bench.store.sweep import verify

    if os.path.lexists(folder / FILE):
        raise BenchError(f"{folder / FILE}: is a maintainer's; remove it, then run `msda-bench leaderboard {folder}`")
    store = Store(folder, repair=False)
    counted = verify(store)
    counted.unplanned.clear()  # they are left out
    if lines := [*counted.bad, *counted.conflicts, *unfit_lines(store, counted)]:
        raise BenchError(*lines[:_MOST])
    return {file.key for file in store.scan()}.difference(planned)


def _installed() -> Iterator[str]:
    """Every distribution of this environment with its version."""
    from importlib.metadata import distributions

    yield from sorted({f"{one.metadata['Name']}=={one.version}" for one in distributions()}, key=str.lower)


def _tell(out: Path, suite: str, runs: pd.DataFrame) -> None:
    import pandas as pd

    from msda_bench.results.repeated import digest_of, drawn
    from msda_bench.results.words import counted, name_of

    keys, (_, count) = drawn(runs), digest_of(runs)
    rows = runs[runs["key"].isin(keys).to_numpy()].drop_duplicates("key")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    there = f"results/{suite}"
    again = ["msda-bench", "run", f"{there}/suite.yaml", "--repeat", there, "--as", "NAME", "--out", "again"]
    say(f"{out}: {counted(count, 'result')}, {size // 1000} kB; put it into results/ of a pull request")
    places = rows[["experiment", "method", "target", "seed", "candidate"]].itertuples(index=False)
    seconds = rows["train_seconds"].sum()
    say(f"a maintainer trains {len(keys)} of them again, drawn by the results, {seconds:.0f} seconds as recorded:")
    for experiment, method, target, seed, candidate in places:
        of = "" if pd.isna(candidate) else f", candidate {candidate}"
        say(f"  {experiment}: {name_of(method)} at target {name_of(target)}, seed {seed}{of}")
    say(f"by: {shlex.join(again)}")
