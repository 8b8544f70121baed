"""Operations that a training step asks of torch: each costs a host time, which a fast device waits for."""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.results import Results
from benchmarks.steps import Workshop, field_cells, inputs_of, small
from msda_bench.plugins import Registry

STACK = 2
"""Runs of a stack; a step of one asks for as many operations, whatever their number."""


def test_operations(results: Results, registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    """Counted on torch's "meta" device, which computes nothing, so no figure depends on the machine."""
    workshop = Workshop(registry)
    for name, cell in field_cells(registry).items():
        counted = [
            workshop.counted(small(registry, cell, inputs), stack) for inputs, stack in product(inputs_of(), (0, STACK))
        ]
        results.operations[name] = counted
        with capsys.disabled():
            print(f"{name:18}", *(f"{one.operations:7.0f} ({one.launches:.0f})" for one in counted), flush=True)
