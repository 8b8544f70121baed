"""Records of several machines are accepted and named; dishonest submissions are refused.

golden/elsewhere is a real result folder of eight runs on synthetic data. What the records of seeds 2 and 3 say of their
machine was replaced afterwards, and they were sealed again.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.store import Store
from msda_bench.store.codec import encode
from tests.logs import records_of, relog

GOLDEN = Path(__file__).parent / "golden" / "elsewhere"
HERE, AWAY = "Linux x86_64 with torch 2.13.0+cpu", "macOS arm64 with torch 2.11.0"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(GOLDEN, tmp_path / "both")


def test_a_folder_from_two_machines_is_accepted_and_names_both(folder, said):
    code, (line,), _ = said(f"store verify {folder}")
    assert (code, line.startswith(f"{folder}: 8 intact, 0 bad, 0 in conflict; ")) == (0, True)
    assert line.endswith(f"; made 4 on {HERE} and 4 on {AWAY}")
    code, lines, _ = said(f"leaderboard {folder}")
    text = " ".join(" ".join(lines).split())
    which = "SRC, 2 of 4 runs, first at target target_0, seed 2; DARN, 2 of 4 runs, first at target target_0, seed 2"
    assert (code, "note: made with more than one system: " in text, f"{AWAY} ({which})" in text) == (0, True, True)
    assert said(f"store verify --strict {folder}")[0] == 0, "with its tables it can be submitted"


def at_another_place(store, record):
    plan = store.read_plan()
    seeds = {cell.key: 3 - cell.seed for cell in plan.cells}
    store.write_plan(replace(plan, cells=tuple(replace(cell, seed=seeds[cell.key]) for cell in plan.cells)))
    planned, seed, at = seeds[record.key], record.cell["seed"], "'sine', target 'target_0', seed"
    where = f"{store.folder / 'records.jsonl.gz'}: record {record.key}"
    return f"{where}: plan.json has it at {at} {planned}, but it is of {at} {seed}"


def with_labels(store, record):
    path = relog(store.folder, {record.key: encode(replace(record, target_labels=True))})
    return f"{path}: record {record.key}: was given all target labels, but plan.json ranks its method "


def with_another_table(store, _):
    path = store.folder / "leaderboard.csv"
    path.write_text(path.read_text().replace("DARN", "Ours"))
    return f"{path}: is not what the records give; run `msda-bench leaderboard {store.folder}`"


def unplanned(store, record):
    plan = store.read_plan()
    store.write_plan(replace(plan, cells=tuple(cell for cell in plan.cells if cell.key != record.key)))
    where = f"{store.folder / 'records.jsonl.gz'}: record {record.key}"
    return f"{where}: plan.json does not name it; run the suite that does"


UNTIDY = (with_another_table, unplanned)
"""What may be so in a folder at work, as after a change of its suite."""


@pytest.mark.parametrize("forge", [at_another_place, with_labels, *UNTIDY])
def test_a_dishonest_submission_is_refused_in_one_line(folder, said, forge):
    said(f"leaderboard {folder}")
    assert said(f"store verify --strict {folder}")[0] == 0
    store = Store(folder)
    records = records_of(folder)
    line = forge(store, records[min(records)])
    code, lines, _ = said(f"store verify --strict {folder}")
    assert (code, sum(one.startswith(line) for one in lines)) == (1, 1)
    code, lines, _ = said(f"store verify {folder}")
    assert (code, "1 not in plan.json" in lines[-1]) == (int(forge not in UNTIDY), forge is unplanned)
