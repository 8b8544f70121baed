"""`msda-bench weights` on folders written by the store."""

from __future__ import annotations

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Curves, Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell


@pytest.fixture
def folder(tmp_path):
    """`folder(groups, weights)`: a folder with two runs of a method."""

    def build(groups, weights, **cell):
        table = Experiment(
            "toy",
            "toy",
            "classification",
            ("t",),
            (Method("DARN", reference=False, recipe="", distributions=()),),
            (0, 1),
        )
        keys = ["0" * 64, "1" * 64]
        store = Store.create(tmp_path / "results")
        store.write_plan(
            Plan("toy", (table,), tuple(PlannedCell("toy", "DARN", "t", s, key) for s, key in enumerate(keys)))
        )
        flat = [[0.0] * len(groups)] * 2
        for key in keys:
            curves = Curves(groups, flat, flat, [weights, weights])
            store.publish(Record(key, cell, "ok", Outcome(10, n_correct=5), curves))
        return store.folder

    return build


def test_each_experiment_has_one_reproducible_figure(folder, capsys):
    where = folder([["a"], ["b"]], [0.75, 0.25])
    assert main(["weights", str(where)]) == 0
    path = where / "weights-toy.svg"
    assert capsys.readouterr().out == f"{path}\n"
    before = path.read_bytes()
    for text in (b"DARN", b"0.75", b"0.25", b">a<", b">b<"):
        assert text in before
    assert main(["weights", str(where)]) == 0
    assert path.read_bytes() == before


def test_parts_of_a_split_source_are_summed_in_a_second_figure(folder):
    split = {"sources": ["a", "b"], "split_sources": {"clusters": 2, "by": "kmeans"}}
    where = folder([["a/0"], ["a/1"], ["b/0"], ["b/1"]], [0.1, 0.2, 0.3, 0.4], **split)
    assert main(["weights", str(where)]) == 0
    whole = (where / "weights-toy-by-domain.svg").read_text()
    assert ">0.30<" in whole
    assert ">0.70<" in whole


def test_missing_weights_are_reported(folder, capsys):
    where = folder([["a", "b"]], [1.0])
    assert main(["weights", str(where)]) == 0
    assert capsys.readouterr().out == "no method here weighs single sources, or none has run yet\n"


def test_an_unwritable_file_is_named(folder, capsys):
    where = folder([["a"], ["b"]], [0.75, 0.25])
    (where / "weights-toy.svg").mkdir()
    assert main(["weights", str(where)]) == 2
    assert "weights-toy.svg: cannot be written" in capsys.readouterr().err
