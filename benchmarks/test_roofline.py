"""What one core or the GPU can do, and how much of it a step asks for."""

from __future__ import annotations

import time

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import measure
from benchmarks.results import Results
from benchmarks.roofline import count, digits
from benchmarks.synthetic import AmazonLike
from benchmarks.workload import dense_domains

peak = pytest.mark.benchmark(group="one core", timer=time.process_time)


@peak
def test_arithmetic(benchmark: BenchmarkFixture, results: Results) -> None:
    """Seconds of an operation in a float32 product of square matrices."""
    size = 1024 if results.device == "cpu" else 8192
    a, b = (torch.ones(size, size, device=results.device) for _ in range(2))
    results.add("peak", "arithmetic", measure(benchmark, lambda: torch.mm(a, b), rounds=9, parts=2 * size**3))


@peak
def test_memory(benchmark: BenchmarkFixture, results: Results) -> None:
    """Seconds of a byte read or written, in a copy of 256 MB."""
    source = torch.ones(1 << 26, device=results.device)
    target = torch.empty_like(source)
    parts = 2 * source.numel() * source.element_size()
    results.add("peak", "memory", measure(benchmark, lambda: target.copy_(source), rounds=9, parts=parts))


def test_occurrence(results: Results) -> None:
    found = count([domain.x for domain in dense_domains(AmazonLike(train=2000))], steps=50, seed=0)
    # The real reviews: 1200 words a step, and 78 words a row, of which dropout keeps 0.3.
    assert found.words == pytest.approx(1200, rel=0.05)
    assert found.stored == pytest.approx(80 * 78 * 0.3, rel=0.05)
    results.occurrence = found


def test_operations_of_digits() -> None:
    """Counted by hand: 64 GFLOP in the convolutions, 16 in the predictor, 41 in the critics."""
    convolutions = 512 * (2 * 3.1104 + 3 * 24.920064 + 3 * 14.7456) * 1e6
    heads = 6 * 384 * (6.826 + 2 * 8.915) * 1e6
    assert digits().operations == pytest.approx(convolutions + heads, rel=1e-3)
