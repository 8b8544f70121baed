"""The page on adding a dataset works verbatim: it ends with valid files and a leaderboard."""

from __future__ import annotations

import csv
import re

import pytest

from msda_bench.cli.main import main
from tests.reader import Reader, blocks

BLOCKS = blocks("add-dataset.md")
(CODE,) = [block.text for block in BLOCKS if block.title.startswith("src/")]


@pytest.mark.slow
def test_following_the_page_ends_in_the_leaderboard(tmp_path):
    reader = Reader(tmp_path)
    for block in BLOCKS:
        reader.follow(block)
    assert re.findall("[0-9a-f]{64}", CODE) == re.findall("[0-9a-f]{64}", reader.said)
    assert reader.said.count("dataset letters keeps its contract") == 1
    assert "skipped" not in reader.said
    with (reader.place / "results" / "letters" / "leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["target"] for row in rows} == {"garage", "library", "average"}
    assert all(row["n_ok"] == "2" and float(row["mean"]) == 100 for row in rows)


def test_too_few_examples_end_the_run_at_its_first_cell(tmp_path, monkeypatch, install, capsys):
    reader = Reader(tmp_path / "reader")
    reader.follow(next(block for block in BLOCKS if block.title == "make_letters.py"))
    reader.run(["python", "make_letters.py"])
    monkeypatch.setenv("MSDA_BENCH_DATA", str(reader.place / "data"))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    install("msda-bench-letters", CODE)
    (suite,) = [block.text for block in BLOCKS if block.language == "yaml"]
    path = tmp_path / "suite.yaml"
    path.write_text(suite.replace("{words: 60}", "{words: 60, train: {garage: 50, default: all}}"))
    assert main(["run", str(path), "--executor", "inline", "--out", str(tmp_path / "results")]) == 2
    assert "domain 'garage' has 48 examples to train on, fewer than train.garage = 50" in capsys.readouterr().err
