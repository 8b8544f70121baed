"""The most memory that training takes, each in a process of its own."""

from __future__ import annotations

from typing import get_args

import pytest

from benchmarks.memory import can_measure, peak_memory
from benchmarks.results import Results
from benchmarks.workers import Task, Workers
from benchmarks.workload import Who, Work

MIB = 1 << 20


@pytest.mark.parametrize(
    ("work", "steps"), [("amazon", 5), pytest.param("digits", 2, marks=pytest.mark.slow)], ids=get_args(Work)
)
@pytest.mark.parametrize("who", get_args(Who))
def test_peak(results: Results, who: Who, work: Work, steps: int) -> None:
    if not can_measure(results.device):
        pytest.skip("this system does not report the peak of a process's memory anew")
    with Workers([Task(who, work, results.device, as_worker=who == "engine")]) as workers:
        peak = workers.peak(results.steps(1, steps, gpu=4)[1], results.device)
    assert peak > 20 * MIB  # weights and Adadelta's state alone take more
    results.peaks[work, who] = peak


def test_peak_of_memory_given_back() -> None:
    if not can_measure("cpu"):
        pytest.skip("this system does not report the peak of a process's memory anew")
    assert 64 * MIB <= peak_memory(lambda: b"x" * (64 * MIB), "cpu") < 72 * MIB
