"""Jobs in one process: which cells they hold, in which order they train, and what a fault costs."""

import itertools
import os
import random
import signal
import tracemalloc

import fake_training
import pytest
import torch
from fake_training import fake_cell, fake_expansion

from msda_bench.errors import BenchError, PluginError
from msda_bench.executors import CellFinished, Executor, Interrupt, JobRunner, JobStarted, Noted, Store, slots
from msda_bench.running.runner import missing_runs, shard_of
from msda_bench.store import Curves, Outcome, Record
from tests.running.conftest import job_of
from tests.running.conftest import run as run_all

UNREADABLE = "its message cannot be read, since its __str__ raises"


class UnspeakableError(RuntimeError):
    def __str__(self):
        raise KeyError


class UnspeakableMistakeError(PluginError):
    __str__ = UnspeakableError.__str__


def run(store, *cells, train=None):
    """The events of a job but the first, which announces it."""
    job = job_of(*cells)
    first, *events = JobRunner(train or fake_training.make("cpu", None), store).run(job)
    assert first == JobStarted(job.keys)
    return events


@pytest.mark.parametrize(
    ("error", "status", "message", "traced"),
    [
        (PluginError("shape (3,), expected (2,)"), "failed", "shape (3,), expected (2,)", False),
        (BenchError("one", "two"), "failed", "one two", False),
        (ValueError("a\nb\x1b[31m\udcff"), "failed", "ValueError: a b [31m", True),
        (torch.OutOfMemoryError("CUDA out of memory"), "oom", "OutOfMemoryError: CUDA out of memory", True),
        (MemoryError(), "oom", "MemoryError: no message", True),
        (RuntimeError("DefaultCPUAllocator: no"), "oom", "RuntimeError: DefaultCPUAllocator: no", True),
        (SystemExit("bye"), "failed", "SystemExit: bye", True),
        (KeyboardInterrupt(), "failed", "KeyboardInterrupt: no message", True),
        (UnspeakableError(), "failed", f"UnspeakableError: {UNREADABLE}", True),
        (UnspeakableMistakeError(), "failed", UNREADABLE, False),
        (ValueError("x" * 5_000_000 + "end"), "failed", f"ValueError: {'x' * 485}...", True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_training_raises_is_a_record_with_its_status_and_line(
    tmp_path, monkeypatch, error, status, message, traced
):
    def train(_):
        raise error
        yield

    if isinstance(error, KeyboardInterrupt):  # under our own handlers it cannot be the user's
        monkeypatch.setattr(signal, "getsignal", lambda _: None)
    store, cell = Store.create(tmp_path / "s"), fake_cell()
    (event,) = run(store, cell, train=train)
    assert (event.status, event.message, event.raised) == (status, message, status == "failed")
    failure = store.refresh().read(cell.key)
    assert (failure.status, failure.message, store.results) == (status, message, {})
    trace = failure.provenance.get("traceback", "")
    assert bool(trace) == traced == (event.traceback is not None)
    assert len(trace) < 51_000
    if len(trace) > 50_000:
        assert trace.startswith("Traceback")
        assert "xend" in trace
        assert "characters skipped" in trace


def test_only_the_poison_cell_of_a_job_fails_and_results_are_stored_as_they_come(tmp_path):
    store = Store.create(tmp_path / "s")
    cells = tuple(fake_cell(seed=seed) for seed in range(6))
    trained = []

    def train(given):
        for cell in given:
            assert len(store.refresh().results) == len(trained)
            if cell.seed == 2:
                raise ValueError("poison")
            trained.append(cell.seed)
            where = {"stack": 1, "stack_note": "it looks at values"}
            yield Record(cell.key, cell.to_json(), "ok", Outcome(4, 3), provenance=where)

    events = run(store, *cells, train=train)
    ended = {event.key: event.status for event in events if isinstance(event, CellFinished)}
    assert [ended[cell.key] for cell in cells] == ["ok", "ok", "failed", "ok", "ok", "ok"]
    assert sorted(trained) == [0, 1, 3, 4, 5]
    slower = "runs train alone, which is slower: it looks at values"
    assert [event.line for event in events if isinstance(event, Noted)] == [slower]
    assert len(run(store, *cells[:2], train=train)) == 2  # they are stored
    assert sorted(trained) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            Record(fake_cell(seed=1).key, fake_cell(seed=1).to_json(), "ok"),
            "the training core returned records of othe",
        ),
        (Record(fake_cell().key, fake_cell().to_json(), "ok", Outcome(9, 1), validation={"s": float("nan")}), "JSON"),
    ],
    ids=["of another cell", "that cannot be stored"],
)
def test_an_unusable_record_is_a_failure(tmp_path, result, words):
    store = Store.create(tmp_path / "s")
    (event,) = run(store, fake_cell(), train=lambda _: [result])
    assert event.status == "failed"
    assert words in str(event.message)
    assert store.refresh().results == {}


