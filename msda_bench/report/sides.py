"""Two result folders beside each other: which experiments, methods, targets and seeds pair, and what differs."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from msda_bench.errors import BenchError
from msda_bench.report.changes import Change, find_changes
from msda_bench.report.folder import Folder
from msda_bench.report.made import Made, runs_made
from msda_bench.stats.difference import Difference
from msda_bench.stats.scores import Scores, collect_scores
from msda_bench.stats.two_folders import compare_sides
from msda_bench.store.codec import same_result
from msda_bench.suite.mistakes import hint, shown
from msda_bench.suite.plan import Experiment

_Identity: TypeAlias = Callable[[Experiment], tuple[str, ...]]
_BY_NAME: _Identity = operator.attrgetter("name", "dataset", "task")
_BY_DATASET: _Identity = operator.attrgetter("dataset", "task")


@dataclass(frozen=True)
class Only:
    """What only one side of a pair of experiments has."""

    methods: tuple[str, ...]
    targets: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Pairing:
    """An experiment of folder A and the one of folder B beside it.

    Attributes:
        a: the scores of A.
        b: those of B.
        methods: which method of A stands beside which of B.
        differences: theirs.
        changes: what is not the same in the records of paired runs.
        only_a: what only A has.
        only_b: what only B has.
        n_runs: runs that both plan.
        n_paired: of these, runs that are ok in both.
        n_same_cell: of these, runs of the same cell.
        n_same_result: of these, runs with the same result, to the last bit and curves included.
    """

    a: Scores
    b: Scores
    methods: tuple[tuple[str, str], ...]
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    only_a: Only
    only_b: Only
    n_runs: int
    n_paired: int
    n_same_cell: int
    n_same_result: int


@dataclass(frozen=True)
class Sides:
    """Two folders beside each other.

    Attributes:
        a: the first folder.
        b: the second.
        pairings: the experiments that both have, in A's order.
        only_a: the experiments that only A has.
        only_b: those that only B has.
    """

    a: Folder
    b: Folder
    pairings: tuple[Pairing, ...]
    only_a: tuple[Experiment, ...]
    only_b: tuple[Experiment, ...]


def set_beside(a: Folder, b: Folder, match: Mapping[str, str]) -> Sides:
    """Pairs what has the same name in both folders.

    Experiments pair by name, and one that is left on each side pairs if both are of the same dataset.

    Args:
        a: the first folder.
        b: the second, whose scores count as positive differences where they are better.
        match: methods of A that stand beside one of another name in B.

    Raises:
        BenchError: a method to match is not there.
        StoreError: a record is ok without a possible outcome.
    """
    _check(a, "A", match.keys())
    _check(b, "B", match.values())
    couples = _couples(a.plan.experiments, b.plan.experiments)
    scores_a, scores_b = (
        {one.experiment.name: one for one in collect_scores(side.told_plan, side.records)} for side in (a, b)
    )
    runs_a, runs_b = (runs_made(side.plan, side.records) for side in (a, b))
    return Sides(
        a,
        b,
        tuple(_pair(scores_a[one], scores_b[other], runs_a[one], runs_b[other], match) for one, other in couples),
        tuple(table for table in a.plan.experiments if table.name not in {one for one, _ in couples}),
        tuple(table for table in b.plan.experiments if table.name not in {other for _, other in couples}),
    )


def _check(folder: Folder, side: str, names: Iterable[str]) -> None:
    known = list(dict.fromkeys(row.name for table in folder.plan.experiments for row in table.methods))
    if absent := [name for name in names if name not in known]:
        raise BenchError(*(f"--match: {side} has no method {shown(name)}{hint(name, known)}" for name in absent))


def _couples(a: Sequence[Experiment], b: Sequence[Experiment]) -> list[tuple[str, str]]:
    """Names of A's and B's experiments that stand beside each other, in A's order."""
    found: dict[str, str] = {}
    for of in _BY_NAME, _BY_DATASET:
        left = [table for table in a if table.name not in found]
        right = [table for table in b if table.name not in found.values()]
        counts = Counter(map(of, left)), Counter(map(of, right))
        for table in left:
            if counts[0][of(table)] == counts[1][of(table)] == 1:
                found[table.name] = next(other.name for other in right if of(other) == of(table))
    return [(table.name, found[table.name]) for table in a if table.name in found]


def _pair(a: Scores, b: Scores, runs_a: Sequence[Made], runs_b: Sequence[Made], match: Mapping[str, str]) -> Pairing:
    one, other = a.experiment, b.experiment
    theirs = {row.name for row in other.methods}
    methods = tuple((row.name, match.get(row.name, row.name)) for row in one.methods)
    methods = tuple(names for names in methods if names[1] in theirs)
    common = replace(
        one,
        methods=tuple(row for row in one.methods if row.name in dict(methods)),
        targets=tuple(target for target in one.targets if target in other.targets),
        seeds=tuple(seed for seed in one.seeds if seed in other.seeds),
    )
    runs = _paired(runs_a, runs_b, dict(methods))
    ok = [(mine, their) for mine, their in runs if _is_ok(mine) and _is_ok(their)]
    same = [(mine, their) for mine, their in ok if mine.key == their.key]
    return Pairing(
        a=a,
        b=b,
        methods=methods,
        differences=compare_sides(a, b, methods),
        changes=find_changes(runs),
        only_a=_only(one, other, {name for name, _ in methods}),
        only_b=_only(other, one, {name for _, name in methods}),
        n_runs=len(methods) * len(common.targets) * len(common.seeds),
        n_paired=len(ok),
        n_same_cell=len(same),
        n_same_result=sum(
            same_result(mine.record, their.record) for mine, their in same if mine.record and their.record
        ),
    )


def _paired(a: Sequence[Made], b: Sequence[Made], methods: Mapping[str, str]) -> list[tuple[Made, Made]]:
    theirs = {(run.method, run.target, run.seed): run for run in b}
    found = ((run, theirs.get((methods.get(run.method, ""), run.target, run.seed))) for run in a)
    return [(mine, their) for mine, their in found if their is not None]


def _is_ok(run: Made) -> bool:
    return run.record is not None and run.record.status == "ok"


def _only(one: Experiment, other: Experiment, paired: set[str]) -> Only:
    return Only(
        methods=tuple(row.name for row in one.methods if row.name not in paired),
        targets=tuple(target for target in one.targets if target not in other.targets),
        seeds=tuple(seed for seed in one.seeds if seed not in other.seeds),
    )
