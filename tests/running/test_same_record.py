"""On the CPU a cell's record depends on no order, job, executor or hash seed, nor on what another cell changes."""

import random
from dataclasses import replace

from vandal_training import DEEDS, cell

from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.executors import CellFinished, Interrupt, Noted, Setup, Store
from msda_bench.plugins import discover
from msda_bench.running.local import LocalExecutor
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from tests.cli.conftest import SUITE
from tests.engine.conftest import result
from tests.running.conftest import job_of


def test_records_do_not_depend_on_order_job_executor_or_hash_seed(tmp_path, monkeypatch):
    suite, registry = tmp_path / "tiny.yaml", discover()
    text = SUITE.replace("backbone: linear", "backbone: {mlp: {hidden: [8, 4], dropout: 0.5}}").replace("coral", "d_A")
    suite.write_text(text.replace("methods:", "methods:\n  MDMN: {scheme: mdmn, mu: 0.01}"))
    cells = list(expand(load_suite(suite, registry), registry).cells.values())
    alone = bare(next(trainer().train([cell])) for cell in cells)
    assert bare(trainer().train(random.Random(1).sample(cells, len(cells)))) == alone
    monkeypatch.setenv("PYTHONHASHSEED", "2")  # the worker process inherits it
    words = ["--device", "cpu", "--out", str(tmp_path), "--executor", "dask", "--workers", "1"]
    assert main(["run", str(suite), *words]) == 0
    store = Store(tmp_path / "tiny").refresh()
    assert bare(store.read(key) for key in store.results) == alone


def trainer():
    return Trainer(discover(), LocalFiles(), "cpu")


def bare(records):
    return {record.key: replace(record, timing={}) for record in records}


def run_worker(folder, *cells):
    """The records of cells trained in sequence by one worker."""
    store, executor = Store.create(folder), LocalExecutor(setup=Setup("cpu", trainer="vandal_training:make"))
    return store, list(executor.run(list(map(job_of, cells)), store, Interrupt()))


def test_changes_by_a_component_are_reported_and_do_not_affect_the_next_cells(tmp_path):
    in_training = ("torch's number of threads", "torch's float32 matmul precision", "torch's default dtype")
    deeds = [*DEEDS, *in_training]
    vandals = [cell(seed, validator=deed) for seed, deed in enumerate(DEEDS)]
    vandals += [cell(seed, scheme=deed) for seed, deed in enumerate(in_training)]
    # With gradients disabled training fails.
    failing, honest = cell(3, scheme="torch's gradient mode"), cell(0)
    alone, events = run_worker(tmp_path / "alone", honest)
    assert not [event for event in events if isinstance(event, Noted)]
    mixed, events = run_worker(tmp_path / "mixed", *vandals, failing, honest)
    statuses = [event.status for event in events if isinstance(event, CellFinished)]
    assert statuses == ["ok"] * len(vandals) + ["failed", "ok"]
    records = [mixed.refresh().read(vandal.key) for vandal in vandals]
    assert [record.provenance["put_back"] for record in records] == [[deed] for deed in deeds]
    after, expected = mixed.read(honest.key), alone.refresh().read(honest.key)
    assert result(after) == result(expected)
    assert "put_back" not in after.provenance
    notes = [event.line for event in events if isinstance(event, Noted)]
    assert len(notes) == len(vandals)
    for deed in deeds:
        assert any(f"vandal) changed {deed}" in line or f"vandal, witness) changed {deed}" in line for line in notes)
    failure = mixed.read(failing.key)
    assert "a component changed torch's gradient mode; it was put back" in failure.provenance["traceback"]
