"""Kept arrays are those that were tested, and do not depend on stacking."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell
from tests.engine.conftest import NoFiles


def arrays(record: Record, name: str) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(record.arrays[name]), allow_pickle=False) as found:
        return dict(found)


def test_kept_arrays_are_equal_alone_and_stacked(
    registry: Registry, files: NoFiles, make_cell: Callable[..., Cell]
) -> None:
    keep = ("predictions", "features", "weights")
    cells = [replace(make_cell("DARN", epochs=1, seed=seed), keep=keep) for seed in (0, 1)]
    alone = {one.key: one for one in Trainer(registry, files, "cpu").train(cells)}
    stacked = {one.key: one for one in Trainer(registry, files, "cpu", stack=2).train(cells)}
    assert {one.provenance["stack"] for one in stacked.values()} == {2}
    for cell in cells:
        one, other = alone[cell.key], stacked[cell.key]
        kept = arrays(one, "predictions")
        assert one.outcome is not None
        assert (kept["label"] == kept["predicted"]).sum() == one.outcome.n_correct
        for name in keep:
            ours, theirs = arrays(one, name), arrays(other, name)
            assert ours.keys() == theirs.keys()
            assert {key: each.shape for key, each in ours.items()} == {key: each.shape for key, each in theirs.items()}
        np.testing.assert_allclose(
            arrays(one, "features")["features"], arrays(other, "features")["features"], atol=0.05
        )
    first, second = (arrays(stacked[cell.key], "weights") for cell in cells)
    assert any((first[name] != second[name]).any() for name in first)
