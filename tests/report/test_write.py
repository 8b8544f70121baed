from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.report.write import write_tables

TABLES = ("leaderboard.csv", "comparisons.csv")


def read(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_golden(sample, golden, tmp_path, name):
    write_tables(tmp_path, *sample)
    golden(name, (tmp_path / name).read_bytes().decode())


def test_the_order_of_cells_and_records_changes_no_byte(sample, tmp_path):
    plan, records = sample
    write_tables(tmp_path, plan, records)
    expected = read(tmp_path)
    for seed in range(3):
        draw = random.Random(seed)  # noqa: S311
        cells, items = list(plan.cells), list(records.items())
        draw.shuffle(cells)
        draw.shuffle(items)
        write_tables(tmp_path, replace(plan, cells=tuple(cells)), dict(items))
        assert read(tmp_path) == expected


def test_the_hash_seed_changes_no_byte(tmp_path):
    code = """
import sys, pathlib
from msda_bench.report.write import write_tables
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
names, seeds = ("SRC", "DANN", "MDAN", "DARN"), range(6)
methods = tuple(Method(name, False, name, ()) for name in names)
experiment = Experiment("e", "d", "classification", ("x", "y"), methods, tuple(seeds))
cells = tuple(PlannedCell("e", n, t, s, f"{n}{t}{s}") for n in names for t in ("x", "y") for s in seeds)
keys = {cell.key for cell in cells}
records = {key: Record(key, {}, "ok", Outcome(97, n_correct=sum(key.encode()) % 97)) for key in keys}
write_tables(pathlib.Path(sys.argv[1]), Plan("s", (experiment,), cells), records)
"""
    written = []
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed
        folder.mkdir()
        subprocess.run([sys.executable, "-c", code, str(folder)], env={"PYTHONHASHSEED": hash_seed}, check=True)
        written.append(read(folder))
    assert written[0] == written[1]


def test_older_tables_are_replaced_and_nothing_else_is_left(sample, tmp_path):
    (tmp_path / "leaderboard.csv").write_text("old")
    write_tables(tmp_path, *sample)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TABLES)
    assert (tmp_path / "leaderboard.csv").read_text().startswith("suite,experiment,")


def test_a_folder_that_cannot_be_written_is_named(sample, tmp_path):
    with pytest.raises(StoreError, match=r"leaderboard\.csv: cannot be written.*No such file"):
        write_tables(tmp_path / "nowhere", *sample)
