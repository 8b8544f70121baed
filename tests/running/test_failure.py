from __future__ import annotations

import pytest
import torch
from fake_training import fake_cell

from msda_bench.errors import BenchError, PluginError
from msda_bench.running.jobs import failure_of
from msda_bench.store.files import decode, encode

CELL = fake_cell()
UNREADABLE = "its message cannot be read, since its __str__ raises"


class UnspeakableError(RuntimeError):
    def __str__(self) -> str:
        raise KeyError


class UnspeakableMistakeError(PluginError):
    __str__ = UnspeakableError.__str__


@pytest.mark.parametrize(
    ("error", "status", "message", "traced"),
    [
        (PluginError("shape (3,), expected (2,)"), "failed", "shape (3,), expected (2,)", False),
        (BenchError("one", "two"), "failed", "one two", False),
        (ValueError("a\nb\x1b[31m\udcff"), "failed", "ValueError: a b [31m", True),
        (torch.OutOfMemoryError("CUDA out of memory"), "oom", "OutOfMemoryError: CUDA out of memory", True),
        (MemoryError(), "oom", "MemoryError: no message", True),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            "oom",
            "RuntimeError: DefaultCPUAllocator: can't allocate memory",
            True,
        ),
        (SystemExit("bye"), "failed", "SystemExit: bye", True),
        (KeyboardInterrupt(), "failed", "KeyboardInterrupt: no message", True),
    ],
)
def test_each_fault_gives_a_record_with_its_status(
    error: BaseException, status: str, message: str, traced: bool
) -> None:
    record = failure_of(CELL.key, CELL, error, 1.5)
    assert (record.status, record.message) == (status, message)
    assert ("traceback" in record.provenance) == traced
    assert not record.is_result
    assert decode(encode(record), CELL.key) == record


def test_an_exception_that_raises_when_inspected_gives_a_record() -> None:
    for kind, message in ((UnspeakableError, f"UnspeakableError: {UNREADABLE}"), (UnspeakableMistakeError, UNREADABLE)):
        try:
            raise kind  # noqa: TRY301 - a raised one has a traceback
        except Exception as error:  # noqa: BLE001 - either kind
            record = failure_of(CELL.key, CELL, error, 0)
        assert (record.status, record.message) == ("failed", message)
        assert ("raise kind" in record.provenance.get("traceback", "")) == (kind is UnspeakableError)


def test_long_messages_are_cut_and_tracebacks_keep_both_ends() -> None:
    record = failure_of(CELL.key, CELL, ValueError("x" * 5_000_000 + "end"), 0)
    assert record.message is not None
    assert len(record.message) == 500
    trace = record.provenance["traceback"]
    assert len(trace) < 51_000
    assert trace.startswith("ValueError: x")
    assert "xend" in trace
    assert "characters skipped" in trace
