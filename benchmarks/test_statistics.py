"""What it takes to compare 20,000 runs and to make their table files, without a disk."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.many_runs import SHAPES, Shape, many_runs
from benchmarks.memory import can_measure, peak_memory
from msda_bench.results.files import result_files
from msda_bench.results.frame import runs_frame
from msda_bench.results.leaderboard import analyse
from msda_bench.store.record import Record
from msda_bench.suite.plan import Plan


@pytest.mark.benchmark(group="statistics", timer=time.process_time)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_twenty_thousand_runs(benchmark: BenchmarkFixture, shape: Shape) -> None:
    plan, records = many_runs(shape)
    assert len(records) == 20_000
    if can_measure("cpu"):
        benchmark.extra_info["peak_mib"] = round(peak_memory(lambda: _files(plan, records), "cpu") / (1 << 20))
    files = benchmark.pedantic(_files, args=(plan, records), rounds=2)  # type: ignore[no-untyped-call]
    assert files["leaderboard.csv"].count("\n") == 1 + shape[0] * (shape[1] + 1)


def _files(plan: Plan, records: Mapping[str, Record]) -> dict[str, str]:
    return result_files(analyse(runs_frame(plan, records)))
