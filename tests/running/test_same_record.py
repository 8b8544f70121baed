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
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from tests.cli.conftest import SUITE

RANDOM = SUITE.replace("backbone: linear", "backbone: {mlp: {hidden: [8, 4], dropout: 0.5}}").replace("coral", "d_A")


def test_records_do_not_depend_on_order_job_executor_or_hash_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, registry = tmp_path / "tiny.yaml", discover()
    suite.write_text(RANDOM.replace("methods:", "methods:\n  MDMN: {scheme: mdmn, mu: 0.01}"))
    cells = list(expand(load_suite(suite, registry), registry).cells.values())
    alone = bare(next(trainer().train([cell])) for cell in cells)
    assert bare(trainer().train(random.Random(1).sample(cells, len(cells)))) == alone
    monkeypatch.setenv("PYTHONHASHSEED", "2")  # the worker process inherits it
    words = ["--device", "cpu", "--out", str(tmp_path), "--executor", "dask", "--workers", "1"]
    assert main(["run", str(suite), *words]) == 0
    store = Store(tmp_path / "tiny").refresh()
    assert bare(store.read(key) for key in store.results) == alone


def trainer() -> Trainer:
    return Trainer(discover(), LocalFiles(), "cpu")


def bare(records: Iterable[Record]) -> dict[str, Record]:
    return {record.key: replace(record, timing={}) for record in records}
