"""`msda-bench store`: checks or merges result folders, or writes one as a reference."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msda_bench.atomic import named, read_file
from msda_bench.cli.lines import say
from msda_bench.errors import BenchError, reported
from msda_bench.results.files import refuse_result_folders, replace_file, result_files
from msda_bench.results.frame import load_results
from msda_bench.results.leaderboard import analyse
from msda_bench.results.notes import is_whole
from msda_bench.results.problems import problem_lines
from msda_bench.results.reference import read_reference, reference_of
from msda_bench.results.runs import results_of
from msda_bench.results.tables import csv_text
from msda_bench.results.verify import VERIFIED
from msda_bench.results.verify import verify as verified
from msda_bench.results.words import counted, listed
from msda_bench.store import check
from msda_bench.store.compact import compact
from msda_bench.store.store import Store


def verify(*, folders: Sequence[Path], strict: bool) -> int:
    """Checks every record against its sha256, and with `--strict` the tables."""
    stores = [Store(folder) for folder in folders]  # reports a wrong name before reading anything
    code = 0
    for store in stores:
        checked = check.verify(store)
        unfit: list[str] = []
        if strict:
            unfit += checked.unplanned
        if strict and not checked.bad:
            with reported(unfit):
                unfit += _outdated(store.folder)
        unfit += checked.blocking
        for line in (*checked.bad, *checked.conflicts, *unfit, *checked.unfinished):
            say(line)
        if checked.bad or checked.conflicts or unfit:
            code = 1
        say(f"{store.folder}: {'; '.join(_counts(checked))}")
    return code


def _counts(checked: check.Verified) -> Iterator[str]:
    yield f"{checked.records} intact, {len(checked.bad)} bad, {len(checked.conflicts)} in conflict"
    yield f"{checked.failures} failures, {checked.removed} leftovers removed"
    for name, count in sorted(checked.without.items()):
        yield f"{count} without their {name}"
    if checked.unplanned:
        yield f"{len(checked.unplanned)} not in plan.json"
    made = [f"{count} on {machine}" for machine, count in checked.made_on.most_common() if machine is not None]
    if made:
        yield f"made {listed(made)}"


def _outdated(folder: Path) -> Iterator[str]:
    """A line for each table that does not match the records, and for each table that is missing."""
    runs = load_results(folder)
    wanted = {name: ("leaderboard", text) for name, text in result_files(analyse(runs)).items()}
    if any(table.published for table in results_of(runs).plan.experiments):
        wanted[VERIFIED] = "verify", csv_text(verified(runs))
    for name, (command, text) in wanted.items():
        path = folder / name
        with named(path, "cannot be read"):
            written = read_file(path) if os.path.lexists(path) else None
        if written != text.encode():
            what = "is missing" if written is None else "is not what the records give"
            yield f"{path}: {what}; run `msda-bench {command} {folder}`"


def merge(*, folder: Path, others: Sequence[Path]) -> int:
    """Copies the results of other folders into the first."""
    sources = [Store(other) for other in others]  # reports a wrong name before copying anything
    refuse_result_folders(folder.absolute().parent, what="merge INTO")
    into = Store.create(folder)
    code = 0
    for source in sources:
        lines, notes = check.merge(into, source)
        for line in (*lines, *notes):
            say(line)
        code = 1 if lines else code
    return max(code, _sealed(into))


def seal(*, folder: Path) -> int:
    """Puts the logs of a folder into one file."""
    return _sealed(Store(folder))


def _sealed(store: Store) -> int:
    """Seals a folder; returns the exit code: 1 if a record was damaged or is in conflict."""
    lines = [*compact(store), *store.conflicting(store.refresh().results).values()]
    for line in lines:
        say(line)
    say(f"{store.folder}: {len(store.results)} results, {sum(map(len, store.failures.values()))} failures, sealed")
    return 1 if lines else 0


def reference(*, folder: Path, out: Path) -> int:
    """Writes a folder as one file for `--against`."""
    refuse_result_folders(out.absolute().parent)
    if os.path.lexists(out):
        try:
            if not out.is_dir():
                read_reference(out)
        except BenchError:
            raise BenchError(f"--out {out}: is no reference, and stays as it is; name another file") from None
    runs = load_results(folder)
    made = reference_of(runs)
    data = made.to_bytes()
    replace_file(out, data)
    experiments = counted(len(made.plan.experiments), "experiment")
    say(f"{out}: {counted(len(made.runs['seed']), 'run')} of {experiments}, {len(data) // 1000} kB")
    for line in problem_lines(runs):
        say(f"problem: {line}")
    return 0 if is_whole(runs) else 1
