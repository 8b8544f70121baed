"""A fake engine that misbehaves on demand in real processes, as a cell's `scheme.params["do"]` requests."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from msda_bench.errors import PluginError
from msda_bench.running.execute import Setup, executors
from msda_bench.store import Store
from msda_bench.store.record import RESULTS, Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun
from msda_bench.suite.protocol import Optimizer, Sgd, TrainingConfig
from msda_bench.suite.run_spec import ComponentSpec, RunSpec

SETUP = Setup("cpu", trainer="fake_training:make")
LOG = "FAKE_TRAINING_LOG"
"""Environment variable: a file to which each start of a cell adds a line `pid key`.

Beside it is another, `<name>.published`, that gets a line whenever a result is published.
"""


@dataclass(frozen=True)
class FakeExpansion:
    """As an `Expansion`, whose module loads torch."""

    plan: Plan
    cells: dict[str, RunSpec]


def fake_cell(method="A", target="t0", seed=0, do="ok"):
    return RunSpec(
        dataset=ComponentSpec("dataset", "fake", 1, "tests", {}),
        fingerprint="0" * 64,
        target=target,
        sources=("s0", "s1"),
        backbone=ComponentSpec("backbone", "fake", 1, "tests", {}),
        scheme=ComponentSpec("scheme", method, 1, "tests", {"do": do}),
        discrepancy=None,
        aggregator=None,
        mu=0.0,
        training=TrainingConfig(epochs=1, batch=1, optimizer=Optimizer(sgd=Sgd(lr=0.1)), epoch="scheme"),
        validators=(),
        seed=seed,
    )


def fake_expansion(methods=("A", "B"), targets=("t0", "t1"), seeds=2, do="ok", faults=None):
    rows = tuple(Method(name, name == "TAR", "fake", ("tests 1",)) for name in methods)
    table = Experiment("table", "fake", "classification", tuple(targets), rows, tuple(range(seeds)))
    cells = {}
    planned = []
    for method in methods:
        for target in targets:
            for seed in range(seeds):
                cell = fake_cell(method, target, seed, (faults or {}).get((method, target, seed), do))
                cells[cell.key] = cell
                planned.append(PlannedRun("table", method, target, seed, cell.key))
    return FakeExpansion(Plan("fake", (table,), tuple(planned)), cells)


def executor(name, workers=2, timeout=None, **options):
    """An installed executor that trains with this engine."""
    setup = replace(SETUP, device=options.pop("device", "cpu"))
    return executors().entry("executor", name).cls(setup=setup, workers=workers, timeout=timeout, **options)


def make(device, stack):
    if device == "dies":
        os._exit(7)
    if device == "unusable":
        raise PluginError("the device is unusable; use another")
    if device == "buggy":
        raise ZeroDivisionError("a bug")

    print(os.environ.get("FAKE_TRAINING_TALK", ""), end="")
    if Store.publish is _PUBLISH:  # in the tests' own process a fixture does it
        Store.publish = publish

    def train(cells):
        for cell in cells:
            _log(os.getpid(), cell.key)
        return [_train(cell) for cell in cells]

    return train


_PUBLISH = Store.publish


def publish(store, record):
    """Publishes like the store, and adds a line to the log."""
    made = _PUBLISH(store, record)
    if record.status in RESULTS:
        with Path(f"{os.environ[LOG]}.published").open("a") as stream:
            stream.write(f"{record.key}\n")
    if record.cell["scheme"]["params"].get("do") == "die-after":
        os.kill(os.getpid(), signal.SIGKILL)
    return made


def published():
    """The keys of the results that were published."""
    return _lines(".published")


def trained():
    """The keys in the log, one for each start of a cell."""
    return [line.split()[1] for line in _lines()]


def pids():
    """The processes in the log."""
    return {int(line.split()[0]) for line in _lines()}


def _lines(suffix=""):
    log = Path(os.environ[LOG] + suffix)
    return log.read_text().splitlines() if log.exists() else []


def _log(pid, key):
    with Path(os.environ[LOG]).open("a") as stream:
        stream.write(f"{pid} {key}\n")


def _train(cell):
    do, _, value = str(cell.scheme.params["do"]).partition(":")
    if do in _ERRORS:
        raise _ERRORS[do]
    if do in _FAULTS:
        _FAULTS[do](value)
    correct = int(cell.key[:4], 16) % 100
    return Record(cell.key, cell.to_json(), "ok", Outcome(100, correct))


_ERRORS = {
    "raise": ValueError("two\nlines \udcff"),
    "interrupt": KeyboardInterrupt(),
    "refuse": PluginError("aggregator 'x' returned weights of shape (3,), expected (2,); mend it"),
    "no-memory": MemoryError("no room for 1 TiB"),
}


def _once(marker):
    """Dies in the first attempt only."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _hang(_):
    """Ignores SIGTERM, with a sleeping child process."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _bear()
    while True:
        time.sleep(1)


def _freeze(_):
    """Reacts only to SIGKILL because no other thread can run, with a sleeping child process."""
    _bear()
    ctypes.PyDLL(None).sleep(600)


def _bear():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    _log(child.pid, "grandchild")


def _freeze_until(marker):
    """Freezes after some cells were published, unless a file exists."""
    if len(published()) > 2 and not Path(marker).exists():
        _freeze("")


def _orphan(_):
    """Kills the parent process."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def _overeat(_):
    """Requests more memory than the system allows."""
    free = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, free[1]))
    try:
        bytearray(1 << 34)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, free)


_FAULTS = {
    "freeze-until": _freeze_until,
    "exit": lambda code: os._exit(int(code)),
    "signal": lambda name: os.kill(os.getpid(), signal.Signals[name]),
    "once": _once,
    "hang": _hang,
    "freeze": _freeze,
    "orphan": _orphan,
    "debug": lambda _: breakpoint(),  # noqa: T100
    "segfault": lambda _: ctypes.string_at(0),
    "overeat": _overeat,
    "sleep": lambda seconds: time.sleep(float(seconds)),
}
