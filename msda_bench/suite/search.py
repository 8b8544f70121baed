"""The search of each method: the paths that it may set, their checks, and its candidates, of a grid or drawn."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any, TypeAlias

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from msda_bench.api import Backbone, NonNegative, Predictor
from msda_bench.component.sizes import HOLD_OUT
from msda_bench.errors import PluginError, message_of
from msda_bench.functional import random
from msda_bench.suite.choice import Configured, with_param
from msda_bench.suite.issues import Loc, ValidationIssue, explain, hint, shown
from msda_bench.suite.plan import CHANCE, FIRST, ORACLE, SELECTED_BY, TARGET_ACCURACY, Search, parts_of
from msda_bench.suite.protocol import TrainingConfig
from msda_bench.suite.resolved import ResolvedExperiment
from msda_bench.suite.spec import ExperimentFile, MethodSpec, SelectSpec

Space: TypeAlias = Mapping[str, tuple[Any, ...]]
"""The values of each parameter, by its path."""
_ATTEMPTS = 64
"""Attempts for each candidate, since duplicates are drawn again."""
_MOST_SHARED = 10_000
"""The size up to which a grid is listed to draw from it."""
_PROTOCOL = tuple(name for name in TrainingConfig.model_fields if name not in {"optimizer", "stages"})


@dataclass(frozen=True)
class Settings:
    """All settings that a search may change for a method: its own parts, its network and its protocol."""

    method: MethodSpec
    backbone: Configured[Backbone]
    training: TrainingConfig

    @classmethod
    def of(cls, method: MethodSpec, backbone: Configured[Backbone], training: TrainingConfig) -> Settings:
        """The settings of a method, whose own training replaces the suite's key by key."""
        return cls(method, backbone, training.model_copy(update=method.training.given))

    @property
    def values(self) -> dict[str, Any]:
        """What the paths, such as mu or training.optimizer.adadelta.lr, are set to, as plain JSON values.

        A scheme without steps has its own alone.
        """
        scheme, optimizer = self.method.scheme.component, self.training.optimizer
        own = {
            f"{kind}.{part.name}.{param}": value
            for kind, part in self._components().items()
            for param, value in part.params.items()
        }
        if isinstance(scheme, Predictor):
            return {path: value for path, value in own.items() if path.startswith("scheme.")}
        mu = {"mu": self.method.mu} if scheme.uses_mu and (self.method.adapts or not scheme.uses_discrepancy) else {}
        training = {name: getattr(self.training, name) for name in _PROTOCOL}
        training |= {f"optimizer.{optimizer.name}.{param}": value for param, value in optimizer.params.items()}
        every = mu | own | {f"training.{name}": value for name, value in training.items()}
        plain: dict[str, Any] = TypeAdapter(Any).dump_python(every, mode="json")
        return plain

    def having(self, path: str, value: Any) -> Settings:
        """The settings with one of the paths set to a plain JSON value; `refusal_of` puts its exceptions in words."""
        kind, _, rest = path.partition(".")
        if kind == "training":
            optimizer, changed = self.training.optimizer, {rest: value}
            if rest not in _PROTOCOL:
                changed = {"optimizer": {optimizer.name: optimizer.params | {rest.rpartition(".")[2]: value}}}
            return replace(self, training=TrainingConfig.model_validate(dict(self.training) | changed))
        if kind == "mu":
            part: Any = TypeAdapter(NonNegative).validate_python(value, strict=True)
        else:
            part = with_param(self._components()[kind], rest.rpartition(".")[2], value)
        if kind == "backbone":
            return replace(self, backbone=part)
        return replace(self, method=self.method.model_copy(update={kind: part}))

    def refusal_of(self, path: str, value: Any) -> str | None:
        """Why a path cannot have a value, in words that follow the value's place; None if it can."""
        try:
            self.having(path, value)
        except ValidationError as error:
            return explain(error.errors(include_url=False)[0])
        except PluginError as error:
            return message_of(error, 1000)
        return None

    def _components(self) -> dict[str, Configured[Any]]:
        parts = {kind: getattr(self.method, kind) for kind in ("scheme", "discrepancy", "aggregator")}
        return {kind: part for kind, part in {**parts, "backbone": self.backbone}.items() if part is not None}


