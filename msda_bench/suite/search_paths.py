"""The parameters of a method that a search may set, by path, and a method with one of them set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from msda_bench.api import Backbone, NonNegative
from msda_bench.errors import PluginError, message_of
from msda_bench.suite.choice import Choice, changed
from msda_bench.suite.faults import explain
from msda_bench.suite.spec import NO_DISCREPANCY, MethodSpec, Protocol

_KINDS = ("scheme", "discrepancy", "aggregator")
_PROTOCOL = ("epochs", "batch", "steps", "precision")


@dataclass(frozen=True)
class Parts:
    """What a candidate is made of.

    Attributes:
        method: the method.
        backbone: the network.
        training: the protocol.
    """

    method: MethodSpec
    backbone: Choice[Backbone]
    training: Protocol

    @classmethod
    def of(cls, method: MethodSpec, backbone: Choice[Backbone], training: Protocol) -> Parts:
        """A method's, with its own optimiser in the place of the suite's if it names one."""
        own = {"optimizer": method.optimizer} if method.optimizer else {}
        return cls(method, backbone, training.model_copy(update=own))


def settable(parts: Parts) -> tuple[str, ...]:
    """The paths that a search may set, such as mu, aggregator.sharpmax.gamma or training.optimizer.adadelta.lr."""
    optimizer = parts.training.optimizer
    return (
        *(("mu",) if _weighs(parts.method) else ()),
        *(f"{kind}.{choice.name}.{param}" for kind, choice in _choices(parts).items() for param in choice.params),
        *(f"training.{name}" for name in _PROTOCOL),
        *(f"training.optimizer.{optimizer.name}.{param}" for param in optimizer.params),
    )


def with_setting(parts: Parts, path: str, value: Any) -> Parts:
    """The parts with one parameter set.

    Args:
        parts: as they are.
        path: one of `settable`.
        value: a plain JSON value.

    Raises:
        ValueError: the value is not one of the parameter's; the message follows the value's place.
    """
    try:
        return _with_setting(parts, path, value)
    except ValidationError as error:
        raise ValueError(explain(error.errors(include_url=False)[0])) from None
    except PluginError as error:
        raise ValueError(message_of(error, 1000)) from None


def _with_setting(parts: Parts, path: str, value: Any) -> Parts:
    if path == "mu":
        mu = TypeAdapter(NonNegative).validate_python(value, strict=True)
        return replace(parts, method=parts.method.model_copy(update={"mu": mu}))
    kind, _, rest = path.partition(".")
    if kind == "training":
        return replace(parts, training=_protocol(parts.training, rest, value))
    choice = _choices(parts)[kind]
    set_choice = changed(choice, rest.removeprefix(f"{choice.name}."), value)
    if kind == "backbone":
        return replace(parts, backbone=set_choice)
    return replace(parts, method=parts.method.model_copy(update={kind: set_choice}))


def _protocol(protocol: Protocol, rest: str, value: Any) -> Protocol:
    optimizer = protocol.optimizer
    raw = {name: getattr(protocol, name) for name in _PROTOCOL}
    raw["optimizer"] = {optimizer.name: dict(optimizer.params)}
    if rest in _PROTOCOL:
        raw[rest] = value
    else:
        raw["optimizer"][optimizer.name][rest.removeprefix(f"optimizer.{optimizer.name}.")] = value
    return Protocol.model_validate(raw)


def _choices(parts: Parts) -> dict[str, Choice[Any]]:
    found = {kind: getattr(parts.method, kind) for kind in _KINDS}
    return {kind: choice for kind, choice in {**found, "backbone": parts.backbone}.items() if choice is not None}


def _weighs(method: MethodSpec) -> bool:
    """Whether mu changes anything."""
    adapts = method.discrepancy is not None and method.discrepancy.name != NO_DISCREPANCY
    scheme = method.scheme.component
    return scheme.uses_mu and (adapts or not scheme.uses_discrepancy)
