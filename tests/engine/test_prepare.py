"""The label firewall, and the data that cells share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch

from msda_bench.api import DataError, Inputs
from msda_bench.engine.prepare import Preparer
from msda_bench.functional import SparseRows
from msda_bench.suite.cell import Cell
from msda_bench_builtin.schemes import Adapt, TargetOnly
from tests.engine.conftest import NoFiles, Toy

CPU = torch.device("cpu")


@pytest.fixture
def preparer(files: NoFiles) -> Preparer:
    return Preparer(files, CPU)


def test_training_sees_source_labels_and_none_of_the_target(preparer: Preparer, make_cell: Callable[..., Cell]) -> None:
    data = preparer.prepare(Toy(), make_cell()).training_for(Adapt(), make_cell())
    assert data.y[:120].unique().tolist() == [0, 1]
    assert data.y[120:].tolist() == [-1] * 60
    assert isinstance(data.x, SparseRows)
    assert len(data.x) == 180
    regression = preparer.prepare(Toy(regression=True), make_cell()).training_for(Adapt(), make_cell())
    assert regression.y[120:].isnan().all()


def test_only_the_oracle_gets_the_targets_training_labels(preparer: Preparer, make_cell: Callable[..., Cell]) -> None:
    prepared = preparer.prepare(Toy(), make_cell())
    oracle = prepared.training_for(TargetOnly(), make_cell())
    assert set(oracle.y[120:].tolist()) == {0, 1}
    assert prepared.training_for(Adapt(), make_cell()).y[120:].unique().tolist() == [-1]


def test_training_test_and_held_out_examples_are_disjoint(preparer: Preparer, make_cell: Callable[..., Cell]) -> None:
    prepared = preparer.prepare(Toy(sparse=False), make_cell())
    assert len(prepared.test.y) == 90
    assert [len(source.y) for source in prepared.held_out] == [90, 90]


def test_a_split_is_prepared_once(preparer: Preparer, make_cell: Callable[..., Cell]) -> None:
    first = preparer.prepare(Toy(), make_cell("DARN"))
    assert preparer.prepare(Toy(), make_cell("SRC")) is first
    assert preparer.prepare(Toy(), make_cell(seed=1)) is not first


class Centred(Toy):
    """Learns a mean, and keeps its inputs."""

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        mean = np.concatenate(list(train.values())).mean(0)
        assert [len(part) for part in train.values()] == [60, 60, 60]
        return lambda _, x: x - mean


def test_features_are_fitted_on_training_inputs_and_applied_to_all(
    preparer: Preparer, make_cell: Callable[..., Cell]
) -> None:
    prepared = preparer.prepare(Centred(sparse=False), make_cell())
    assert isinstance(prepared.training.x, torch.Tensor)
    assert isinstance(prepared.test.x, torch.Tensor)
    assert prepared.training.x.mean(0).abs().max() < 1e-6
    assert prepared.test.x.min() < 0


def test_texts_without_a_fitted_map_are_refused(files: NoFiles, make_cell: Callable[..., Cell]) -> None:
    class Wordy(Toy):
        def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
            return lambda _, x: np.array([str(row) for row in x])

    with pytest.raises(DataError, match="must map them to numbers"):
        Preparer(files, CPU).prepare(Wordy(sparse=False), make_cell())
