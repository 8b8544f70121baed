"""Checks that the tables of a result folder match its records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msda_bench.results.files import result_files
from msda_bench.results.frame import load_results
from msda_bench.results.leaderboard import analyse
from msda_bench.results.serialize import csv_text
from msda_bench.results.verify import VERIFIED, verify
from msda_bench.store.files import named, read_file


def outdated(folder: Path) -> Iterator[str]:
    """A line for each table that is missing or does not match the records, with the command that writes it.

    Raises:
        BenchError: the folder or a table cannot be read, or a table cannot be computed here.
    """
    runs = load_results(folder)
    wanted = {name: ("leaderboard", text) for name, text in result_files(analyse(runs)).items()}
    if any(table.published for table in runs.attrs["plan"].experiments):
        wanted[VERIFIED] = "verify", csv_text(verify(runs))
    for name, (command, text) in wanted.items():
        path = folder / name
        with named(path, "cannot be read"):
            found = read_file(path) if os.path.lexists(path) else None
        if found != text.encode():
            what = "is missing" if found is None else "is not what the records give"
            yield f"{path}: {what}; run `msda-bench {command} {folder}`"
