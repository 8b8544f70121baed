"""The tables of a result folder, compared with golden files and with the committed folders of results/."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from msda_bench.results.experiment_tables import folder_report
from msda_bench.results.files import result_files, write_results
from msda_bench.results.frame import COLUMNS, load_results, runs_frame
from msda_bench.results.leaderboard import analyse
from msda_bench.results.serialize import document, json_text
from msda_bench.store import Store

RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = sorted(path.parent for path in RESULTS.glob("*/leaderboard.csv"))


def test_files_match_the_golden_files(sample, golden):
    for name, text in result_files(analyse(sample)).items():
        golden(name.replace("/", "-"), text)


@pytest.mark.parametrize("command", ["leaderboard", "compare"])
def test_documents_match_the_golden_files(sample, golden, command):
    report = folder_report(command, analyse(sample), [], ["results/sample"])
    golden(f"{command}.json", json_text(document(report)) + "\n")


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_committed_folders_match_their_records(folder):
    found = result_files(analyse(load_results(folder)))
    assert {name: (folder / name).read_text() for name in found} == found


def test_the_order_of_cells_and_records_changes_no_byte():
    store = Store(RESULTS / "ablation-epoch", repair=False)
    plan = store.read_plan()
    records = store.results(cell.key for cell in plan.cells)
    turned = replace(plan, cells=plan.cells[::-1])
    one, other = runs_frame(plan, records), runs_frame(turned, dict(reversed(records.items())))
    assert result_files(analyse(one)) == result_files(analyse(other))


def test_runs_csv_has_a_row_a_planned_run_and_reads_back(sample):
    text = result_files(analyse(sample))["runs.csv"]
    lines = text.splitlines()
    assert len(lines) == 1 + len(sample) == 1 + 5 * 4 * 8 + 2 * 3
    assert lines[0].startswith(",".join(COLUMNS[:17]))
    assert sum(",missing," in line for line in lines) == 4
    assert "\x1b" not in text


def test_parquet_is_written_if_pyarrow_is_installed(sample, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    write_results(tmp_path, analyse(sample))
    read = pd.read_parquet(tmp_path / "runs.parquet")
    assert read["status"].tolist() == sample["status"].tolist()
    assert list(read) == list(sample)


def test_a_suite_without_records_is_all_missing(sample):
    runs = sample.assign(status="missing", score=float("nan"), n_correct=pd.NA, n_test=pd.NA)
    found = analyse(runs)
    assert found.leaderboard["rank"].isna().all()
    assert (found.comparisons["n_paired"] == 0).all()
    assert "No method has a result yet." in result_files(found)["tables.md"]
