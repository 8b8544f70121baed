"""A cell restores its components as planned; a later parameter does not change stored keys."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar

import pytest
import torch

from msda_bench.api import Added, Aggregate, Aggregator, Component, Dataset, DomainData, InputSpec, Task, component
from msda_bench.errors import PluginError
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.cell import Ref
from msda_bench.suite.choice import make, make_planned


class _Mean(Aggregator):
    name = "mean"

    def __call__(self, risks: Any, gaps: Any, mu: Any, state: Any) -> Aggregate:
        return Aggregate(risks.mean(), torch.full_like(risks, 1 / len(risks)), state)


@component
class Before(_Mean):
    """As it was first published."""

    power: float = 2.0


@component
class After(_Mean):
    """A later version with two more parameters."""

    stacked: ClassVar[tuple[str, ...]] = ("shift",)

    power: float = 2.0
    shift: Annotated[float, Added()] = 0.0
    names: Annotated[tuple[str, ...], Added()] = field(default_factory=tuple)


class _Points(Dataset):
    name = "points"
    domains = ("a", "b")
    task = Task("regression")
    input = InputSpec((1,))

    def load(self, domain: str, files: Any) -> DomainData:
        raise AssertionError(domain)


@component
class PointsBefore(_Points):
    """As it was first published."""


@component
class PointsAfter(_Points):
    """A later version with one more parameter."""

    noise: Annotated[float, Added()] = 0.0


def only(cls: type[Component]) -> Registry:
    return Registry([Entry(cls.kind, cls, "tests", "1")])


def test_a_later_parameter_at_its_default_is_in_no_key_or_fingerprint() -> None:
    before, after = (make(only(cls), "aggregator", "mean", {"power": 3.0}) for cls in (Before, After))
    assert after.ref == before.ref
    assert after.params == {"power": 3.0, "shift": 0.0, "names": []}
    assert make_planned(only(After), before.ref) == after.component
    assert PointsAfter(noise=0.0).fingerprint() == PointsBefore().fingerprint()


@pytest.mark.parametrize("params", [{"shift": 1.0}, {"names": ["x"]}])
def test_a_later_parameter_with_another_value_is_in_key_and_fingerprint(params: dict[str, Any]) -> None:
    chosen = make(only(After), "aggregator", "mean", params)
    assert chosen.ref.params == {"power": 2.0} | params
    assert make_planned(only(After), chosen.ref) == chosen.component
    assert PointsAfter(noise=1.0).fingerprint() != PointsBefore().fingerprint()


def test_a_later_parameter_needs_a_default() -> None:
    with pytest.raises(TypeError, match=r"Without\.level is marked as Added and so needs a default"):

        @component
        class Without(_Mean):
            level: Annotated[float, Added()]


MLP = Ref("backbone", "mlp", 1, "toys", {"hidden": [8, 4], "dropout": 0.5})


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        (replace(MLP, name="mlpp"), "unknown backbone 'mlpp' (did you mean 'mlp'?)"),
        (
            replace(MLP, version=2),
            (
                "backbone 'mlp' was planned at version 2, but toys 1.0 provides version 1; "
                "run the suite again to update the plan"
            ),
        ),
        (
            replace(MLP, distribution="others"),
            "backbone 'mlp' was planned from others, but toys 1.0 provides it now; install others instead",
        ),
        (
            replace(MLP, params={"dropout": 2.0, "depth": 1}),
            (
                "backbone 'mlp': dropout: must be less than 1, not 2.0; "
                "depth: unknown parameter of mlp (known: hidden, dropout)"
            ),
        ),
        (
            Ref("aggregator", "picky", 1, "toys", {"size": 13}),
            "aggregator 'picky' of toys 1.0 cannot be made: tests/suite/conftest.py:N: RuntimeError: bad luck",
        ),
    ],
)
def test_an_outdated_reference_is_refused(registry, ref, text):
    with pytest.raises(PluginError) as caught:
        make_planned(registry, ref)
    (line,) = caught.value.lines
    assert re.sub("py:[0-9]+", "py:N", line) == text
