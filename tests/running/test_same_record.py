"""On the CPU a cell's record does not depend on order, job, executor or hash seed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import discover
from msda_bench.store import Record, Store
from msda_bench.suite.cell import Cell
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite

SUITE = """
schema: 1
name: tiny
dataset: {sine: {train: 20, test: 20}}
targets: [target_0, target_1]
seeds: 2
backbone: {mlp: {hidden: [8, 4], dropout: 0.5}}
training: {epochs: 2, batch: 5, steps: 3, optimizer: {adadelta: {lr: 1.0}}}
methods:
  SRC: {scheme: pooled}
  MDMN: {scheme: mdmn, mu: 0.01}
  DARN: {discrepancy: d_A, mu: 0.01, aggregator: {sharpmax: {gamma: 1.0}}}
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "tiny.yaml"
    path.write_text(SUITE)
    return path


@pytest.fixture(scope="module")
def cells(suite: Path) -> list[Cell]:
    registry = discover()
    return list(expand(load_suite(suite, registry), registry).cells.values())


@pytest.fixture(scope="module")
def alone(cells: list[Cell]) -> dict[str, Record]:
    """The records of cells trained in separate new processes."""
    return bare(next(trainer().train([cell])) for cell in cells)


def trainer() -> Trainer:
    return Trainer(discover(), LocalFiles(), "cpu")


def bare(records: Iterable[Record]) -> dict[str, Record]:
    return {record.key: replace(record, timing={}) for record in records}


def test_records_do_not_depend_on_order_or_job(cells: list[Cell], alone: dict[str, Record]) -> None:
    shuffled = random.Random(1).sample(cells, len(cells))
    assert bare(trainer().train(shuffled)) == alone


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "hash_seed"), [("local", "1"), ("dask", "2")])
def test_records_do_not_depend_on_executor_or_hash_seed(
    suite: Path,
    alone: dict[str, Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    executor: str,
    hash_seed: str,
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", hash_seed)  # the worker process inherits it
    words = ["--device", "cpu", "--out", str(tmp_path), "--executor", executor, "--workers", "1"]
    assert main(["run", str(suite), *words]) == 0
    store = Store(tmp_path / "tiny")
    assert bare(store.results(store.keys()).values()) == alone
