"""plan.json: its layout, every mistake that a file of unknown origin may hold, and the part that `--only` names."""

import copy
import json
import re
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.errors import BenchError, StoreError
from msda_bench.suite.issues import PLAIN_WORDS
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun, Search
from msda_bench.suite.plan_file import parse_plan, plan_to_json
from msda_bench.suite.subset import subset_of

KEY = "0" * 64
SRC = Method("SRC", reference=False, recipe="pooled", distributions=("toys 1.0",))
TABLE = Experiment("one", "amazon", "classification", ("books",), (SRC,), (0, 1), ("A note.",))
PLAN = Plan("toy", (TABLE,), tuple(PlannedRun("one", "SRC", "books", seed, KEY) for seed in (0, 1)))
SEARCH = Search("oracle", ({"mu": 0.1}, {"mu": 1.0}))
SELECTING = Plan(
    "toy",
    (replace(TABLE, methods=(replace(SRC, search=SEARCH),), criteria=("source_accuracy", "oracle")),),
    tuple(replace(cell, candidate=candidate) for cell in PLAN.cells for candidate in (0, 1)),
)


RUN = {"experiment": "one", "method": "SRC", "target": "books", "seed": 0, "key": KEY}


def read(value):
    return parse_plan(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("schema", 2, "is of layout 2, but this msda-bench reads 1; install a newer one"),
        ("schema", 0, "schema must be 1, not 0"),
        ("schema", True, "schema must be 1, not true"),
        ("suite", 3, "suite: must be text, not 3 (put it in quotes)"),
        ("suite", "../x", f"suite: must be {PLAIN_WORDS}, not '../x'"),
        ("more", 1, "more: unknown key"),
        ("experiments 0 methods 0 more", 1, "experiments[0].methods[0].more: unknown key"),
        ("experiments 0 seeds 1", "x", "experiments[0].seeds[1]: must be a whole number, not 'x'"),
        ("experiments 0 alpha", float("nan"), "NaN is not a usable number"),
        ("experiments 0 alpha", 10**400, "a whole number of 401 digits"),
        ("experiments 0 alpha", 7, "experiments[0].alpha: must be less than 1, not 7"),
        ("experiments 0 baseline", "X", "the baseline of one is none of its methods"),
        ("experiments 0 pairs", "some", "experiments[0].pairs: must be 'all' or 'baseline', not 'some'"),
        ("experiments 0 headroom", "X", "the headroom of one is none of its methods"),
        ("experiments 0 methods 0 name", "<b>", f"experiments[0].methods[0].name: must be {PLAIN_WORDS}, not '<b>'"),
        ("experiments 0 targets", [], "experiments[0].targets: must have at least 1 item"),
        ("experiments 0 seeds", [0, 0], "two seeds of one are the same"),
        ("experiments 0 criteria", ["oracle"], "one has criteria to select settings by, but"),
        ("experiments 0 notes", ["x" * 10_001], "experiments[0].notes[0]: String should have"),
        ("experiments", 2 * plan_to_json(PLAN)["experiments"], "two experiments have the same name"),
        ("cells", {}, "cells: must be a list, not an empty mapping"),
        ("cells 0 key", "../x", "cells[0].key: must match ^[0-9a-f]{64}$, not '../x'"),
        ("cells 1 method", "X", "cells[1] belongs to none of its experiments"),
        ("cells 1 seed", 2, "cells[1] belongs to none of its experiments"),
        ("cells 1 seed", 0, "cells[1] is the same run as another"),
        ("cells 0 candidate", 2, "cells[0].candidate must be one of its method's, not 2"),
        ("cells 0", RUN, "cells[0].candidate must be one of its method's, not null"),
        ("cells", [RUN | {"candidate": 0}], "the run of SRC at target books, seed 0 is missing candidates"),
    ],
)
def test_invalid_plans_are_refused(path, value, text):
    plain = copy.deepcopy(plan_to_json(SELECTING if "candidate" in text else PLAN))
    *above, last = [int(part) if part.isdigit() else part for part in path.split()]
    reduce(getitem, above, plain)[last] = value
    with pytest.raises(StoreError) as caught:
        read(plain)
    (line,) = caught.value.lines
    assert line.removeprefix("plan.json: ").removeprefix("not a plan: ").startswith(text)


