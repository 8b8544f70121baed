"""How costs grow with runs, records, domains, methods, seeds and workers: `python -m benchmarks.scale PART ...`.

Each part prints its costs at four sizes, the largest thirty times the smallest, and the exponent of the power law that
is fitted to them. All is CPU time of this process without its imports, and files are in the system's cache.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.workload import cells_of, expansion, make_registry
from msda_bench.cli.main import main
from msda_bench.running.execute import Interrupt, Setup, Train
from msda_bench.running.jobs import CellFinished, make_jobs
from msda_bench.store import Outcome, Record, Store
from msda_bench.store.compact import compact
from msda_bench.store.record import Curves
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun
from msda_bench.suite.run_spec import RunSpec, canonical_json

FEW, SIZES = 4, (10, 30, 100, 300)
"""How many of everything else a folder has, and how many there are of what grows."""
EACH = 100
"""Records of each worker."""
ROWS = 20
"""Of each domain of a table."""
READERS = ("leaderboard", "compare")
SUITE = """schema: 1
name: scale
dataset: {{table: {{file: {table}, domain: site, label: y, train: 8, test: 8}}}}
targets: {targets}
seeds: {seeds}
backbone: {{mlp: {{hidden: [64]}}}}
training: {{epochs: 1, steps: 1, batch: 8, optimizer: {{adam: {{lr: 0.003}}}}}}
methods:
{methods}
compare: {{baseline: M0}}
"""


class Shape(NamedTuple):
    """How many there are of each in a folder."""

    methods: int
    targets: int
    seeds: int


def cost(call: Callable[[], object]) -> float:
    """Seconds of CPU time, without what it prints."""
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        call()
    return time.process_time() - start


def command(*words: str) -> float:
    """Seconds of CPU time of a command that succeeds."""
    codes: list[int] = []
    found = cost(lambda: codes.append(main(words)))
    assert codes == [0], f"{' '.join(words)} ended with {codes[0]}"
    return found


def show(what: str, sizes: Sequence[int], costs: Sequence[float], least: float = 0.0) -> None:
    """A row of the table: the costs, and the exponents of what exceeds `least`, of all four sizes and of the last two.

    `least` is what the smallest work costs, such as looking for plugins.
    """
    more = [max(one - least, 1e-6) for one in costs]
    exponent = np.polyfit(np.log(sizes), np.log(more), 1)[0]
    last = math.log(more[-1] / more[-2]) / math.log(sizes[-1] / sizes[-2])
    shown = " | ".join(f"{size}: {one:.3g}" for size, one in zip(sizes, costs, strict=True))
    print(f"{what} | {least:.3g} | {shown} | exponent {exponent:.2f}, of the last two {last:.2f}", flush=True)


def _write_table(folder: Path, domains: int) -> Path:
    draw = np.random.default_rng(0)
    lines = ["site,y,a,b,c"]
    for domain in range(domains):
        for _ in range(ROWS):
            numbers = ",".join(f"{number:.4f}" for number in draw.standard_normal(3))
            lines.append(f"site{domain:03d},{draw.choice(('no', 'yes'))},{numbers}")
    table = folder / "table.csv"
    table.write_text("\n".join(lines) + "\n")
    return table


def _write_suite(folder: Path, domains: int, methods: int, seeds: int, targets: int | None = None) -> Path:
    table = _write_table(folder, domains)
    named = "all" if targets is None else [f"site{number:03d}" for number in range(targets)]
    rows = [f"  M{number}: {{discrepancy: d_A, mu: 0.{number + 1:03d}}}" for number in range(methods)]
    suite = folder / "scale.yaml"
    suite.write_text(SUITE.format(table=table.name, targets=named, seeds=seeds, methods="\n".join(rows)))
    return suite


def measure_suites(folder: Path) -> None:
    """`identify` by domains; `validate`, which expands the suite, by domains, methods and seeds; ten of each other."""
    identify = ("data", "identify", str(folder / "table.csv"), "--domain", "site", "--label", "y")
    _write_suite(folder, 3, 2, 2)
    words = ("validate", str(folder / "scale.yaml"))
    least = {
        first: min(command(*every) for _ in range(4)) for first, every in (("data", identify), ("validate", words))
    }
    found = []
    for size in SIZES:
        _write_table(folder, size)
        found.append(command(*identify))
    show("identify, domains", SIZES, found, least["data"])
    shapes: dict[str, Callable[[int], Mapping[str, int]]] = {
        "domains, ten of them targets": lambda size: {"domains": size, "targets": 10, "methods": 10, "seeds": 10},
        "domains, all targets": lambda size: {"domains": size, "methods": 10, "seeds": 10},
        "methods": lambda size: {"domains": 10, "methods": size, "seeds": 10},
        "seeds": lambda size: {"domains": 10, "methods": 10, "seeds": size},
    }
    for what, shape in shapes.items():
        found = []
        for size in SIZES:
            suite = _write_suite(folder, **shape(size))
            found.append(command("validate", str(suite)))
        show(f"validate, {what}", SIZES, found, least["validate"])


def _runs(shape: Shape) -> tuple[Plan, list[Record]]:
    """Accuracies of 2,000 test examples, each method a little better than the one before; curves of 50 epochs."""
    draw = random.Random(0)  # noqa: S311
    methods = [
        Method(f"m{number}", reference=False, recipe="made", distributions=()) for number in range(shape.methods)
    ]
    targets, seeds = [f"t{number}" for number in range(shape.targets)], tuple(range(shape.seeds))
    planned, records = [], []
    for (number, method), target, seed in product(enumerate(methods), targets, seeds):
        record = _record(
            {"dataset": {"name": "made", "params": {}}, "method": method.name, "seed": seed, "target": target}
        )
        rows = [[round(draw.random(), 6) for _ in range(3)] for _ in range(50)]
        curves = Curves([["a"], ["b"], ["c"]], rows, rows, rows)
        outcome = Outcome(2000, n_correct=1500 + min(3 * number, 300) + draw.randrange(100))
        records.append(replace(record, outcome=outcome, curves=curves))
        planned.append(PlannedRun("made", method.name, target, seed, record.key))
    table = Experiment("made", "made", "classification", tuple(targets), tuple(methods), seeds, baseline="m0")
    return Plan("made", (table,), tuple(planned)), records


def _record(cell: dict[str, Any]) -> Record:
    """An empty run's; the key is the cell's."""
    key = sha256(canonical_json(cell).encode()).hexdigest()
    return Record(key, cell, "ok", Outcome(100, n_correct=50), timing={"train": 1.0, "steps": 1})


def _filled(folder: Path, shape: Shape) -> tuple[float, float]:
    """Writes a plan and publishes all records; what a record costs, and what sealing costs."""
    plan, records = _runs(shape)
    with patch("os.fsync"):  # the disk's waits are no CPU time
        store = Store.create(folder)

        def publish() -> None:
            store.write_plan(plan)
            for record in records:
                store.publish(record)

        return cost(publish), cost(partial(compact, store))


def measure_folders(folder: Path) -> None:
    """Publishing, sealing, `leaderboard` and `compare` by seeds, methods and targets; four of each other."""
    cost(lambda: _filled(folder / "first", Shape(2, 2, 5)))
    least = {name: min(command(name, str(folder / "first")) for _ in range(4)) for name in READERS}
    for axis in Shape._fields:
        found: dict[str, list[float]] = {"publish": [], "seal": [], "leaderboard": [], "compare": []}
        for size in SIZES:
            at = folder / f"{axis}-{size}"
            shape = Shape(FEW, FEW, FEW)._replace(**{axis: size})
            published, sealed = _filled(at, shape)
            found["publish"].append(published)
            found["seal"].append(sealed)
            for name in READERS:
                found[name].append(command(name, str(at)))
        sizes = [FEW * FEW * size for size in SIZES] if axis == "seeds" else SIZES
        for what, costs in found.items():
            if axis == "seeds" or what in READERS:
                grows = "records (by seeds)" if axis == "seeds" else axis
                show(f"{what}, {grows}", sizes, costs, least.get(what, 0.0))


def empty(device: str, stack: int | None) -> Train:  # noqa: ARG001 - as `engine` takes them
    """Stands in for the training core: a record at once, without data and network."""

    def train(cells: Sequence[RunSpec]) -> Iterator[Record]:
        for cell in cells:
            yield _record(cell.to_json())

    return train


def _cells(count: int) -> dict[str, RunSpec]:
    cell = cells_of(expansion("amazon", make_registry()), "DARN")[0]
    cells = {}
    for seed in range(count):
        one = replace(cell, seed=seed)
        cells[one.key] = one
    return cells


def measure_scheduler(folder: Path, most: int) -> None:
    """Empty runs through the dask executor: one scheduler, one dask worker with two crews, one folder."""
    from msda_bench_dask import DaskExecutor

    sizes = tuple(most * size // SIZES[-1] for size in SIZES)
    here, crews = [], []
    for size in sizes:
        jobs = make_jobs(_cells(size))
        store = Store.create(folder / f"dask-{size}")
        executor = DaskExecutor(setup=Setup("cpu", trainer="benchmarks.scale:empty"), workers=2)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)

        def run(jobs: list = jobs, store: Store = store, executor: DaskExecutor = executor, size: int = size) -> None:  # type: ignore[type-arg]
            with Interrupt() as interrupt:
                done = [event for event in executor.run(jobs, store, interrupt) if isinstance(event, CellFinished)]
            assert len(done) == size

        start = time.perf_counter()
        here.append(cost(run))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        crews.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        print(f"{size} empty runs: {time.perf_counter() - start:.1f} s of wall time", flush=True)
    show("client, scheduler and dask worker", sizes, here)
    show("two crews, their imports included", sizes, crews)


def measure_workers(folder: Path, most: int) -> None:
    """A folder with a log for each worker, `EACH` empty runs: a worker's look before a job, a fresh look, and sealing.

    Between two looks of a worker every worker publishes one record, as where all runs take equally long.
    """
    sizes = tuple(most * size // SIZES[-1] for size in SIZES)
    found: dict[str, list[float]] = {"publishing a record": [], "a worker's look": [], "reading all": [], "sealing": []}
    for size in sizes:
        at = folder / f"workers-{size}"
        numbers = iter(range(10**9))
        with patch("os.fsync"):
            Store.create(at)
            workers = [Store(at, sealed=False) for _ in range(size)]
            own, published, looks = Store(at, sealed=False), 0.0, []
            for _ in range(EACH):
                records = [_record({"dataset": {"name": "made", "params": {}}, "seed": next(numbers)}) for _ in workers]
                published += cost(lambda workers=workers, records=records: _publish(workers, records))  # type: ignore[misc]
                looks.append(cost(own.refresh))
            found["publishing a record"].append(published / (EACH * size))
            found["a worker's look"].append(statistics.median(looks))
            fresh = Store(at)
            found["reading all"].append(cost(fresh.refresh))
            found["sealing"].append(cost(partial(compact, fresh)))
    for what, costs in found.items():
        show(f"{what}, workers", sizes, costs)


def _publish(workers: Sequence[Store], records: Sequence[Record]) -> None:
    for worker, record in zip(workers, records, strict=True):
        worker.publish(record)


PARTS: dict[str, Callable[..., None]] = {
    "suites": measure_suites,
    "folders": measure_folders,
    "scheduler": measure_scheduler,
    "workers": measure_workers,
}
SIZED = {"scheduler": 3000, "workers": 1000}
"""The largest size of a part that takes one."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--most", type=int, help="the largest number of runs or workers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        for part in given.parts:
            most = (given.most or SIZED[part],) if part in SIZED else ()
            PARTS[part](Path(made), *most)
