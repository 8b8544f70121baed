"""The search of each method: the parameters that it may set, by path, and the candidates that it tries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from msda_bench.api import Backbone, NonNegative
from msda_bench.errors import PluginError, message_of
from msda_bench.suite.choice import Configured, with_param
from msda_bench.suite.mistakes import explain
from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Search
from msda_bench.suite.search_space import Dimension, draws, grid
from msda_bench.suite.spec import ExperimentFile, MethodSpec, Protocol, SelectSpec

_PROTOCOL = ("epochs", "batch", "steps", "precision")


@dataclass(frozen=True)
class Settings:
    """All that a search may set of a method: its own parts, its network and its protocol."""

    method: MethodSpec
    backbone: Configured[Backbone]
    training: Protocol

    @classmethod
    def of(cls, method: MethodSpec, backbone: Configured[Backbone], training: Protocol) -> Settings:
        """A method's, with its own optimiser in the place of the suite's if it names one."""
        own = {"optimizer": method.optimizer} if method.optimizer else {}
        return cls(method, backbone, training.model_copy(update=own))

    @property
    def paths(self) -> tuple[str, ...]:
        """What may be set, such as mu, aggregator.sharpmax.gamma or training.optimizer.adadelta.lr."""
        optimizer, scheme = self.training.optimizer, self.method.scheme.component
        mu_matters = scheme.uses_mu and (self.method.adapts or not scheme.uses_discrepancy)
        return (
            *(("mu",) if mu_matters else ()),
            *(f"{kind}.{one.name}.{param}" for kind, one in self._components().items() for param in one.params),
            *(f"training.{name}" for name in _PROTOCOL),
            *(f"training.optimizer.{optimizer.name}.{param}" for param in optimizer.params),
        )

    def having(self, path: str, value: Any) -> Settings:
        """The settings with one of `paths` set to a plain JSON value.

        Raises:
            ValueError: the value is not one of the parameter's; the message follows the value's place.
        """
        try:
            return self._having(path, value)
        except ValidationError as error:
            raise ValueError(explain(error.errors(include_url=False)[0])) from None
        except PluginError as error:
            raise ValueError(message_of(error, 1000)) from None

    def _having(self, path: str, value: Any) -> Settings:
        kind, _, rest = path.partition(".")
        if kind == "training":
            return replace(self, training=_protocol(self.training, rest, value))
        if kind == "mu":
            part: Any = TypeAdapter(NonNegative).validate_python(value, strict=True)
        else:
            part = with_param(self._components()[kind], rest.rpartition(".")[2], value)
        if kind == "backbone":
            return replace(self, backbone=part)
        return replace(self, method=self.method.model_copy(update={kind: part}))

    def _components(self) -> dict[str, Configured[Any]]:
        own = {kind: getattr(self.method, kind) for kind in ("scheme", "discrepancy", "aggregator")}
        return {kind: one for kind, one in {**own, "backbone": self.backbone}.items() if one is not None}


def _protocol(protocol: Protocol, rest: str, value: Any) -> Protocol:
    optimizer = protocol.optimizer
    raw = {name: getattr(protocol, name) for name in _PROTOCOL}
    raw["optimizer"] = {optimizer.name: dict(optimizer.params)}
    if rest in _PROTOCOL:
        raw[rest] = value
    else:
        raw["optimizer"][optimizer.name][rest.rpartition(".")[2]] = value
    return Protocol.model_validate(raw)


@dataclass(frozen=True)
class Candidates:
    """What a method tries.

    Attributes:
        search: the plan's part of it; None where the suite selects nothing.
        settings: of each candidate; of the method as it is where the suite selects nothing.
        leaves_out: whether each candidate trains without one source after another, too.
    """

    search: Search | None
    settings: tuple[Settings, ...]
    leaves_out: bool


def candidates_of(experiment: ExperimentFile, name: str) -> Candidates:
    """The candidates of a method of an experiment, which has been checked."""
    usual = Settings.of(experiment.methods[name], experiment.backbone, experiment.training)
    select = experiment.select
    if select is None:
        return Candidates(None, (usual,), leaves_out=False)
    space = space_of(select, usual)
    found = grid(space) if select.how == "grid" else draws(space, select.budget, (experiment.name, name))
    oracle = sees_target(usual.method)
    search = Search(ORACLE if oracle else select.by, tuple(found))
    return Candidates(search, tuple(_all_set(usual, one) for one in found), leaves_out(select) and not oracle)


def _all_set(settings: Settings, values: Mapping[str, Any]) -> Settings:
    for path, value in values.items():
        settings = settings.having(path, value)
    return settings


def space_of(select: SelectSpec, settings: Settings) -> dict[str, Dimension]:
    """The suite's space, as far as the method has such parameters, and its own, which goes before it."""
    known = settings.paths
    return {path: found for path, found in select.space.items() if path in known} | settings.method.search


def leaves_out(select: SelectSpec) -> bool:
    """Whether every candidate trains without one source after another, too."""
    return select.leave_one_source_out or select.by == LEAVE_ONE_OUT


def sees_target(method: MethodSpec) -> bool:
    """Whether a method is an oracle by itself, on which validators of the sources have nothing to say."""
    return method.scheme.component.needs_target_labels


def select_notes(select: SelectSpec, searches: Mapping[str, Search]) -> Iterator[str]:
    """What a reader must know of how settings were selected, from the search of each method."""
    drawn = "drawn at random" if select.how == "random" else "of a grid"
    yield f"Settings selected {_by(select.by)}, for each target and seed, among {select.budget} candidates {drawn}."
    counts = {name: len(search.candidates) for name, search in searches.items()}
    fewer = ", ".join(f"{name} {count}" for name, count in counts.items() if count < select.budget)
    if fewer:
        yield f"Fewer candidates than {select.budget}, since the search space has no more: {fewer}."
    others = ", ".join(name for name, search in searches.items() if search.by != select.by)
    if others:
        yield f"Trained with the target's labels, and so selected {_by(ORACLE)}: {others}."


def _by(by: str) -> str:
    if by == ORACLE:
        return "by oracle, the score on the target's own test labels, which nobody has"
    return f"by {by}, without target labels"