@pytest.mark.parametrize(("together", "started"), [(1, 2), (4, 18)])
def test_a_methods_first_job_comes_first_and_ends_the_run_if_it_raises(tmp_path, together, started):
    """In jobs of one cell A's at t0, then B's; in stacks A's two, at t0 and t1, then B's, which is tried in halves."""
    expansion = fake_expansion(methods="ABC", seeds=4, faults={("B", "t0", 0): "refuse"})
    inline = fake_training.executor("inline")
    with pytest.raises(BenchError, match=r"table: the first run of B \(fake\), target t0, seed 0, failed: agg"):
        run_all(tmp_path / "s", expansion, inline, together)
    methods = [expansion.cells[key].scheme.name for key in fake_training.trained()]
    assert (set(methods), len(methods)) == ({"A", "B"}, started)
    assert len(Store(tmp_path / "s").refresh().results) >= together
    going = run_all(tmp_path / "s", expansion, inline, together, go_on=True)
    assert (len(going.failed), going.missing) == (1, 1)


def test_cells_of_a_split_train_one_after_the_other(tmp_path):
    expansion = fake_expansion(methods="ABC", seeds=3)
    run_all(tmp_path / "s", expansion, fake_training.executor("inline"))
    splits = [(expansion.cells[key].target, expansion.cells[key].seed) for key in fake_training.trained()]
    rest = splits[4:]  # after A, B, C at t0 and A at t1
    assert len(rest) == 14
    assert sum(one != other for one, other in itertools.pairwise(rest)) == len(set(rest)) - 1


def test_stacked_cells_differ_only_in_seed_and_domains(tmp_path):
    expansion = fake_expansion(seeds=3)
    batches = []

    class Watch(Executor):
        name = "watch"

        def run(self, jobs, store, interrupt):
            batches.extend(list(job.cells) for job in jobs)
            yield from ()

    run_all(tmp_path / "s", expansion, Watch(setup=fake_training.SETUP), 4)
    assert sorted(map(len, batches)) == [2, 2, 4, 4]
    assert {key for cells in batches for key in (cell.key for cell in cells)} == set(expansion.cells)
    assert all(len({cell.scheme.name for cell in cells}) == 1 for cells in batches)


@pytest.mark.parametrize("count", [1, 7, 40])
def test_shards_are_disjoint_cover_all_and_differ_by_one(count):
    cells = fake_expansion(methods="ABC", seeds=5).plan.cells
    shuffled = random.Random(count).sample(cells, len(cells))
    parts = [shard_of(shuffled, f"{index}/{count}") for index in range(count)]
    assert sorted(cell.key for part in parts for cell in part) == sorted(cell.key for cell in cells)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    # Whatever order a machine plans in, it finds the same part; methods that share a cell are in the same one.
    assert [set(part) for part in parts] == [set(shard_of(cells, f"{index}/{count}")) for index in range(count)]
    assert [len(shard_of((*cells, *cells), f"{index}/{count}")) for index in range(count)] == [
        2 * len(part) for part in parts
    ]


@pytest.mark.parametrize("text", ["4/4", "0/0", "-1/4", "1", "", "1/4/2", " 1/4", "a/b", "1/1000000000"])
def test_an_invalid_shard_is_refused(text):
    with pytest.raises(BenchError, match="part I of N, counted from 0") as caught:
        shard_of((), text)
    assert len(caught.value.lines) == 1


def test_finding_missing_runs_keeps_little_of_each_record(tmp_path):
    expansion, store = fake_expansion(), Store.create(tmp_path / "s")
    curves = Curves([["s0"]], *([[[number / 7] for number in range(1000)]] * 3))
    for key, cell in expansion.cells.items():
        store.publish(Record(key, cell.to_json(), "ok", Outcome(1, 1), curves))
    tracemalloc.start()
    state = missing_runs(expansion, store)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(state.ended) == len(expansion.cells) == 8
    assert kept < 80_000  # their lines have 460,000 bytes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_requests_a_stop_and_raises_only_where_asked(number):
    former = signal.getsignal(number)
    with Interrupt() as interrupt:
        with pytest.raises(KeyboardInterrupt), interrupt.raising():
            os.kill(os.getpid(), number)
        assert interrupt.requested
        os.kill(os.getpid(), number)  # a second one disturbs nothing
        with pytest.raises(KeyboardInterrupt), interrupt.raising():
            pytest.fail("work began although a stop was requested")
    assert signal.getsignal(number) == former
    with pytest.raises(KeyboardInterrupt), Interrupt(signal.SIGTERM) as stop, stop.raising():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) == former


@pytest.mark.parametrize(
    ("visible", "there", "workers", "wanted"),
    [
        (None, 2, 3, ["0", "1", "0"]),
        ("3,GPU-5", 2, 2, ["3", "GPU-5"]),
        ("1,-1,0", 1, 2, ["1", "1"]),  # the driver stops reading at what is no GPU
    ],
)
def test_each_worker_gets_one_of_the_users_gpus(monkeypatch, visible, there, workers, wanted):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    assert [slot["CUDA_VISIBLE_DEVICES"] for slot in slots("cuda", workers)] == wanted
