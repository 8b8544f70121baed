"""Makes frames of runs from lists of scores."""

from dataclasses import replace
from itertools import product

import pytest

from msda_bench.results.frame import runs_frame
from msda_bench.results.load import recorded_rows
from msda_bench.results.runs import Results
from msda_bench.store import Store
from msda_bench.store.codec import decode_summary, encode
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun
from tests.logs import key_of

N_TEST = 200
HOSTILE = (
    *("<script>alert(1)</script>", '=HYPERLINK("http://x.invalid")', "a|b_{", "$x_{"),
    *("</style>" + "n" * 200, "</script><!--\u2028\x1b]0;own\x07"),
)
BASE = [100, 103, 98, 110, 95, 104, 99, 101]
"""Correct of 200 at eight seeds."""
UP = (1, 2, 3, 4, 5, 6, 7, 8)


def plus(*steps):
    """So many more than `BASE`."""
    return [base + step for base, step in zip(BASE, steps, strict=False)]


def lead(step, seeds=8):
    """Leads `BASE` by a little more in every run."""
    return {"x": plus(*(step * place for place in UP[:seeds]))}


def many(count):
    """Methods that each beat all earlier ones at every one of eight seeds, by unequal steps."""
    return {name: lead(place) for place, name in enumerate("abcdefg"[:count])}


def planned(runs, name="table", dataset="toy", task="classification", search=None, **options):
    """An experiment, its cells and records; methods named `ref...` are references.

    `runs[method][target]` has a run for each seed, the tuning seeds last: correct of 200, a squared error, a status
    with a message, an outcome, any of these with its scores by validators, or None where it is missing. With `search`
    each is a list of such runs, those of its candidates.
    """
    targets, tuning = tuple(next(iter(runs.values()))), options.get("tuning")
    tuned = tuning.seeds if tuning else ()
    seeds = tuple(range(len(next(iter(next(iter(runs.values())).values()))) - len(tuned)))
    recipes = {"ref-alone": "target_only"}
    methods = tuple(Method(name, name.startswith("ref"), recipes.get(name, "recipe"), (), search) for name in runs)
    experiment = Experiment(name, dataset, task, targets, methods, seeds, **options)
    cells, records = [], {}
    for method, target in product(runs, targets):
        for seed, run in zip((*seeds, *tuned), runs[method][target], strict=True):
            for candidate, one in enumerate(run) if search else [(None, run)]:
                at = f"{name} {method} {target} {seed}" + ("" if candidate is None else f" {candidate}")
                cell = {"at": at}
                key = key_of(cell)
                cells.append(PlannedRun(name, method, target, seed, key, candidate))
                if one is not None:
                    records[key] = replace(_record(cell, one), target_labels=method.startswith("ref"))
    return experiment, cells, records


def with_cells(part, cell_of):
    """What `planned` made, but the records have other cells, each of which `cell_of(place)` gives."""
    experiment, places, records = part
    changed, cells = {}, []
    for place in places:
        at = place
        if place.key in records:
            cell = cell_of(place) | {"at": place.key}
            at = replace(place, key=key_of(cell))
            changed[at.key] = replace(records[place.key], key=at.key, cell=cell)
        cells.append(at)
    return experiment, cells, changed


def holm(p_values):
    """Holm's correction by its definition: of the p-values up to each, the largest after its own factor."""
    adjusted = {p: min(1.0, (len(p_values) - sum(less < p for less in p_values)) * p) for p in p_values}
    return [max(after for p, after in adjusted.items() if p <= value) for value in p_values]


def frame_of(*parts):
    """The runs of some experiments of one suite."""
    cells = [cell for _, own, _ in parts for cell in own]
    records = {key: record for *_, own in parts for key, record in own.items()}
    return frame(Plan("suite", tuple(part[0] for part in parts), tuple(cells)), records)


def frame(plan, records):
    """The runs of a plan with these records."""
    return runs_frame(Results(plan), recorded_rows([decode_summary(encode(record)) for record in records.values()]))


def write_folder(path, *parts):
    """A result folder of some experiments of one suite."""
    store = Store.create(path)
    store.write_plan(Plan("suite", tuple(part[0] for part in parts), tuple(cell for part in parts for cell in part[1])))
    for *_, records in parts:
        for record in records.values():
            store.publish(record)
    return store.folder


@pytest.fixture
def folder_of(tmp_path):
    """`folder_of(runs, ...)`: a result folder of such runs as `planned` takes, in which SRC is the baseline."""

    def make(runs, **options):
        part = planned(runs, **{"baseline": "SRC"} | options)
        return write_folder(tmp_path / f"made-{len([*tmp_path.iterdir()])}", part)

    return make


_NOISE = (0, 3, 1, 4, 2, 5, 3, 0, 1, 2)


def gaining(*gains, name=None, dataset=None, **options):
    """Experiments in which `up` gains this many of 1000 over SRC at every seed, ref more, and `even` at some seeds."""
    parts = []
    for place, gain in enumerate(gains):
        steps = {"SRC": [0] * 10, "up": [gain] * 10, "even": [noise % 3 - 1 for noise in _NOISE], "ref": [100] * 10}
        runs = {}
        for method, added in steps.items():
            at_seeds = [Outcome(1000, 500 + noise + step) for noise, step in zip(_NOISE, added, strict=True)]
            runs[method] = {"x": at_seeds, "y": at_seeds}
        parts.append(planned(runs, name or f"e{place}", dataset or f"d{place}", baseline="SRC", **options))
    return parts


def gained(*gains, **options):
    """The runs of experiments in which methods gain so many points over SRC at each seed."""
    parts = []
    for place, of_methods in enumerate(gains):
        levels = {"SRC": [0.0] * len(next(iter(of_methods.values()))), **of_methods}
        runs = {name: {"x": [points(gain) for gain in at_seeds]} for name, at_seeds in levels.items()}
        parts.append(planned(runs, f"e{place}", f"d{place}", **{"baseline": "SRC", "pairs": "baseline"} | options))
    return frame_of(*parts)


def points(gain):
    """The outcome of a run with so many percent more right than half of a million."""
    return Outcome(10**6, 500_000 + round(10_000 * gain))


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch):
    """No test here loses power."""
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture
def table():
    """`table({method: {target: [run of seed 0, run of seed 1, ...]}})`."""

    def make(runs, **options):
        return frame_of(planned(runs, **options))

    return make


def _record(cell, run):
    if isinstance(run, tuple):
        return replace(_record(cell, run[0]), validation=run[1])
    if isinstance(run, str):
        status, _, message = run.partition(": ")
        return Record(key_of(cell), cell, status, message=message or None)
    if isinstance(run, int):
        run = Outcome(N_TEST, n_correct=run)
    elif isinstance(run, float):
        run = Outcome(16, sum_squared_error=16 * run)
    return Record(key_of(cell), cell, "ok", run, timing={"train": 2.5})
