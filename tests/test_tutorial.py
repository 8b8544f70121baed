"""The tutorial works verbatim: its code is installed and its commands run in order, outside the source tree."""

from __future__ import annotations

import csv

import pytest

from tests.reader import Reader, blocks

BLOCKS = blocks("tutorial.md")


def test_this_test_follows_every_block_of_the_page():
    kinds = {(block.language, bool(block.title)) for block in BLOCKS}
    assert kinds == {("console", False), ("python", True), ("yaml", True), ("text", True)}


@pytest.mark.slow
def test_following_the_page_ends_in_the_leaderboard(tmp_path):
    reader = Reader(tmp_path)
    for block in BLOCKS:
        reader.follow(block)
    assert reader.said.count("aggregator steady keeps its contract") == 2
    with (reader.place / "results" / "fonts" / "leaderboard.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "Steady" and row["target"] == "cm_maths"]
    (row,) = rows
    assert row["n_ok"] == "2"
    assert "msda-bench-steady 1.0.0" in row["distributions"]


def test_the_mistake_is_reported_as_the_page_says(install):
    from msda_bench.plugins import discover
    from msda_bench.testing import examine

    (code,) = [block.text for block in BLOCKS if block.language == "python"]
    install("msda-bench-steady", code.replace("softmax(-self", "softmax(self"))
    component = discover().entry("aggregator", "steady").create({})
    broken = [finding for finding in examine(component) if finding.outcome == "broken"]
    reported = "".join(f"  broken   {finding.clause}\n           {finding.reason}\n" for finding in broken)
    assert [reported] == [block.text for block in BLOCKS if block.language == "text"]
