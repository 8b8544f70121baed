"""A store in a temporary folder, records for it, and processes that share it."""

import hashlib
import os

import numpy as np
import pytest

from msda_bench.store import Curves, Outcome, Record, Store
from msda_bench.store.arrays import pack
from msda_bench.suite.run_spec import canonical_json


def make_record(seed=0, **fields):
    cell = {"dataset": {"name": "toy"}, "engine": 1, "seed": seed, "mu": 0.01, "target": "bücher"}
    defaults = {
        "key": hashlib.sha256(canonical_json(cell).encode()).hexdigest(),
        "cell": cell,
        "status": "ok",
        "outcome": Outcome(100, 80),
        "curves": Curves([["a"], ["b"]], [[0.5, 0.25]], [[0.1, 1e-9]], [[0.5, 0.5]]),
        "bound": {"weights_norm": 0.7},
        "timing": {"train": 1.5},
        "provenance": {"python": "3.11"},
    }
    return Record(**(defaults | fields))


def kept_with(value, **fields):
    """A record with kept predictions."""
    data = pack({"label": np.array([value])})
    return make_record(saved={"predictions": hashlib.sha256(data).hexdigest()}, arrays={"predictions": data}, **fields)


def forked(*acts):
    """The exit codes of processes that do these things at once, negative for a signal."""
    pids = []
    for act in acts:
        pid = os.fork()
        if not pid:
            code = 99
            try:
                code = act() or 0
            finally:
                os._exit(code)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # it shows after a power failure alone, and is slow


@pytest.fixture
def store(tmp_path):
    return Store.create(tmp_path / "suite")
