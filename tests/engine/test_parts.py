"""Sources split into parts: the examples in each part, and how runs use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from msda_bench.api import Dataset, DomainData, Files, InputSpec, Task, component
from msda_bench.engine import prepare
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell
from msda_bench.suite.protocol import Splitting
from tests.engine.conftest import NoFiles, Toy

MakeCell = Callable[..., Cell]
CPU = torch.device("cpu")
FOUR = Splitting(clusters=4)


@pytest.fixture
def trainer(registry: Registry, files: NoFiles) -> Trainer:
    return Trainer(registry, files, "cpu")


def rows_of(dataset: Dataset, cell: Cell, registry: Registry) -> dict[str, Tensor]:
    """The rows of the parts of each source."""
    seen = Preparer(NoFiles(), CPU).prepare(dataset, cell).training_for(Components.of(cell, registry).scheme, cell)
    return {name: rows for name, rows in seen.rows.items() if "/" in name}


def result(record: Record) -> tuple[Any, ...]:
    return record.status, record.outcome, record.curves, record.bound, record.validation


@component
class Blobs(Dataset):
    """Two distant clusters in each domain, the first twice as large, as numbers, images or bags of words."""

    name = "blobs"
    train: int = 90
    form: str = "numbers"

    @property
    def domains(self) -> tuple[str, ...]:
        return ("a", "b", "c")

    @property
    def task(self) -> Task:
        return Task("classification", 2)

    @property
    def input(self) -> InputSpec:
        return InputSpec((3, 8, 8) if self.form == "images" else (200,), sparse=self.form == "bags")

    def load(self, domain: str, files: Files) -> DomainData:
        generator = np.random.Generator(np.random.Philox(key=ord(domain)))
        blob = np.arange(120) % 3 == 2
        x = generator.random((120, 192 if self.form == "images" else 200)).astype(np.float32)
        word = np.arange(x.shape[1])
        if self.form == "bags":
            # Texts of two kinds differ in forty words; their lengths differ more within a kind than between them.
            own = (word < 20) & ~blob[:, None] | (word >= 180) & blob[:, None]
            bags = (x < np.where(own, 0.5, 0.03)) * (1 + np.arange(120) % 7)[:, None]
            return DomainData(scipy.sparse.csr_matrix(bags.astype(np.float32)), blob.astype(np.int64))
        x += 2 * blob[:, None] * (word % 2)
        return DomainData(x.reshape(120, *self.input.shape), blob.astype(np.int64))


@pytest.mark.parametrize("form", ["numbers", "images", "bags"])
@pytest.mark.parametrize("seed", range(3))
def test_two_distant_clusters_are_separated(registry: Registry, make_cell: MakeCell, form: str, seed: int) -> None:
    dataset = Blobs(form=form)
    cell = make_cell(seed=seed, split_sources=Splitting(clusters=2))
    data = Preparer(NoFiles(), CPU).prepare(dataset, cell).training_for(Components.of(cell, registry).scheme, cell)
    for source in ("a", "b"):
        # Here the label says which blob it is; the larger one comes first.
        assert data.y[data.rows[f"{source}/0"]].unique().tolist() == [0]
        assert data.y[data.rows[f"{source}/1"]].unique().tolist() == [1]
        assert len(data.rows[f"{source}/0"]) > len(data.rows[f"{source}/1"])


@pytest.mark.parametrize("by", ["kmeans", "chance"])
@pytest.mark.parametrize("sparse", [True, False])
def test_parts_are_a_partition_of_their_source(
    registry: Registry, make_cell: MakeCell, by: str, *, sparse: bool
) -> None:
    dataset = Toy(sparse=sparse)
    found = rows_of(dataset, make_cell(split_sources=Splitting(clusters=4, by=by)), registry)
    assert list(found) == [f"{source}/{part}" for source in "ab" for part in range(4)]
    for source, start in (("a", 0), ("b", 60)):
        parts = [found[f"{source}/{part}"].tolist() for part in range(4)]
        assert sorted(chain.from_iterable(parts)) == list(range(start, start + 60))
        assert all(part == sorted(part) and len(part) >= 10 for part in parts)
        assert by == "kmeans" or {len(part) for part in parts} == {15}


def test_parts_depend_only_on_split_and_source(registry: Registry, make_cell: MakeCell) -> None:
    def parts(dataset: Toy, cell: Cell) -> dict[str, list[int]]:
        return {name: rows.tolist() for name, rows in rows_of(dataset, cell, registry).items()}

    cell = make_cell(split_sources=FOUR)
    found = parts(Toy(), cell)
    assert found == parts(Toy(), make_cell("MDMN", split_sources=FOUR))
    for poisoned in "abc":
        assert found == parts(Toy(poison=poisoned), cell)
    alone = parts(Toy(), replace(cell, sources=("a",)))
    assert alone == {name: rows for name, rows in found.items() if name.startswith("a/")}
    assert found != parts(Toy(), make_cell(split_sources=FOUR, seed=1))
    assert found != parts(Toy(), make_cell(split_sources=Splitting(clusters=4, by="chance")))


def test_sparse_and_dense_bags_are_split_identically(
    registry: Registry, make_cell: MakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU holds bags of words as dense rows."""
    cell = make_cell(split_sources=FOUR)
    sparse = rows_of(Blobs(form="bags"), cell, registry)
    monkeypatch.setattr(prepare, "as_examples", lambda inputs, _: torch.from_numpy(inputs.toarray()))
    dense = rows_of(Blobs(form="bags"), cell, registry)
    assert list(sparse) == list(dense)
    assert all(torch.equal(sparse[part], dense[part]) for part in sparse)


