"""The stress suites: they ask what they say they ask, and the sources that do harm are found where they can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench.data.files import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry, discover
from msda_bench.results.sources import Place, left_out, setting_of
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.load import load_suite

SUITES = Path(__file__).parents[2] / "suites"
SOURCES = ("near", "far", "irrelevant", "flipped", "duplicate", "shifted")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return discover()


@pytest.fixture(scope="module")
def stress(registry: Registry) -> Expansion:
    return expand(load_suite(SUITES / "stress.yaml", registry), registry)


def test_stress_asks_for_every_fault_alone(stress: Expansion) -> None:
    sources = {planned.experiment: stress.cells[planned.key].sources for planned in stress.plan.cells}
    assert sources == {
        "stress-irrelevant": ("near", "far", "irrelevant"),
        "stress-flipped": ("near", "far", "flipped"),
        "stress-duplicate": ("near", "far", "duplicate"),
        "stress-label-shift": ("near", "shifted"),
        "stress-splits": ("near", "irrelevant"),
    }


def test_splits_go_from_2_to_32_sources(stress: Expansion) -> None:
    cells = [stress.cells[one.key] for one in stress.plan.cells if one.experiment == "stress-splits"]
    parts = {2 * cell.split_sources.clusters if cell.split_sources else 2 for cell in cells}
    assert parts == {2, 4, 8, 16, 32}


def test_each_source_is_left_out_and_nothing_else_changes(registry: Registry) -> None:
    expansion = expand(load_suite(SUITES / "stress" / "leave-out.yaml", registry), registry)
    found = {
        Place(one.experiment, one.method, one.target): setting_of(expansion.cells[one.key].to_json())
        for one in expansion.plan.cells
    }
    for method in ("SRC", "uniform", "DARN"):
        others = left_out(Place("stress-all", method, "target"), found)
        assert {source: run.experiment for source, run in others.items()} == {
            source: f"stress-without-{source}" for source in SOURCES
        }
        assert {run.method for run in others.values()} == {method}


@pytest.mark.slow
def test_sharpmax_drops_the_mislabelled_source_and_keeps_an_irrelevant_one(
    stress: Expansion, registry: Registry
) -> None:
    weights = {}
    for name in ("flipped", "irrelevant"):
        wanted = (f"stress-{name}", "DARN", 0)
        (key,) = [one.key for one in stress.plan.cells if (one.experiment, one.method, one.seed) == wanted]
        record = next(Trainer(registry, LocalFiles(), "cpu").train([stress.cells[key]]))
        assert record.curves is not None
        weights[name] = dict(zip((group[0] for group in record.curves.groups), record.curves.weights[-1], strict=True))
    assert weights["flipped"]["flipped"] < 0.01
    assert weights["flipped"]["near"] > weights["flipped"]["far"] > 0.3
    assert weights["irrelevant"]["irrelevant"] > 0.2
