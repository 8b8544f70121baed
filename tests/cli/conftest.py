"""Result folders written by the store, with real cells, so that their definitions can be compared."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun
from msda_bench.suite.protocol import Optimizer, Sgd, TrainingConfig
from msda_bench.suite.run_spec import ComponentSpec, RunSpec

METHODS = ("SRC", "DARN", "TAR", "OTHER")
TARGETS = ("x", "y")
SOUND = {"device": "cpu", "numba": "0.61", "torch": "2.11", "stack": 1, "distributions": {"msda-bench": "0.1.0"}}


def toy_cell(method, target, seed):
    """A cell of the toy experiment."""
    return RunSpec(
        dataset=ComponentSpec("dataset", "toy", 1, "msda-bench", {"train": 100}),
        fingerprint="0" * 64,
        target=target,
        sources=tuple(name for name in TARGETS if name != target),
        backbone=ComponentSpec("backbone", "mlp", 1, "msda-bench", {"hidden": [4]}),
        scheme=ComponentSpec(
            "scheme", {"SRC": "pooled", "TAR": "target_only"}.get(method, "adapt"), 1, "msda-bench", {}
        ),
        discrepancy=None,
        aggregator=ComponentSpec("aggregator", "sharpmax", 1, "msda-bench", {"gamma": 0.9})
        if method == "DARN"
        else None,
        mu=0.01,
        training=TrainingConfig(epochs=2, batch=5, optimizer=Optimizer(sgd=Sgd(lr=0.1)), epoch="scheme"),
        validators=(),
        seed=seed,
    )


SUITE = """
schema: 1
name: tiny
dataset: {sine: {train: 20, test: 20}}
targets: [target_0, target_1]
seeds: 2
backbone: linear
training: {epochs: 2, batch: 5, steps: 3, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  DARN: {discrepancy: coral, mu: 0.01, aggregator: {sharpmax: {gamma: 1.0}}}
"""
CELLS = 8
INLINE = ("run", "tiny.yaml", "--device", "cpu", "--executor", "inline")
ENTRY = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()"]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """An empty working folder with `tiny.yaml`, a suite that takes a second."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SUITE)
    return tmp_path


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):  # a tester's wish for colours is not for the text tested here
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def said(capsys):
    """`said("data list")`: the exit code of a command, and the lines on stdout and stderr."""

    def run(words):
        code = main(shlex.split(words))
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


def as_it_is(thing, *_):
    return thing


@pytest.fixture
def make_results(tmp_path, monkeypatch):
    """`make_results(name, ...)`: a result folder of that name with a record for every run.

    `cells` and `records` change a run's cell and record: functions of (cell or record, method, target, seed); a record
    that becomes None is missing.
    """

    def make(name="results", *, methods=METHODS[:3], seeds=range(6), cells=as_it_is, records=as_it_is, table=None):
        rows = tuple(Method(method, method == "TAR", f"the {method}", ("msda-bench 0.1.0",)) for method in methods)
        experiment = replace(Experiment("toy", "toy", "classification", TARGETS, rows, tuple(seeds)), **(table or {}))
        monkeypatch.setattr(os, "fsync", lambda _: None)  # nothing is lost here but time
        store = Store.create(tmp_path / name)
        planned = []
        for run in ((row.name, target, seed) for row in rows for target in TARGETS for seed in experiment.seeds):
            cell = cells(toy_cell(*run), *run)
            planned.append(PlannedRun(experiment.name, *run, cell.key))
            outcome = Outcome(100, n_correct=50 + METHODS.index(run[0]) * 10 + run[2])
            record = records(Record(cell.key, cell.to_json(), "ok", outcome, provenance=SOUND), *run)
            if record is not None:
                store.publish(record)
        store.write_plan(Plan("toy-suite", (experiment,), tuple(planned)))
        return store.folder

    return make
