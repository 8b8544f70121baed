"""The tables of a result folder, compared with golden files and with the committed folders of results/."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.results.files import result_files
from msda_bench.results.leaderboard import analyse
from msda_bench.store import Store
from tests.logs import records_of
from tests.results.conftest import frame

RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = sorted(path.parent for path in RESULTS.glob("*/leaderboard.csv"))


def test_files_match_the_golden_files(sample, golden):
    analysis = analyse(sample)
    for name, text in result_files(analysis).items():
        golden(name.replace("/", "-"), text)
        assert "\x1b" not in text


@pytest.mark.slow
@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_committed_folders_match_their_records_and_claim_only_what_their_pairs_can_show(folder):
    files = result_files(analyse(mb.load_results(folder)))
    assert {name: (folder / name).read_text() for name in files} == files
    rows = pd.read_csv(folder / "comparisons.csv")
    able, corrected = rows["attainable_p"] <= rows["alpha"], rows["p_holm"] <= rows["alpha"]
    assert able[rows["outcome"].isin(["better", "worse"]) | (rows["reason"] == "not significant")].all()
    assert rows["outcome"].isin(["better", "worse"]).equals(corrected)
    assert ((rows["outcome"] == "same") == (rows["n_zero"] == rows["n_paired"]) & (rows["n_paired"] > 0)).all()
    assert (rows["reason"].notna() == (rows["outcome"] == "unknown")).all()
    assert rows.loc[~able, "detectable"].isna().all()


def test_the_order_of_cells_and_records_changes_no_byte():
    folder = RESULTS / "ablation-digits-scale"
    plan, records = Store(folder).read_plan(), records_of(folder)
    turned = frame(replace(plan, cells=plan.cells[::-1]), dict(reversed(records.items())))
    assert result_files(analyse(frame(plan, records))) == result_files(analyse(turned))


def test_a_part_of_a_loaded_folder_is_written_as_parquet_and_still_has_its_plan(tmp_path):
    pytest.importorskip("pyarrow")
    runs = mb.load_results(RESULTS / "ablation-digits-scale")
    part = runs[runs["seed"] < 2]
    part.to_parquet(tmp_path / "part.parquet", index=False)
    read = pd.read_parquet(tmp_path / "part.parquet")
    assert 0 < len(read) == len(part) < len(runs)
    assert [read["key"].tolist(), read["score"].tolist()] == [part["key"].tolist(), part["score"].tolist()]
    assert mb.leaderboard(part)["n_planned"].max() == 2
