"""Checks of `select` and of each method's `search`: criteria, tuning seeds, paths and their values, sizes of grids."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msda_bench.component.sizes import HOLD_OUT
from msda_bench.suite.issues import Issues, Loc, ValidationIssue, hint, shown_value
from msda_bench.suite.plan import CHANCE, FIRST, ORACLE, TARGET_ACCURACY, parts_of
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.search import Settings, space_of
from msda_bench.suite.spec import ExperimentFile, SelectSpec

_MOST_SHARED = 10_000
"""The size up to which a grid is listed to draw from it."""


def check_search(experiment: ResolvedExperiment) -> Issues:
    """The mistakes in `select` and `search`; checks that need missing parts are skipped."""
    file, methods = experiment.file, experiment.file.methods
    select = file.select
    if select is not None:
        yield from _criteria(select, experiment)
        yield from _tuning(select, file)
        if file.backbone and file.training and methods:
            settings = {name: Settings.of(method, file.backbone, file.training) for name, method in methods.items()}
            yield from _space(select, settings)
            yield from _grid_sizes(select, settings)
    elif "select" in file.model_fields_set:
        for name, method in methods.items():
            if method.search:
                what = "has no effect without select in the suite"
                yield ValidationIssue(("methods", name, "search"), what, "key")


def _criteria(select: SelectSpec, experiment: ResolvedExperiment) -> Issues:
    for index, name in enumerate(experiment.validators):
        if name in (ORACLE, CHANCE, FIRST, TARGET_ACCURACY):
            what = f"{name} has another meaning in select; it cannot be a validator's name"
            yield ValidationIssue(("validators", index), what)
    criteria: list[tuple[Loc, str]] = [(("select", "by"), select.by)]
    for index, by in enumerate(select.tracks):
        criteria.append((("select", "tracks", index), by))
    for loc, by in criteria:
        for what in _unusable(by, select, experiment):
            yield ValidationIssue(loc, what)


def _unusable(by: str, select: SelectSpec, experiment: ResolvedExperiment) -> Iterator[str]:
    """Why settings cannot be selected by a criterion, which is a sum of validators on tuning seeds."""
    names, known = [by], [*experiment.validators]
    if select.seeds is not None and len(parts_of(by)) > 1:
        names = parts_of(by)
    else:
        known.append(ORACLE)
        if select.seeds is not None:
            known.append(FIRST)
    for name in names:
        if name in known:
            continue
        if experiment.file.validators is None and name == experiment.task.rules.validator:
            yield f"{shown_value(name)} needs held-out examples of the sources, and none are left; {HOLD_OUT}"
        else:
            yield f"{shown_value(name)} is not a validator of the suite{hint(name, known)}"
    if len(set(names)) < len(names):
        yield f"{shown_value(by)} names a criterion twice"


def _tuning(select: SelectSpec, file: ExperimentFile) -> Issues:
    """Tuning seeds that the suite's tables use, and tracks without tuning seeds or without `by`."""
    loc = ("select", "tracks")
    if select.seeds is None:
        if select.tracks:
            what = "need tuning seeds; add them, such as seeds: [100, 101]"
            yield ValidationIssue(loc, what, "key")
        return
    if "seeds" in file.model_fields_set:
        shared = [seed for seed in file.seeds if seed in select.seeds]
        if shared:
            what = f"has {shared[0]}, which is a seed of the suite, too; use other tuning seeds"
            yield ValidationIssue(("select", "seeds"), what)
    if select.tracks and select.by not in select.tracks:
        yield ValidationIssue(loc, f"must contain {shown_value(select.by)}, the criterion of the tables")
    if len(set(select.tracks)) < len(select.tracks):
        yield ValidationIssue(loc, "names a criterion twice")


def _space(select: SelectSpec, methods: Mapping[str, Settings]) -> Issues:
    """Paths that no method has, and values that a method refuses."""
    known = {name: settings.values for name, settings in methods.items()}
    paths = dict.fromkeys(path for values in known.values() for path in values)
    for path, values in select.space.items():
        loc: Loc = ("select", "space", path)
        if path not in paths:
            yield ValidationIssue(loc, f"no method has this parameter{hint(path, paths)}", "key")
        sharing = [name for name in methods if path in known[name] and path not in methods[name].method.search]
        yield from _refused(loc, path, values, [methods[name] for name in sharing])
    for name, settings in methods.items():
        for path, values in settings.method.search.items():
            loc = ("methods", name, "search", path)
            if path in known[name]:
                yield from _refused(loc, path, values, [settings])
            else:
                yield ValidationIssue(loc, f"is not a parameter of this method{hint(path, known[name])}", "key")


def _refused(loc: Loc, path: str, values: Iterable[Any], methods: Iterable[Settings]) -> Issues:
    for index, value in enumerate(values):
        for settings in methods:
            what = settings.refusal_of(path, value)
            if what is not None:
                yield ValidationIssue((*loc, index), what)
                break


def _grid_sizes(select: SelectSpec, methods: Mapping[str, Settings]) -> Issues:
    if select.how == "random":
        return
    for name, settings in methods.items():
        space = space_of(select, settings) if select.how == "grid" else select.space | settings.method.search
        size = math.prod(map(len, space.values()))
        if select.how == "grid" and size > select.budget:
            what = f"is {select.budget}, but the grid of {name} has {size} candidates; list fewer values or raise it"
            yield ValidationIssue(("select", "budget"), what)
        elif size > _MOST_SHARED:
            what = f"draws from a grid, and that of {name} has {size} points, more than {_MOST_SHARED}; list fewer"
            yield ValidationIssue(("select", "how"), f"{what} values")
            return
