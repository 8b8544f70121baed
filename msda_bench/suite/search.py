"""The search of each method of an experiment: its candidates, and what they are selected by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Search
from msda_bench.suite.search_candidates import draws, grid
from msda_bench.suite.search_paths import Parts, settable, with_setting
from msda_bench.suite.search_space import Dimension
from msda_bench.suite.spec import ExperimentFile, MethodSpec, SelectSpec


@dataclass(frozen=True)
class Candidates:
    """What a method tries.

    Attributes:
        search: the plan's part of it; None where the suite selects nothing.
        parts: of each candidate; of the method as it is where the suite selects nothing.
        leaves_out: whether each candidate trains without one source after another, too.
    """

    search: Search | None
    parts: tuple[Parts, ...]
    leaves_out: bool


def candidates_of(experiment: ExperimentFile, name: str) -> Candidates:
    """The candidates of a method of an experiment, which has been checked."""
    parts = Parts.of(experiment.methods[name], experiment.backbone, experiment.training)
    select = experiment.select
    if select is None:
        return Candidates(None, (parts,), leaves_out=False)
    found = settings_of(select, experiment.name, name, parts)
    by = ORACLE if sees_target(parts.method) else select.by
    tried = tuple(_set(parts, settings) for settings in found)
    return Candidates(Search(by, tuple(found)), tried, leaves_out(select) and not sees_target(parts.method))


def settings_of(select: SelectSpec, suite: str, name: str, parts: Parts) -> list[dict[str, Any]]:
    """What each candidate of a method sets, by path."""
    space = space_of(select, parts)
    return grid(space) if select.how == "grid" else draws(space, select.budget, (suite, name))


def space_of(select: SelectSpec, parts: Parts) -> dict[str, Dimension]:
    """The suite's space, as far as the method has such parameters, and its own, which goes before it."""
    known = settable(parts)
    return {path: found for path, found in select.space.items() if path in known} | parts.method.search


def leaves_out(select: SelectSpec) -> bool:
    """Whether every candidate trains without one source after another, too."""
    return select.leave_one_source_out or select.by == LEAVE_ONE_OUT


def sees_target(method: MethodSpec) -> bool:
    """Whether a method is an oracle by itself, on which validators of the sources have nothing to say."""
    return method.scheme.component.needs_target_labels


def select_notes(select: SelectSpec, searches: Mapping[str, Search]) -> Iterator[str]:
    """What a reader must know of how settings were selected.

    Args:
        select: the suite's.
        searches: by method.
    """
    drawn = "drawn at random" if select.how == "random" else "of a grid"
    yield f"Settings selected {_means(select.by)}, for each target and seed, among {select.budget} candidates {drawn}."
    fewer = [
        f"{name} {len(search.candidates)}"
        for name, search in searches.items()
        if len(search.candidates) < select.budget
    ]
    if fewer:
        yield f"Fewer candidates than {select.budget}, since the search space has no more: {', '.join(fewer)}."
    others = [name for name, search in searches.items() if search.by != select.by]
    if others:
        yield f"Trained with the target's labels, and so selected {_means(ORACLE)}: {', '.join(others)}."


def _means(by: str) -> str:
    if by == ORACLE:
        return "by oracle, the score on the target's own test labels, which nobody has"
    return f"by {by}, without target labels"


def _set(parts: Parts, settings: Mapping[str, Any]) -> Parts:
    for path, value in settings.items():
        parts = with_setting(parts, path, value)
    return parts
