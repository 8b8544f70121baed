"""The data that runs train on: sizes, the transductive protocol, shuffled labels and features by domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from msda_bench.api import DataError, DomainData, Files, Inputs
from msda_bench.engine.prepare import Prepared, Preparer
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.protocol import Splitting
from msda_bench_builtin.schemes import Adapt, TargetOnly
from tests.engine.conftest import METHODS, NoFiles, Toy, train_with_weights

MakeCell = Callable[..., Cell]
TRANSDUCTIVE = {"protocol": "transductive"}
MIXED = {"train": {"a": 30, "default": 0.5}, "target_train": 20, "test": 0.1}


def prepare(cell: Cell, dataset: Toy) -> Prepared:
    return Preparer(NoFiles(), torch.device("cpu")).prepare(dataset, cell)


def test_sizes_can_be_set_by_domain_and_for_the_target(make_cell: MakeCell) -> None:
    prepared = prepare(make_cell(), Toy(**MIXED))
    assert {name: len(rows) for name, rows in prepared.training.rows.items()} == {"a": 30, "b": 75, "c": 20}
    assert len(prepared.test.y) == 15


def test_runs_of_different_sizes_train_together_as_alone(registry: Registry, make_cell: MakeCell) -> None:
    """They fit in one stack because they differ only in the examples to draw from and have equal lengths."""
    cells = [make_cell(dataset=MIXED, seed=seed, target=target) for seed in (0, 1) for target in ("b", "c")]
    cells = [replace(cell, training=cell.training.model_copy(update={"epochs": 1, "steps": 20})) for cell in cells]
    alone, together = (
        {one.key: one for one in Trainer(registry, NoFiles(), "cpu", stack).train(cells)} for stack in (1, 4)
    )
    for key, record in alone.items():
        assert record.status == "ok"
        risks = [torch.tensor(found[key].curves.risks) for found in (alone, together)]
        torch.testing.assert_close(*risks, rtol=2e-4, atol=2e-5)


def test_a_transductive_run_trains_on_its_test_examples_without_their_labels(make_cell: MakeCell) -> None:
    prepared, cell = prepare(make_cell(), Toy(sparse=False, **TRANSDUCTIVE)), make_cell()
    data = prepared.training_for(Adapt(), cell)
    assert torch.equal(data.x[data.rows["c"]], prepared.test.x)
    assert len(prepared.test.y) == 150
    assert data.y[data.rows["c"]].unique().tolist() == [-1]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "TAR"])
def test_test_labels_do_not_affect_a_transductive_run(
    registry: Registry, files: NoFiles, make_cell: MakeCell, method: str
) -> None:
    clean, poisoned = (
        train_with_weights(registry, files, make_cell(method, mu=0.001, epochs=1, dataset=TRANSDUCTIVE | more))
        for more in ({}, {"poison": "c"})
    )
    assert clean["outcome"] != poisoned["outcome"]
    for seen in ("weights", "curves", "bound", "validation"):
        assert clean[seen] == poisoned[seen], seen


def test_no_scheme_gets_labels_of_a_transductive_test(make_cell: MakeCell) -> None:
    prepared = prepare(make_cell(), Toy(**TRANSDUCTIVE))
    for scheme, cell in ((TargetOnly(), make_cell()), (Adapt(), make_cell(labelled_target=3))):
        with pytest.raises(DataError, match=r"^c: no method may see labels of the test; use `protocol: held_out`$"):
            prepared.training_for(scheme, cell)


def test_requests_beyond_the_training_examples_are_refused(make_cell: MakeCell) -> None:
    prepared = prepare(make_cell(), Toy(train=0.1))
    with pytest.raises(DataError, match="labelled_target is 16, but it trains on 15 examples"):
        prepared.training_for(Adapt(), make_cell(labelled_target=16))
    with pytest.raises(DataError, match="split_sources needs 20 training examples of 'a', which has 15; set a larger"):
        prepared.training_for(Adapt(), make_cell(split_sources=Splitting(clusters=2)))


def test_only_the_named_source_has_shuffled_labels(make_cell: MakeCell) -> None:
    def labels(seed: int, **params: Any) -> dict[str, list[int]]:
        prepared = prepare(make_cell(seed=seed), Toy(sparse=False, **params))
        found = {name: prepared.training.y[rows].tolist() for name, rows in prepared.training.rows.items()}
        return found | {"held out": prepared.held_out[0].y.tolist(), "test": prepared.test.y.tolist()}

    shuffle = {"corrupt": {"source": "a", "labels": "shuffle"}}
    for seed in (0, 1):
        clean, corrupt = labels(seed), labels(seed, **shuffle)
        assert corrupt == labels(seed, **shuffle)
        for part in ("a", "held out"):
            assert corrupt[part] != clean[part]
            assert sorted(corrupt[part]) == sorted(clean[part])
        assert [corrupt[part] for part in ("b", "c", "test")] == [clean[part] for part in ("b", "c", "test")]
    assert labels(0, corrupt={"source": "c", "labels": "shuffle"}) == labels(0)


class ByDomain(Toy):
    """Learns each domain's mean."""

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        assert {name: len(x) for name, x in train.items()} == {"a": 60, "b": 60, "c": 60}
        means = {name: np.mean(x, axis=0) for name, x in train.items()}
        return lambda domain, x: x - means[domain]


def test_a_fitted_feature_map_gets_the_domain_and_no_test_input(make_cell: MakeCell) -> None:
    plain, centred = (prepare(make_cell(), kind(sparse=False)) for kind in (Toy, ByDomain))
    x, known = plain.training.x, centred.training
    means = {name: x[rows].mean(0) for name, rows in known.rows.items()}
    for name, rows in known.rows.items():
        torch.testing.assert_close(known.x[rows], x[rows] - means[name])
    torch.testing.assert_close(centred.test.x, plain.test.x - means["c"])
    torch.testing.assert_close(centred.held_out[1].x, plain.held_out[1].x - means["b"])


class Takes(Toy):
    """Row i is the same recording in every domain."""

    shared_groups = True

    def load(self, domain: str, files: Files) -> DomainData:
        data = super().load(domain, files)
        return replace(data, x=np.repeat(np.arange(150, dtype=np.float32)[:, None], 30, 1), groups=np.arange(150))


def test_no_recording_is_seen_and_tested(make_cell: MakeCell) -> None:
    prepared = prepare(make_cell(), Takes(sparse=False, train=0.5, test=0.2))
    assert isinstance(prepared.training.x, torch.Tensor)
    assert isinstance(prepared.test.x, torch.Tensor)
    trained, tested = set(prepared.training.x[:, 0].tolist()), set(prepared.test.x[:, 0].tolist())
    held_out = {number for source in prepared.held_out for number in source.x[:, 0].tolist()}  # type: ignore[index]
    assert [len(trained), len(tested), len(held_out)] == [75, 30, 30]
    assert len(trained | tested | held_out) == 135


def test_validators_are_refused_if_a_source_holds_nothing_out(registry: Registry, make_cell: MakeCell) -> None:
    cell = make_cell(dataset={"train": {"a": 150, "default": 60}}, epochs=1)
    what = r"^dataset toy: source_accuracy needs held-out examples of the sources, and none of 'a' are left; set a sma"
    with pytest.raises(DataError, match=what):
        next(iter(Trainer(registry, NoFiles(), "cpu").train([cell])))
    of_target = tuple(Ref("validator", name, 1, "msda-bench", {}) for name in ("entropy", "bnm"))
    found = next(iter(Trainer(registry, NoFiles(), "cpu").train([replace(cell, validators=of_target)])))
    assert set(found.validation) == {"entropy", "bnm"}
