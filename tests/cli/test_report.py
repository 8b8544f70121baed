"""`report` on folders that the store has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

KEYS = {(name, seed): f"{index:x}{seed:x}" * 32 for index, name in enumerate("ab") for seed in range(6)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder whose every run is ok."""
    methods = (Method("a", False, "", ()), Method("b", False, "", ()))
    experiment = Experiment("toy", "toy", "classification", ("x",), methods, tuple(range(6)))
    cells = tuple(PlannedCell("toy", name, "x", seed, key) for (name, seed), key in KEYS.items())
    store = Store.create(tmp_path / "results")
    store.write_plan(Plan("suite", (experiment,), cells))
    for (name, seed), key in KEYS.items():
        store.publish(Record(key, {}, "ok", Outcome(100, n_correct=50 + seed + 10 * (name == "b"))))
    return store


def test_writes_the_page_and_says_where(store, capsys):
    assert main(["report", str(store.folder)]) == 0
    path = store.folder / "report.html"
    assert capsys.readouterr().out == f"{path}\n"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "62.50 ± 0.76" in text
    assert main(["report", str(store.folder)]) == 0
    assert path.read_text(encoding="utf-8") == text


def test_a_folder_with_problems_has_a_page_that_names_them(store, capsys):
    store.publish(Record(KEYS["a", 1], {}, "ok", Outcome(100, n_correct=1)))
    damaged = store.path(KEYS["b", 2])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    store.path(KEYS["b", 3]).unlink()
    assert main(["report", str(store.folder)]) == 1
    assert capsys.readouterr().err.count("\n") == 2
    text = (store.folder / "report.html").read_text(encoding="utf-8")
    assert "2 of 12 runs have no score (2 missing)" in text
    assert "2 record files damaged or in conflict" in text
    assert f"{KEYS['a', 1]}.conflict-1.json" in text


def test_what_is_no_result_folder_is_one_clear_line(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_a_run_keeps_its_command_for_the_page(tmp_path):
    suite = str(Path(__file__).parents[2] / "suites" / "smoke.yaml")
    words = [
        "run",
        suite,
        "--out",
        str(tmp_path),
        "--device",
        "cpu",
        "--executor",
        "inline",
        "--only",
        "method=SRC,seed=0",
    ]
    for _ in range(2):
        assert main([*words, "--quiet"]) == 0
    assert main(["report", str(tmp_path / "smoke")]) == 1
    text = (tmp_path / "smoke" / "report.html").read_text(encoding="utf-8")
    assert text.count(f"msda-bench run {suite} --out {tmp_path}") == 1
