"""`msda-bench report` on folders written by the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from tests.cli.conftest import toy_cell


@pytest.fixture
def store(make_results: Callable[..., Path]) -> Store:
    """A folder whose every run is ok."""
    return Store(make_results(methods=["SRC", "DARN"]))


def test_writes_the_page_and_prints_its_path(store, capsys):
    assert main(["report", str(store.folder)]) == 0
    path = store.folder / "report.html"
    assert capsys.readouterr().out == f"{path}\n"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "62.50 ± 0.76" in text
    assert main(["report", str(store.folder)]) == 0
    assert path.read_text(encoding="utf-8") == text


def test_a_folder_with_problems_has_a_page_that_names_them(store, capsys):
    keys = [toy_cell("DARN", "x", seed).key for seed in range(3)]
    store.publish(Record(keys[0], {}, "ok", Outcome(100, n_correct=1)))
    damaged = store.path(keys[1])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    store.path(keys[2]).unlink()
    assert main(["report", str(store.folder)]) == 1
    assert capsys.readouterr().err.count("\n") == 2
    text = (store.folder / "report.html").read_text(encoding="utf-8")
    assert "2 of 24 runs have no score (2 missing)" in text
    assert "2 record files damaged or in conflict" in text
    assert f"{keys[0]}.conflict-1.json" in text


def test_a_folder_without_results_is_one_clear_line(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_a_run_keeps_its_command_for_the_page(tmp_path):
    suite = str(Path(__file__).parents[2] / "suites" / "smoke.yaml")
    options = "--device cpu --executor inline --only method=SRC,seed=0 --quiet"
    for _ in range(2):
        assert main(["run", suite, "--out", str(tmp_path), *options.split()]) == 0
    assert main(["report", str(tmp_path / "smoke")]) == 1
    text = (tmp_path / "smoke" / "report.html").read_text(encoding="utf-8")
    assert text.count(f"msda-bench run {suite} --out {tmp_path}") == 1
