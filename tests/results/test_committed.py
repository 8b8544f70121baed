"""The committed comparisons claim only what their numbers of pairs can show."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

COMMITTED = sorted((Path(__file__).parents[2] / "results").glob("*/comparisons.csv"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_no_comparison_is_decided_that_could_not_be_significant(path):
    rows = pd.read_csv(path)
    against_one = rows["family"] != "all_pairs"
    attainable = rows["attainable_p_holm_control"].where(against_one, rows["attainable_p_holm"])
    assert (rows["attainable_p_holm"] <= rows["alpha"])[rows["significant_holm"].notna()].all()
    assert (attainable <= rows["alpha"])[rows["significant"].notna()].all()
    assert rows["significant"].isna().any()
