"""One thread, as in a worker of a run; and below pytest-benchmark's table the costs of steps and their ratios."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.workload import make_registry
from msda_bench.data import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bench-device", default="cpu", choices=("cpu", "cuda"), help="where training is measured")


def pytest_configure() -> None:
    # For the processes that benchmarks start. At the end, so that an installed msda-bench comes before the tree's.
    sys.path.append(str(Path(__file__).parents[1]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for one in config._benchmarksession.benchmarks:  # type: ignore[attr-defined]  # noqa: SLF001 - as its own hooks do
        for name, value in one.extra_info.items():
            terminalreporter.write_line(f"{one.name}: {name}: {value:.4g}")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--bench-device"))


@pytest.fixture(scope="session")
def registry() -> Registry:
    return make_registry()


@pytest.fixture(scope="module")
def trainer(registry: Registry, device: str) -> Trainer:
    return Trainer(registry, LocalFiles(), device)


@pytest.fixture(scope="session", autouse=True)
def as_in_a_worker() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