def test_what_is_no_longer_in_plans_is_dropped_from_recorded_ones():
    plain = plan_to_json(PLAN)
    plain["experiments"][0] |= {"baseline": "SRC", "against": "SRC", "margin": 1.5, "primary": ["SRC"]}
    assert read(plain) == replace(PLAN, experiments=(replace(TABLE, baseline="SRC", pairs="baseline"),))


@pytest.mark.parametrize(("seeds", "targets"), [(range(1000), range(1000)), (range(5001), range(1))])
def test_a_small_plan_of_very_many_runs_costs_neither_time_nor_memory(seeds, targets):
    plain = plan_to_json(PLAN)
    plain["experiments"][0] |= {"seeds": list(seeds), "targets": ["books", *map(str, targets)]}
    runs = len(seeds) * (len(targets) + 1)
    with pytest.raises(
        StoreError, match=f"^plan.json: not a plan: its experiments name {runs} runs, and its `cells` 2;"
    ):
        read(plain)


def table(name, targets, methods):
    rows = tuple(Method(method, reference=False, recipe="", distributions=()) for method in methods)
    return Experiment(name, "toy", "classification", targets, rows, tuple(range(12)))


NAMES = ("Boston, MA", "A|B = C", "St. John's (NB)", "x,seed=0", '"q"')
TABLES = (table("small", ("books", *NAMES), ("SRC", "DARN")), table("large", ("mnist",), ("DARN", "MDAN")))
CELLS = tuple(
    PlannedRun(table.name, method.name, target, seed, "")
    for table in TABLES
    for method in table.methods
    for target in table.targets
    for seed in table.seeds
)
WHOLE = Plan("toy", TABLES, CELLS)


@pytest.mark.parametrize(
    ("text", "chosen"),
    {
        "method=DARN|MDAN": lambda cell: cell.method in {"DARN", "MDAN"},
        "method=DARN,method=MDAN": lambda cell: cell.method in {"DARN", "MDAN"},
        "method=DARN,target=books": lambda cell: (cell.method, cell.target) == ("DARN", "books"),
        "experiment=large": lambda cell: cell.experiment == "large",
        "seed=1-4": lambda cell: 1 <= cell.seed <= 4,
        "seed=0-1|10|007": lambda cell: cell.seed in {0, 1, 10, 7},
        "seed=5-99": lambda cell: cell.seed >= 5,
        " method = DARN | SRC , seed = 0 ": lambda cell: cell.method in {"DARN", "SRC"} and cell.seed == 0,
        "target=Boston, MA,method=SRC": lambda cell: (cell.target, cell.method) == ("Boston, MA", "SRC"),
        "method=SRC,target=mnist|Boston, MA": lambda cell: (cell.target, cell.method) == ("Boston, MA", "SRC"),
        "target='Boston, MA'|books": lambda cell: cell.target in {"Boston, MA", "books"},
        'target = "A|B = C" , seed=1': lambda cell: (cell.target, cell.seed) == ("A|B = C", 1),
        "target=St. John's (NB)|'St. John's (NB)'": lambda cell: cell.target == "St. John's (NB)",
        "target='x,seed=0'": lambda cell: cell.target == "x,seed=0",
        "target='\"q\"'": lambda cell: cell.target == '"q"',
    }.items(),
)
def test_a_selection_chooses_the_named_runs(text, chosen):
    assert subset_of(WHOLE, text) == tuple(filter(chosen, CELLS))


INVALID = Path(__file__).with_name("selections.txt").read_text()


@pytest.mark.parametrize(("text", "lines"), re.findall(r"`(.*)`\n((?: {4}.+\n)+)", INVALID))
def test_invalid_selections_are_refused(text, lines):
    with pytest.raises(BenchError) as caught:
        subset_of(WHOLE, text)
    assert [*caught.value.lines] == [line.strip() for line in lines.splitlines()]


@settings(max_examples=40)
@given(st.text(alphabet="method=seed,|-0123456789 DARN"))
def test_any_text_is_read_or_refused(text):
    try:
        cells = subset_of(WHOLE, text)
    except BenchError:
        return
    assert 1 <= len(cells) <= len(CELLS)
