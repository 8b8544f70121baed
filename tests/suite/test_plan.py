"""plan.json: its layout, and every mistake that a file of unknown origin may hold."""

import copy
import json
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.suite.mistakes import PLAIN_WORDS
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell, Search, parse_plan, plan_to_json

KEY = "0" * 64
SRC = Method("SRC", reference=False, recipe="pooled", distributions=("toys 1.0",))
TABLE = Experiment("one", "amazon", "classification", ("books",), (SRC,), (0, 1), 0.05, ("A note.",))
PLAN = Plan("toy", (TABLE,), tuple(PlannedCell("one", "SRC", "books", seed, KEY) for seed in (0, 1)))
SEARCH = Search("oracle", ({"mu": 0.1}, {"mu": 1.0}))
SELECTING = Plan(
    "toy",
    (replace(TABLE, methods=(replace(SRC, search=SEARCH),), criteria=("source_accuracy", "oracle")),),
    tuple(replace(cell, candidate=candidate) for cell in PLAN.cells for candidate in (0, 1)),
)


def read(value):
    return parse_plan(json.dumps(value).encode())


@pytest.mark.parametrize("more", ["", "select.yaml", "published.yaml"])
def test_the_plan_of_a_suite_round_trips(expanded, good, more):
    plan = expanded(good + (Path(__file__).with_name(more).read_text(encoding="utf-8") if more else "")).plan
    assert read(plan_to_json(plan)) == plan


def test_the_layout_is_pinned():
    row = {"name": "SRC", "reference": False, "recipe": "pooled", "distributions": ["toys 1.0"]}
    table = {"name": "one", "dataset": "amazon", "task": "classification", "targets": ["books"], "methods": [row]}
    cell = {"experiment": "one", "method": "SRC", "target": "books", "seed": 0, "key": KEY}
    assert plan_to_json(PLAN) == {
        "schema": 1,
        "suite": "toy",
        "experiments": [table | {"seeds": [0, 1], "notes": ["A note."]}],
        "cells": [cell, cell | {"seed": 1}],
    }
    written = plan_to_json(SELECTING)
    assert read(written) == SELECTING
    assert written["experiments"][0]["criteria"] == ["source_accuracy", "oracle"]
    search = {"by": "oracle", "candidates": [{"mu": 0.1}, {"mu": 1.0}]}
    assert written["experiments"][0]["methods"] == [row | {"search": search}]
    assert written["cells"][1] == cell | {"candidate": 1}


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("schema", 2, "is of layout 2, but this msda-bench reads 1; install a newer one"),
        ("schema", 0, "schema must be 1, not 0"),
        ("schema", True, "schema must be 1, not true"),
        ("suite", 3, "suite: must be text, not 3 (put it in quotes)"),
        ("suite", "../x", f"suite: must be {PLAIN_WORDS}, not '../x'"),
        ("more", 1, "more: unknown key"),
        ("experiments 0 seeds 1", "x", "experiments[0].seeds[1]: must be a whole number, not 'x'"),
        ("experiments 0 alpha", float("nan"), "NaN is not a usable number"),
        ("experiments 0 alpha", 10**400, "a whole number of 401 digits"),
        ("experiments 0 alpha", 7, "experiments[0].alpha: must be less than 1, not 7"),
        ("experiments 0 baseline", "X", "the baseline of one is none of its methods"),
        ("experiments 0 against", "X", "the method to compare against of one is none of"),
        ("experiments 0 headroom", "X", "the headroom of one is none of its methods"),
        ("experiments 0 methods 0 name", "<b>", f"experiments[0].methods[0].name: must be {PLAIN_WORDS}, not '<b>'"),
        ("experiments 0 targets", [], "experiments[0].targets: must have at least 1 item"),
        ("experiments 0 methods", [], "experiments[0].methods: must have at least 1 item"),
        ("experiments 0 seeds", [0, 0], "two seeds of one are the same"),
        ("experiments 0 criteria", ["oracle"], "one has criteria to select settings by, but"),
        ("experiments 0 notes", ["x" * 10_001], "experiments[0].notes[0]: String should have"),
        ("experiments", 2 * plan_to_json(PLAN)["experiments"], "two experiments have the same name"),
        ("cells", {}, "cells: must be a list, not an empty mapping"),
        ("cells 0 key", "../x", "cells[0].key: must match ^[0-9a-f]{64}$, not '../x'"),
        ("cells 1 method", "X", "cells[1] belongs to none of its experiments"),
        ("cells 1 experiment", "X", "cells[1] belongs to none of its experiments"),
        ("cells 1 target", "X", "cells[1] belongs to none of its experiments"),
        ("cells 1 seed", 2, "cells[1] belongs to none of its experiments"),
        ("cells 1 seed", 0, "cells[1] is the same run as another"),
    ],
)
def test_invalid_plans_are_refused(path, value, text):
    plain = copy.deepcopy(plan_to_json(PLAN))
    *above, last = [int(part) if part.isdigit() else part for part in path.split()]
    reduce(getitem, above, plain)[last] = value
    with pytest.raises(StoreError) as caught:
        read(plain)
    (line,) = caught.value.lines
    assert line.removeprefix("plan.json: ").removeprefix("not a plan: ").startswith(text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda cells: cells[0].update(candidate=2), "cells[0].candidate must be one of its method's, not 2"),
        (lambda cells: cells[0].pop("candidate"), "cells[0].candidate must be one of its method's, not null"),
        (lambda cells: cells.pop(0), "the run of SRC at target books, seed 0 is missing candidates"),
    ],
)
def test_invalid_candidates_are_refused(change, text):
    written = plan_to_json(SELECTING)
    change(written["cells"])
    with pytest.raises(StoreError, match=f"^plan.json: not a plan: {text.replace('[', '.').replace(']', '.')}$"):
        read(written)


@pytest.mark.parametrize(("seeds", "targets"), [(range(1000), range(1000)), (range(5001), range(1))])
def test_a_small_plan_of_very_many_runs_costs_neither_time_nor_memory(seeds, targets):
    plain = plan_to_json(PLAN)
    plain["experiments"][0] |= {"seeds": list(seeds), "targets": ["books", *map(str, targets)]}
    runs = len(seeds) * (len(targets) + 1)
    with pytest.raises(StoreError, match=f"^plan.json: not a plan: its experiments name {runs} runs, and its cells 2;"):
        read(plain)
