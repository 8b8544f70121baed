from __future__ import annotations

import pytest
import torch
from fake_training import fake_cell

from msda_bench.errors import BenchError, PluginError
from msda_bench.run.failure import failure_of
from msda_bench.store.codec import decode, encode

CELL = fake_cell()


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
    ],
)
def test_each_fault_has_its_record(error: BaseException, status: str, message: str, traced: bool) -> None:
    record = failure_of(CELL.key, CELL, error, 1.5)
    assert (record.status, record.message) == (status, message)
    assert ("traceback" in record.provenance) == traced
    assert not record.is_result
    assert decode(encode(record), CELL.key) == record


def test_a_message_is_no_novel() -> None:
    message = failure_of(CELL.key, CELL, ValueError("x" * 10_000), 0).message
    assert message is not None
    assert len(message) == 500
