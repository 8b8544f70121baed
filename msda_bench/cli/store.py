"""`msda-bench store`: checks or merges result folders, or writes one as a reference."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say
from msda_bench.errors import BenchError, reported

if TYPE_CHECKING:
    from msda_bench.store.check import Verified
    from msda_bench.store.store import Store


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    verify = actions.add_parser("verify", help="check every record of result folders against its sha256")
    verify.add_argument("folders", type=Path, metavar="DIR", nargs="+", help="result folders, such as results/*")
    verify.add_argument(
        "--strict",
        action="store_true",
        help="check published results: all records are in the plan, and the tables match them",
    )
    verify.set_defaults(command=_verify)
    merge = actions.add_parser("merge", help="copy the results of other folders into the first")
    merge.add_argument("folder", type=Path, metavar="INTO", help="the folder that receives the results")
    merge.add_argument("others", type=Path, metavar="FROM", nargs="+", help="folders to copy from; they do not change")
    merge.set_defaults(command=_merge)
    seal = actions.add_parser("seal", help="put the logs of a result folder into one file, also while others train")
    seal.add_argument("folder", type=Path, metavar="DIR", help="a result folder")
    seal.set_defaults(command=_seal)
    reference = actions.add_parser("reference", help="write a result folder as one file for --against")
    reference.add_argument("folder", type=Path, metavar="DIR", help="a result folder with all of its runs")
    reference.add_argument("--out", type=Path, metavar="FILE", default=Path("reference.json.gz"), help="the file")
    reference.set_defaults(command=_reference)


def _verify(args: argparse.Namespace) -> int:
    from msda_bench.store.check import verify
    from msda_bench.store.store import Store

    stores = [Store(folder) for folder in args.folders]  # reports a wrong name before reading anything
    code = 0
    for store in stores:
        counted = verify(store)
        unfit: list[str] = []
        if args.strict:
            unfit += counted.unplanned
            with reported(unfit):
                unfit += () if counted.bad else _outdated(store.folder)
        for line in (*counted.bad, *counted.conflicts, *unfit):
            say(line)
        counts = f"{counted.records} intact, {len(counted.bad)} bad, {len(counted.conflicts)} in conflict"
        rest = f"{counted.failures} failures, {counted.removed} leftovers removed"
        say(f"{store.folder}: {counts}; {rest}{_of_the_records(counted)}")
        code = 1 if counted.bad or counted.conflicts or unfit else code
    return code


def _of_the_records(counted: Verified) -> str:
    """How many lack arrays or are unplanned, and the systems that made the records."""
    from msda_bench.results.words import listed

    without = "".join(f"; {n} without their {name}" for name, n in sorted(counted.without.items()))
    made = [f"{n} on {on}" for on, n in counted.made_on.most_common() if on is not None]
    beyond = f"; {len(counted.unplanned)} not in plan.json" if counted.unplanned else ""
    return f"{without}{beyond}" + (f"; made {listed(made)}" if made else "")


def _outdated(folder: Path) -> Iterator[str]:
    """A line for each table that does not match the records, and for each table that is missing."""
    from msda_bench.atomic import named, read_file
    from msda_bench.results.files import result_files
    from msda_bench.results.frame import load_results
    from msda_bench.results.leaderboard import analyse
    from msda_bench.results.tables import csv_text
    from msda_bench.results.verify import VERIFIED, verify

    runs = load_results(folder)
    wanted = {name: ("leaderboard", text) for name, text in result_files(analyse(runs)).items()}
    if any(table.published for table in runs.attrs["plan"].experiments):
        wanted[VERIFIED] = "verify", csv_text(verify(runs))
    for name, (command, text) in wanted.items():
        path = folder / name
        with named(path, "cannot be read"):
            written = read_file(path) if os.path.lexists(path) else None
        if written != text.encode():
            what = "is missing" if written is None else "is not what the records give"
            yield f"{path}: {what}; run `msda-bench {command} {folder}`"


def _merge(args: argparse.Namespace) -> int:
    from msda_bench.results.files import refuse_result_folders
    from msda_bench.store.check import merge
    from msda_bench.store.store import Store

    sources = [Store(folder) for folder in args.others]  # reports a wrong name before copying anything
    refuse_result_folders(args.folder.absolute().parent, what="merge INTO")
    into = Store.create(args.folder)
    code = 0
    for source in sources:
        counted = merge(into, source)
        for line in (*counted.lines, *counted.notes):
            say(line)
        say(f"{source.folder}: {counted.copied} copied, {counted.present} already present")
        code = 1 if counted.lines else code
    return max(code, _sealed(into))


def _seal(args: argparse.Namespace) -> int:
    from msda_bench.store.store import Store

    return _sealed(Store(args.folder))


def _sealed(store: Store) -> int:
    """Seals a folder; returns the exit code: 1 if a record was damaged or is in conflict."""
    lines = [*store.seal(), *store.conflicting(store.refresh().results).values()]
    for line in lines:
        say(line)
    say(f"{store.folder}: {len(store.results)} results, {sum(map(len, store.failures.values()))} failures, sealed")
    return 1 if lines else 0


def _reference(args: argparse.Namespace) -> int:
    from msda_bench.results.files import refuse_result_folders, replace_file
    from msda_bench.results.frame import load_results
    from msda_bench.results.notes import is_whole, problem_lines
    from msda_bench.results.reference import read_reference, reference_of
    from msda_bench.results.words import counted

    refuse_result_folders(args.out.absolute().parent)
    if os.path.lexists(args.out):
        try:
            _ = None if args.out.is_dir() else read_reference(args.out)
        except BenchError:
            raise BenchError(f"--out {args.out}: is no reference, and stays as it is; name another file") from None
    runs = load_results(args.folder)
    reference = reference_of(runs)
    data = reference.to_bytes()
    replace_file(args.out, data)
    experiments = counted(len(reference.plan.experiments), "experiment")
    say(f"{args.out}: {counted(len(reference.runs['seed']), 'run')} of {experiments}, {len(data) // 1000} kB")
    for line in problem_lines(runs):
        say(f"problem: {line}")
    return 0 if is_whole(runs) else 1