def grid(space: Space) -> list[dict[str, Any]]:
    """All candidates of a space, the last path varying fastest; an empty space has one without settings."""
    return [dict(zip(space, candidate, strict=True)) for candidate in product(*space.values())]


def draws(space: Space, budget: int, owner: tuple[str, str]) -> list[dict[str, Any]]:
    """Different random candidates: those of a smaller budget are the first of a larger one's.

    Each path has its own counter-based stream, so draws depend only on the arguments; `owner` names the suite and the
    method. There are fewer than the budget if the space has no more.
    """
    if math.prod(map(len, space.values())) <= budget:
        return grid(space)
    streams = [random.uniform(_key(*owner, path), (_ATTEMPTS * budget,)).tolist() for path in space]
    candidates: list[dict[str, Any]] = []
    for at in zip(*streams, strict=True):
        drawn = {path: values[int(u * len(values))] for (path, values), u in zip(space.items(), at, strict=True)}
        if drawn not in candidates:
            candidates.append(drawn)
        if len(candidates) == budget:
            break
    return candidates


def _rounds(points: Sequence[dict[str, Any]], budget: int, *purpose: str) -> list[dict[str, Any]]:
    """All points in a random order, and again in others; enough for a budget, and a whole round after it."""
    size = len(points)
    rounds = -(-budget // size) + 1
    drawn = random.uniform(_key(*purpose), (rounds, size)).tolist()
    return [points[place] for numbers in drawn for place in sorted(range(size), key=numbers.__getitem__)]


def _key(*purpose: str) -> Tensor:
    digest = hashlib.sha256(json.dumps(["search", *purpose]).encode()).digest()
    halves = [int.from_bytes(digest[at : at + 4], "big", signed=True) for at in (0, 4)]
    return torch.tensor(halves, dtype=torch.int32)


def candidates_of(experiment: ExperimentFile, name: str) -> tuple[Search | None, tuple[Settings, ...]]:
    """The search of a method of a checked experiment, and the settings of its candidates.

    If the suite selects nothing, the search is None, and the only candidate has the method's own settings.
    """
    usual = Settings.of(experiment.methods[name], experiment.backbone, experiment.training)
    select = experiment.select
    if select is None:
        return None, (usual,)
    tried = _tried(select, usual, (experiment.name, name))
    scheme, by = usual.method.scheme.component, select.by
    if scheme.needs_target_labels:  # validators on the sources make no sense for an oracle
        by = TARGET_ACCURACY if scheme.target_holdout else ORACLE
    search = Search(by, tuple(values for values, _ in tried))
    return search, tuple(settings for _, settings in tried)


def _tried(select: SelectSpec, usual: Settings, owner: tuple[str, str]) -> list[tuple[dict[str, Any], Settings]]:
    """The values and settings of each candidate of a method."""
    space = space_of(select, usual)
    if select.how == "shared":
        return _shared(select, usual, owner)
    candidates = grid(space) if select.how == "grid" else draws(space, select.budget, owner)
    return [(values, _with(usual, values)) for values in candidates]


def _shared(select: SelectSpec, usual: Settings, owner: tuple[str, str]) -> list[tuple[dict[str, Any], Settings]]:
    """A method's own settings, then different ones drawn from the suite's axes and the method's own.

    The points of the shared grid come in rounds, each a random order of all of them, drawn for the experiment, and so
    the same for all of its methods; those of the method's own grid likewise, drawn for the method. Place i tries the
    i-th shared point with the i-th own one and those after it. Places where none of these is new come once more, with
    the shared points after those of the budget.
    """
    space, usually, budget = space_of(select, usual), usual.values, select.budget
    shared = _rounds(grid(select.space), budget, "shared", owner[0])
    mine = _rounds(grid(usual.method.search), budget, "shared", *owner)
    tried = {-1: ({path: usually[path] for path in space}, usual)}
    for points in ([[point] for point in shared[: budget - 1]], [shared[budget - 1 :]] * (budget - 1)):
        for place, some in enumerate(points):
            if place in tried:
                continue
            known = [settings for _, settings in tried.values()]
            for point, way in product(some, mine[place:] + mine[:place]):
                drawn = point | way
                values = {path: drawn[path] for path in space}
                settings = _with(usual, values)
                if settings not in known:
                    tried[place] = values, settings
                    break
    return [tried[place] for place in sorted(tried)]


def _with(usual: Settings, values: Mapping[str, Any]) -> Settings:
    return reduce(lambda settings, item: settings.having(*item), values.items(), usual)


def space_of(select: SelectSpec, settings: Settings) -> Space:
    """The suite's space, restricted to the method's parameters, and the method's own, which has precedence."""
    known = settings.values
    return {path: values for path, values in select.space.items() if path in known} | settings.method.search


def check_search(facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """The mistakes in `select` and `search`; checks that need missing parts are skipped."""
    select, methods = facts.file.select, facts.file.methods
    if select is None:
        for name, method in methods.items() if "select" in facts.file.model_fields_set else ():
            if method.search:
                yield ValidationIssue(
                    ("methods", name, "search"), "searches nothing without select in the suite", "key"
                )
        return
    yield from _criterion(select, facts)
    if facts.backbone and facts.training and methods:
        settings = {name: Settings.of(method, facts.backbone, facts.training) for name, method in methods.items()}
        yield from _space(select, settings)
        yield from _grid_sizes(select, settings)


def _criterion(select: SelectSpec, facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    for index, name in enumerate(facts.validators):
        if name in (ORACLE, CHANCE, FIRST, TARGET_ACCURACY):
            what = f"{name} has another meaning in select; it cannot be a validator's name"
            yield ValidationIssue(("validators", index), what)
    yield from _tuning(select, facts)
    tracks: list[tuple[Loc, str]] = [(("select", "tracks", index), by) for index, by in enumerate(select.tracks)]
    for loc, by in [(("select", "by"), select.by), *tracks]:
        sums = select.seeds is not None and len(parts_of(by)) > 1
        known = [*facts.validators, *([] if sums else [ORACLE])]
        known += [FIRST] if select.seeds is not None and not sums else []
        for name in parts_of(by) if sums else [by]:
            if name not in known:
                exhausted = facts.file.validators is None and name == facts.task.rules.validator
                why = f"needs held-out examples of the sources, and none are left; {HOLD_OUT}"
                unknown = f"is not a validator of the suite{hint(name, known)}"
                yield ValidationIssue(loc, f"{shown(name)} {why if exhausted else unknown}")
        if sums and len(set(parts_of(by))) < len(parts_of(by)):
            yield ValidationIssue(loc, f"{shown(by)} names a criterion twice")


def _tuning(select: SelectSpec, facts: ResolvedExperiment) -> Iterator[ValidationIssue]:
    """Tuning seeds that the suite's tables use, and tracks without tuning seeds or the suite's own criterion."""
    if select.seeds is None:
        if select.tracks:
            what = "are of settings that are chosen once; add the seeds to choose on, such as seeds: [100, 101]"
            yield ValidationIssue(("select", "tracks"), what, "key")
        return
    for seed in facts.file.seeds if "seeds" in facts.file.model_fields_set else ():
        if seed in select.seeds:
            yield ValidationIssue(("select", "seeds"), f"has {seed}, a seed of the suite's tables; choose on others")
            break
    if select.tracks and select.by not in select.tracks:
        yield ValidationIssue(
            ("select", "tracks"), f"must have {shown(select.by)}, by which the tables' settings are chosen"
        )
    if len(set(select.tracks)) < len(select.tracks):
        yield ValidationIssue(("select", "tracks"), "names a criterion twice")


def _space(select: SelectSpec, methods: Mapping[str, Settings]) -> Iterator[ValidationIssue]:
    """Paths that no method has, values that a method refuses, and ranges that a grid cannot enumerate."""
    known = dict.fromkeys(path for settings in methods.values() for path in settings.values)
    for path, values in select.space.items():
        loc: Loc = ("select", "space", path)
        if path not in known:
            yield ValidationIssue(loc, f"no method has this parameter{hint(path, known)}", "key")
        sharing = [settings for settings in methods.values() if path not in settings.method.search]
        yield from _refused(loc, path, values, sharing)
    for name, settings in methods.items():
        for path, values in settings.method.search.items():
            loc = ("methods", name, "search", path)
            if path not in settings.values:
                yield ValidationIssue(loc, f"is not a parameter of this method{hint(path, settings.values)}", "key")
            yield from _refused(loc, path, values, [settings])


def _refused(loc: Loc, path: str, values: Iterable[Any], methods: Iterable[Settings]) -> Iterator[ValidationIssue]:
    having = [settings for settings in methods if path in settings.values]
    for index, value in enumerate(values):
        if what := next(filter(None, (settings.refusal_of(path, value) for settings in having)), None):
            yield ValidationIssue((*loc, index), what)


def _grid_sizes(select: SelectSpec, methods: Mapping[str, Settings]) -> Iterator[ValidationIssue]:
    for name, settings in methods.items() if select.how != "random" else ():
        space = space_of(select, settings) if select.how == "grid" else select.space | settings.method.search
        size = math.prod(map(len, space.values()))
        if select.how == "grid" and size > select.budget:
            what = f"is {select.budget}, but the grid of {name} has {size} candidates; list fewer values or raise it"
            yield ValidationIssue(("select", "budget"), what)
        elif size > _MOST_SHARED:
            what = f"draws from a grid, and that of {name} has {size} points, more than {_MOST_SHARED}; list fewer"
            yield ValidationIssue(("select", "how"), f"{what} values")
            return


def select_notes(select: SelectSpec, tried: Mapping[str, Search | None]) -> Iterator[str]:
    """Notes for the reader on how settings were selected, from the search of each method."""
    drawn = {
        "random": "drawn at random",
        "grid": "of a grid",
        "shared": "(the method's own settings, and others drawn from axes that all methods share and one of its own)",
    }[select.how]
    if select.seeds is None:
        yield f"{SELECTED_BY} {_by(select.by)}, for each target and seed, among {select.budget} candidates {drawn}."
    else:
        yield f"Candidates: {select.budget} of each method, {drawn.strip('()')}."
    searches = {name: search for name, search in tried.items() if search is not None}
    counts = {name: len(search.candidates) for name, search in searches.items()}
    fewer = ", ".join(f"{name} {count}" for name, count in counts.items() if count < select.budget)
    if fewer:
        yield f"Fewer candidates than {select.budget}, since the search space has no more: {fewer}."
    for by in (TARGET_ACCURACY, ORACLE) if select.seeds is None else ():
        others = ", ".join(name for name, search in searches.items() if search.by == by != select.by)
        if others:
            yield f"Trained with the target's labels, and so selected {_by(by)}: {others}."


def source_free_note(facts: ResolvedExperiment) -> Iterator[str]:
    """A note on methods that adapt without the sources, if scores of source examples select their settings."""
    select = facts.file.select
    scores = {validator.name for validator in facts.file.validators or () if not validator.component.needs_sources}
    if select is None or scores.union([ORACLE, FIRST]).issuperset(parts_of(select.by)):
        return
    last = {name: method.scheme.component.stages[-1] for name, method in facts.file.methods.items()}
    names = ", ".join(name for name, stage in last.items() if "sources" not in stage.sees)
    if names:
        what = (
            f"adapt without the sources, whose scores fall meanwhile, so {select.by} favours settings that adapt least"
        )
        yield f"{names}: {what}; see infomax in docs/selection.md."


def _by(by: str) -> str:
    if by == ORACLE:
        return "by oracle, the score on the target's own test labels, which are not available in practice"
    if by == TARGET_ACCURACY:
        return f"by {by}, the score on labelled training examples of the target that are held out from them"
    return f"by {by}, without target labels"
