"""The commands that read result folders: tables, comparisons, pages and published numbers."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msda_bench
from msda_bench.cli.lines import say, say_block, warn_of
from msda_bench.cli.tables import TableOptions, load_folder, show, show_folder
from msda_bench.errors import BenchError
from msda_bench.results.across import across_of
from msda_bench.results.command_reports import across_report, advice_of
from msda_bench.results.compare_folders import folders_report
from msda_bench.results.files import replace_file
from msda_bench.results.notes import is_whole
from msda_bench.results.tables import csv_text
from msda_bench.results.verify import VERIFIED, verifications, verified_frame, verify_report
from msda_bench.results.words import name_of
from msda_bench.store import Store


@contextlib.contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Pauses Python's search for objects that hold each other.

    A page takes millions of objects and hardly one such cycle, and the search took a twelfth of its time. Tables of
    200,000 runs gain less by it, and lose a tenth of their memory.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def leaderboard(*, folder: Path, per_class: bool, **shown: Any) -> int:
    """Prints the tables of a folder, or the accuracy on each class."""
    options = TableOptions(**shown)
    if not per_class:
        return show_folder(folder, options, "leaderboard")
    if options.against:
        raise BenchError("--per-class is for one result folder, without --against")
    from msda_bench.results.predictions import classes_report

    return show(classes_report(load_folder(folder, options)), options)


def compare(*, folder: Path, other: Path | None, match: list[str], across: bool, **shown: Any) -> int:
    """Compares every pair of methods of a folder, its methods across datasets, or two folders side by side."""
    options = TableOptions(**shown)
    if across and other is not None:
        raise BenchError("--across is for one result folder; `site` joins several")
    if options.against is not None and (across or other is not None):
        raise BenchError("--against is for one result folder, without --across")
    if other is not None:
        matches = _matches(match)
        a, b = load_folder(folder, options), load_folder(other, options)
        return show(folders_report(a, b, matches, complete=is_whole(a) and is_whole(b)), options)
    if match:
        raise BenchError("--match needs two result folders")
    if across:
        return _across(folder, options)
    return show_folder(folder, options, "compare")


def _across(folder: Path, options: TableOptions) -> int:
    runs = load_folder(folder, options)
    across = across_of(runs)
    if across is None:
        what = "experiments of two datasets or more, by accuracy, with any headroom asked for"
        gone = "" if is_whole(runs) else "; runs are missing or failed here, which `leaderboard` names"
        raise BenchError(f"{folder}: --across needs {what}{gone}")
    is_drawn = across.concludes and across.mean_ranks and not options.is_part

    def draw() -> Path:
        chart = msda_bench.plots.critical_difference(across)
        return msda_bench.plots.save(chart, folder / "critical-difference.svg")

    return show(across_report(runs, across, options.by), options, draw if is_drawn else None)


def _matches(given: list[str]) -> dict[str, str]:
    matches: dict[str, str] = {}
    for text in given:
        name, equals, other = (part.strip() for part in text.partition("="))
        if not (name and equals and other):
            raise BenchError(f"--match {text!r}: must be X=Y, a method or experiment of A and one of B")
        if name in matches:
            raise BenchError(f"--match {text!r}: {name} is already matched with {matches[name]}")
        matches[name] = other
    return matches


@_no_search_for_cycles()
def report(*, folder: Path, **shown: Any) -> int:
    """Writes a folder as one page."""
    from msda_bench_report.page import REPORT, Findings, render_page

    options = TableOptions(**shown)
    reference = options.reference()
    findings = Findings.of(load_folder(folder, options), reference)
    path = folder / REPORT
    replace_file(path, render_page(findings, Store(folder).commands()).encode())
    for view in findings.views:
        if said := advice_of(view):
            say_block(f"{name_of(view.experiment.name)}: {' '.join(said)}", ())
    say(str(path))
    return 0 if is_whole(findings.analysis.selected) else 1


@_no_search_for_cycles()
def site(*, folders: Sequence[Path], out: Path) -> int:
    """Writes many folders as a static site."""
    from msda_bench.plugins import discover
    from msda_bench_report.site import INDEX, write_site

    registry = discover()
    warn_of(registry.problems)
    faults = write_site(folders, out, registry)
    say(str(out / INDEX))
    return int(warn_of(faults))


def sources(*, folder: Path, **shown: Any) -> int:
    """Reports the effect of each source in each method and target."""
    from msda_bench.plugins import discover
    from msda_bench.results.sources import SourceTransferability, sources_report

    options = TableOptions(**shown)
    return show(sources_report(load_folder(folder, options), SourceTransferability(discover())), options)


def verify(*, folder: Path, table: str | None, **shown: Any) -> int:
    """Compares a folder with the published numbers that its suite names, and writes verify.csv."""
    options = TableOptions(**shown)
    runs = load_folder(folder, options)
    verified = verifications(runs, table)
    write = partial(replace_file, folder / VERIFIED, csv_text(verified_frame(verified)).encode())
    # The file is for the suite's own tables only.
    return show(verify_report(runs, verified), options, write if table is None else None)
