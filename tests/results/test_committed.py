"""The committed comparisons claim only what their numbers of pairs can show."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

COMMITTED = sorted((Path(__file__).parents[2] / "results").glob("*/comparisons.csv"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_no_comparison_is_decided_that_could_not_be_significant(path):
    rows = pd.read_csv(path)
    able, corrected = rows["attainable_p"] <= rows["alpha"], rows["p_holm"] <= rows["alpha"]
    assert able[rows["outcome"].isin(["better", "worse"]) | (rows["reason"] == "not significant")].all()
    assert rows["outcome"].isin(["better", "worse"]).equals(corrected)
    assert ((rows["outcome"] == "same") == (rows["n_zero"] == rows["n_paired"]) & (rows["n_paired"] > 0)).all()
    assert (rows["reason"].notna() == (rows["outcome"] == "unknown")).all()
    assert rows.loc[~able, "detectable"].isna().all()