@pytest.mark.parametrize("method", ["DARN", "MDAN", "MDMN", "MMD"])
def test_methods_train_on_the_parts(trainer: Trainer, make_cell: MakeCell, method: str) -> None:
    fine, coarse = trainer.train([make_cell(method, epochs=6, split_sources=FOUR), make_cell(method, epochs=6)])
    assert fine.status == "ok"
    assert fine.outcome is not None
    assert fine.outcome.n_correct is not None
    assert fine.outcome.n_correct > 55
    assert fine.curves is not None
    assert fine.curves.groups == [[f"{source}/{part}"] for source in "ab" for part in range(4)]
    assert [len(weights) for weights in fine.curves.weights] == [8] * 6
    assert sum(fine.curves.weights[-1]) == pytest.approx(1, abs=1e-5)
    assert fine.timing["steps"] == coarse.timing["steps"]
    assert (fine.cell["split_sources"], fine.target_labels) == ({"clusters": 4, "by": "kmeans"}, False)
    assert "split_sources" not in coarse.cell


def test_the_effective_sample_size_accounts_for_part_sizes(
    trainer: Trainer, registry: Registry, make_cell: MakeCell
) -> None:
    cell = make_cell("MDAN", split_sources=FOUR)
    (record,) = trainer.train([cell])
    assert record.curves is not None
    sizes = [len(rows) for rows in rows_of(Toy(), cell, registry).values()]
    assert len(set(sizes)) > 1
    weights = record.curves.weights[-1]
    expected = 1 / sum(weight**2 / size for weight, size in zip(weights, sizes, strict=True))
    assert record.bound["effective_sample_size"] == pytest.approx(expected, rel=1e-4)
    assert record.bound["weights_norm"] == pytest.approx(np.linalg.norm(weights), rel=1e-4)
    assert record.bound["effective_sample_size"] <= 120 * (1 + 1e-9)


@pytest.mark.parametrize("method", ["DARN", "MDMN", "SRC", "DANN", "TAR"])
def test_one_cluster_equals_the_whole_source_bit_for_bit(trainer: Trainer, make_cell: MakeCell, method: str) -> None:
    whole, one = trainer.train([make_cell(method), make_cell(method, split_sources=Splitting(clusters=1))])
    assert result(one) == result(whole)


@pytest.mark.parametrize("method", ["SRC", "DANN", "TAR"])
def test_splitting_sources_does_not_change_a_pool(trainer: Trainer, make_cell: MakeCell, method: str) -> None:
    whole, split = trainer.train([make_cell(method), make_cell(method, split_sources=FOUR)])
    assert result(split) == result(whole)


def test_a_record_does_not_depend_on_order_or_other_cells(
    registry: Registry, files: NoFiles, make_cell: MakeCell
) -> None:
    cells = [
        make_cell(split_sources=FOUR),
        make_cell(split_sources=Splitting(clusters=2)),
        make_cell(),
        make_cell("MDMN"),
    ]
    there, back = (list(Trainer(registry, files, "cpu").train(order)) for order in (cells, cells[::-1]))
    assert list(map(result, there)) == list(map(result, back[::-1]))


def test_runs_with_equal_numbers_of_parts_train_in_a_stack(
    registry: Registry, files: NoFiles, make_cell: MakeCell
) -> None:
    cells = [make_cell(seed=seed, split_sources=FOUR, epochs=1) for seed in (0, 1)]
    odd = make_cell(split_sources=Splitting(clusters=2), epochs=1)
    together = {record.key: record for record in Trainer(registry, files, "cpu", stack=4).train([*cells, odd])}
    assert [together[cell.key].provenance["stack"] for cell in (*cells, odd)] == [2, 2, 1]
    for cell in cells:
        (alone,) = Trainer(registry, files, "cpu").train([cell])
        one, other = alone.curves, together[cell.key].curves
        assert one is not None
        assert other is not None
        assert one.groups == other.groups
        torch.testing.assert_close(torch.tensor(one.weights), torch.tensor(other.weights), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("method", ["DARN", "MDMN"])
def test_sixty_four_sources_can_be_trained(
    trainer: Trainer, registry: Registry, make_cell: MakeCell, method: str
) -> None:
    cell = make_cell(method, dataset={"train": 140}, batch=4, epochs=1, split_sources=Splitting(clusters=32))
    run = Run(cell, Components.of(cell, registry), Preparer(NoFiles(), CPU).prepare(Toy(train=140), cell))
    assert len(run.groups) == 64
    assert min(size for (size,) in run.sizes) >= 4
    assert run.steps == 140 // 4
    (record,) = trainer.train([cell])
    assert record.status == "ok"
    assert record.curves is not None
    assert len(record.curves.weights[-1]) == 64
