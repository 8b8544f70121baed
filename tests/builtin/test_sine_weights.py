"""The authors' synthetic regression, as the suite runs it: each target ends up weighting its neighbouring sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench.data.files import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import discover
from msda_bench.store.record import Record
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite

SUITE = Path(__file__).parents[2] / "suites" / "regression" / "sine.yaml"


def train(method: str, target: str, seed: int) -> Record:
    registry = discover()
    expansion = expand(load_suite(SUITE, registry), registry)
    wanted = (method, target, seed)
    (key,) = [cell.key for cell in expansion.plan.cells if (cell.method, cell.target, cell.seed) == wanted]
    return next(Trainer(registry, LocalFiles(), "cpu").train([expansion.cells[key]]))


def error(record: Record) -> float:
    assert record.outcome is not None
    assert record.outcome.sum_squared_error is not None
    return record.outcome.sum_squared_error / record.outcome.n_test


@pytest.mark.slow
@pytest.mark.parametrize("j", range(4))
def test_the_largest_weights_fall_on_the_neighbouring_sources(j: int) -> None:
    darn, pooled = (train(method, f"target_{j}", seed=j) for method in ("DARN", "SRC"))
    assert darn.curves is not None
    weights = dict(zip([group[0] for group in darn.curves.groups], darn.curves.weights[-1], strict=True))
    largest = sorted(weights, key=lambda source: weights[source])[-2:]
    assert set(largest) == {f"source_{2 * j}", f"source_{2 * j + 1}"}
    assert sum(weights[source] for source in largest) > 0.9
    assert error(darn) < error(pooled)
