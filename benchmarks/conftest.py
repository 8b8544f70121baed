"""What all benchmarks share: one thread, the measurements of the session, and the tables made of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.figure import write_figure
from benchmarks.memory import keep_freed_memory
from benchmarks.results import Results
from benchmarks.tables import tables, write_tables
from benchmarks.workload import NoFiles, make_registry
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry

RESULTS = pytest.StashKey[Results]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bench-table",
        type=Path,
        metavar="PATH",
        help="write the measured tables to this Markdown file (in a file with markers, between them), "
        "and the figure to figures/ beside it",
    )
    parser.addoption("--bench-device", default="cpu", choices=("cpu", "cuda"), help="where training is measured")


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--bench-table")
    if path is not None and not path.parent.is_dir():  # or minutes of measurements would be lost at their end
        raise pytest.UsageError(f"--bench-table: there is no folder {path.parent}")
    # For the processes that benchmarks start. At the end, so that an installed msda-bench comes before the tree's.
    sys.path.append(str(Path(__file__).parents[1]))
    config.stash[RESULTS] = Results(config.getoption("--bench-device"))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    path: Path | None = session.config.getoption("--bench-table")
    if path is not None and exitstatus == pytest.ExitCode.OK:
        results = session.config.stash[RESULTS]
        write_tables(path, tables(results))
        write_figure(path.parent / "figures" / "cost-by-k.svg", results)


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest) -> Results:
    return request.config.stash[RESULTS]


@pytest.fixture(scope="session")
def registry() -> Registry:
    return make_registry()


@pytest.fixture(scope="module")
def trainer(registry: Registry, results: Results) -> Trainer:
    return Trainer(registry, NoFiles(), results.device)


@pytest.fixture(scope="session", autouse=True)
def as_in_a_worker() -> Iterator[None]:
    """Everything is measured with one thread and with freed memory kept, as a worker of a run has it."""
    keep_freed_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
