"""The suites of synthetic data plan what they describe, and weights find helpful and harmful sources."""

from __future__ import annotations

import pytest

from msda_bench.results.sources import Place, left_out, setting_of
from msda_bench.store.record import Record
from msda_bench.suite.expand import Expansion
from tests.builtin.suites import last_weights, loaded, trained

SOURCES = ("near", "far", "irrelevant", "flipped", "duplicate", "shifted")


@pytest.fixture(scope="module")
def stress() -> Expansion:
    return loaded("stress")[1]


def test_stress_plans_each_fault_separately(stress: Expansion) -> None:
    sources = {planned.experiment: stress.cells[planned.key].sources for planned in stress.plan.cells}
    assert sources == {
        "stress-irrelevant": ("near", "far", "irrelevant"),
        "stress-flipped": ("near", "far", "flipped"),
        "stress-duplicate": ("near", "far", "duplicate"),
        "stress-label-shift": ("near", "shifted"),
        "stress-splits": ("near", "irrelevant"),
    }


def test_splits_range_from_2_to_32_sources(stress: Expansion) -> None:
    cells = [stress.cells[one.key] for one in stress.plan.cells if one.experiment == "stress-splits"]
    parts = {2 * cell.split_sources.clusters if cell.split_sources else 2 for cell in cells}
    assert parts == {2, 4, 8, 16, 32}


def test_each_source_is_left_out_and_nothing_else_changes() -> None:
    _, expansion = loaded("stress/leave-out")
    found = {
        Place(one.experiment, one.method, one.target): setting_of(expansion.cells[one.key].to_json())
        for one in expansion.plan.cells
    }
    for method in ("SRC", "uniform", "DARN"):
        others = left_out(Place("stress-leave-out", method, "target"), found)
        assert {source: run.experiment for source, run in others.items()} == {
            source: f"stress-leave-out-without-{source}" for source in SOURCES
        }
        assert {run.method for run in others.values()} == {method}
    first, *rest = expansion.plan.experiments
    assert (first.without, {one.without for one in rest}) == (None, set(SOURCES))


@pytest.mark.slow
def test_sharpmax_drops_a_mislabelled_source_and_keeps_an_irrelevant_one(stress: Expansion) -> None:
    flipped, irrelevant = (
        last_weights(trained(stress, experiment=f"stress-{name}", method="DARN", seed=0))
        for name in ("flipped", "irrelevant")
    )
    assert flipped["flipped"] < 0.01
    assert flipped["near"] > flipped["far"] > 0.3
    assert irrelevant["irrelevant"] > 0.2


def error(record: Record) -> float:
    assert record.outcome is not None
    assert record.outcome.sum_squared_error is not None
    return record.outcome.sum_squared_error / record.outcome.n_test


@pytest.mark.slow
@pytest.mark.parametrize("j", range(4))
def test_neighbouring_sources_get_the_largest_weights_in_the_authors_regression(j: int) -> None:
    _, sine = loaded("regression/sine")
    darn, pooled = (trained(sine, method=method, target=f"target_{j}", seed=j) for method in ("DARN", "SRC"))
    weights = last_weights(darn)
    largest = sorted(weights, key=lambda source: weights[source])[-2:]
    assert set(largest) == {f"source_{2 * j}", f"source_{2 * j + 1}"}
    assert sum(weights[source] for source in largest) > 0.9
    assert error(darn) < error(pooled)
