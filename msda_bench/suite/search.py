"""The search of each method: the paths that it may set, and its candidates, from a grid or drawn."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, TypeAlias

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from msda_bench.api import Backbone, NonNegative, Predictor
from msda_bench.errors import PluginError, message_of
from msda_bench.functional import random
from msda_bench.suite.choice import Configured, with_param
from msda_bench.suite.issues import explain
from msda_bench.suite.plan import ORACLE, TARGET_ACCURACY, Search
from msda_bench.suite.protocol import TrainingConfig
from msda_bench.suite.spec import ExperimentFile, MethodSpec, SelectSpec

Space: TypeAlias = Mapping[str, tuple[Any, ...]]
"""The values of each parameter, by its path."""
_ATTEMPTS = 64
"""Attempts for each candidate, since duplicates are drawn again."""
_TRAINING = tuple(name for name in TrainingConfig.model_fields if name not in {"optimizer", "stages"})
"""The keys of training that a path can name, beside those of the optimizer."""


@dataclass(frozen=True)
class Settings:
    """All settings that a search may change for a method: its own parts, its network and its protocol.

    `changes` are the values that make a candidate of it, by path.
    """

    method: MethodSpec
    backbone: Configured[Backbone]
    training: TrainingConfig
    changes: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, method: MethodSpec, backbone: Configured[Backbone], training: TrainingConfig) -> Settings:
        """The settings of a method, whose own training replaces the suite's key by key."""
        return cls(method, backbone, training.model_copy(update=method.training.given))

    @property
    def values(self) -> dict[str, Any]:
        """The values of all paths, such as mu or training.optimizer.adadelta.lr, as plain JSON.

        A scheme without steps has only its own parameters.
        """
        scheme = self.method.scheme.component
        values: dict[str, Any] = {}
        if scheme.uses_mu and (self.method.adapts or not scheme.uses_discrepancy):
            values["mu"] = self.method.mu
        for kind, part in self._components().items():
            for param, value in part.params.items():
                values[f"{kind}.{part.name}.{param}"] = value
        if isinstance(scheme, Predictor):
            return {path: value for path, value in values.items() if path.startswith("scheme.")}
        for name in _TRAINING:
            values[f"training.{name}"] = getattr(self.training, name)
        optimizer = self.training.optimizer
        for param, value in optimizer.params.items():
            values[f"training.optimizer.{optimizer.name}.{param}"] = value
        plain: dict[str, Any] = TypeAdapter(Any).dump_python(values, mode="json")
        return plain

    def having(self, path: str, value: Any) -> Settings:
        """The settings with one of the paths set to a plain JSON value; `refusal_of` puts its exceptions in words."""
        kind, _, rest = path.partition(".")
        param = rest.rpartition(".")[2]
        if kind == "training":
            return replace(self, training=self._trained_with(rest, param, value))
        if kind == "backbone":
            return replace(self, backbone=with_param(self.backbone, param, value))
        part: Any
        if kind == "mu":
            part = TypeAdapter(NonNegative).validate_python(value, strict=True)
        else:
            part = with_param(getattr(self.method, kind), param, value)
        return replace(self, method=self.method.model_copy(update={kind: part}))

    def _trained_with(self, name: str, param: str, value: Any) -> TrainingConfig:
        changed = {name: value}
        if name not in _TRAINING:
            optimizer = self.training.optimizer
            changed = {"optimizer": {optimizer.name: optimizer.params | {param: value}}}
        return TrainingConfig.model_validate(dict(self.training) | changed)

    def with_all(self, values: dict[str, Any]) -> Settings:
        """The settings with each of these paths set."""
        settings = replace(self, changes=values)
        for path, value in values.items():
            settings = settings.having(path, value)
        return settings

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
        method = self.method
        parts = {
            "scheme": method.scheme,
            "discrepancy": method.discrepancy,
            "aggregator": method.aggregator,
            "backbone": self.backbone,
        }
        return {kind: part for kind, part in parts.items() if part is not None}


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
    for numbers in zip(*streams, strict=True):
        drawn = {}
        for (path, values), number in zip(space.items(), numbers, strict=True):
            drawn[path] = values[int(number * len(values))]
        if drawn not in candidates:
            candidates.append(drawn)
        if len(candidates) == budget:
            break
    return candidates


def _rounds(points: Sequence[dict[str, Any]], budget: int, *purpose: str) -> list[dict[str, Any]]:
    """All points in a random order, and again in others; enough for a budget, and a whole round after it."""
    size = len(points)
    rounds = math.ceil(budget / size) + 1
    orders = random.uniform(_key(*purpose), (rounds, size)).argsort(stable=True)
    return [points[place] for place in orders.flatten().tolist()]


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
    tried = tuple(_tried(select, usual, (experiment.name, name)))
    scheme, by = usual.method.scheme.component, select.by
    if scheme.needs_target_labels:  # validators on the sources make no sense for an oracle
        by = TARGET_ACCURACY if scheme.target_holdout else ORACLE
    return Search(by, tuple(settings.changes for settings in tried)), tried


def _tried(select: SelectSpec, usual: Settings, owner: tuple[str, str]) -> list[Settings]:
    """The settings of each candidate of a method."""
    if select.how == "shared":
        return _shared(select, usual, owner)
    space = space_of(select, usual)
    candidates = grid(space) if select.how == "grid" else draws(space, select.budget, owner)
    return [usual.with_all(values) for values in candidates]


def _shared(select: SelectSpec, usual: Settings, owner: tuple[str, str]) -> list[Settings]:
    """A method's own settings, then different ones drawn from the suite's axes and the method's own.

    The points of the shared grid come in rounds, each a random order of all of them, drawn for the experiment, and so
    the same for all of its methods; those of the method's own grid likewise, drawn for the method. Place i tries the
    i-th shared point with the i-th own one and those after it. Places where none of these is new are tried once more,
    with the shared points after those of the budget.
    """
    space, usual_values, places = space_of(select, usual), usual.values, select.budget - 1
    shared = _rounds(grid(select.space), select.budget, "shared", owner[0])
    own = _rounds(grid(usual.method.search), select.budget, "shared", *owner)
    tried = {-1: replace(usual, changes={path: usual_values[path] for path in space})}
    for once_more, place in product((False, True), range(places)):
        if place in tried:
            continue
        points = shared[places:] if once_more else [shared[place]]
        for common, mine in product(points, [*own[place:], *own[:place]]):
            drawn = common | mine
            settings = usual.with_all({path: drawn[path] for path in space})
            if settings not in tried.values():
                tried[place] = settings
                break
    return [tried[place] for place in sorted(tried)]


def space_of(select: SelectSpec, settings: Settings) -> Space:
    """The suite's space for the method's parameters, overridden by the method's own."""
    known = settings.values
    return {path: values for path, values in select.space.items() if path in known} | settings.method.search
