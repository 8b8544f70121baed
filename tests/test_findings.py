"""The numbers of docs/findings.md and of the README's opening are those of the recorded runs."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main

ROOT = Path(__file__).parent.parent
FINDINGS = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
DATASETS = ("amazon", "opinions", "fonts", "pacs", "music", "digits")


def rows(title: str) -> dict[str, list[str]]:
    """The cells of a section's table, by the first of each row."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## )", FINDINGS, re.MULTILINE | re.DOTALL)
    assert section is not None
    lines = re.findall(r"^\|(.*)\|$", section[1].replace("\\*", "*"), re.MULTILINE)[2:]
    return {first: rest for first, *rest in ([cell.strip() for cell in line.split("|")] for line in lines)}


@pytest.fixture(scope="module")
def standings() -> pd.DataFrame:
    return mb.across(mb.load_results(ROOT / "results" / "leaderboard")).set_index("method")


@pytest.mark.slow
def test_the_table_of_methods_is_the_recorded_one(standings):
    shown = rows("Every method on every data set")
    assert list(shown) == list(standings.index)
    for method, (rank, gain, both, *gains, _) in shown.items():
        own = standings.loc[method]
        assert rank == ("" if pd.isna(own["mean_rank"]) else f"{own['mean_rank']:.1f}"), method
        if method == "SRC":
            continue
        assert gain == f"{own['mean_gain']:+.1f}"
        assert both == ("" if own["reference"] else f"{own['n_better']} / {own['n_worse']}")
        for dataset, cell in zip(DATASETS, gains, strict=True):
            mark = {"better": "*", "worse": "!"}.get(own[f"outcome:{dataset}-small"], "")
            assert cell == f"{own[f'gain:{dataset}-small']:+.1f}{mark}", (method, dataset)


@pytest.mark.slow
def test_the_first_paragraphs_count_what_is_recorded(standings):
    ranked = standings[~standings["reference"].astype(bool)].drop("SRC")
    n, better, worse = len(ranked), ranked["n_better"].sum(), ranked["n_worse"].sum()
    single = ranked.loc[["ensemble", "best-single"], "n_worse"].sum()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for text in (readme, FINDINGS):
        words = " ".join(text.split())
        assert f"{n} methods" in words
        assert f"in {better} of {6 * n} comparisons" in words
        assert f"{worse} ({single} of these" in words
        assert f"{(ranked['n_better'] == 0).sum()} are better on none" in words
    assert (ranked["n_better"] == 6).sum() == 0


@pytest.mark.slow
def test_weights_go_with_worth_as_recorded(capsys):
    assert main(["sources", str(ROOT / "results" / "leaderboard-sources"), "--summary"]) == 0
    found = dict(re.findall(r"^(\w+ +\S+)-sources .*? ([+-][\d.]+) \(2\)$", capsys.readouterr().out, re.MULTILINE))
    recorded = {tuple(place.split()): number for place, number in found.items()}
    columns = ("opinions", "pacs-features", "music")
    shown = rows("Weights and what sources are worth")
    assert {
        (method, name): cell for method in shown for name, cell in zip(columns, shown[method], strict=True)
    } == recorded
