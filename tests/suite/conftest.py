"""Small components, a registry of them, and a valid suite."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from torch import nn

from msda_bench.api import (
    Aggregator,
    Backbone,
    Component,
    Count,
    Dataset,
    Discrepancy,
    DomainData,
    InputSpec,
    Network,
    Positive,
    Rate,
    Scheme,
    Task,
    Validator,
    component,
)
from msda_bench.errors import SuiteError
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.expand import Expansion, expand
from msda_bench.suite.load import Suite, load_suite

GOOD = Path(__file__).with_name("good.yaml").read_text(encoding="utf-8")
SIZES = Path(__file__).with_name("sizes.yaml").read_text(encoding="utf-8")


def toy(base: type[Any], name: str, doc: str = "A toy.", **members: Any) -> type[Any]:
    """A component without parameters."""
    return component(type(name, (base,), {"name": name, "__doc__": doc, "__module__": __name__, **members}))


def points(name: str, among: str, task: Task, **members: Any) -> type[Any]:
    """A dataset with these domains."""
    data = DomainData(np.zeros((3, 2), np.float32), np.zeros(3, np.int64))
    members = {"domains": tuple(among.split()), "load": lambda *_: data, **members}
    return toy(Dataset, name, task=task, input=InputSpec((2,)), **members)


def raises(error: Exception) -> Any:
    def method(*_: Any) -> Any:
        raise error

    return method


TWO, NUMBER = Task("classification", 2), Task("regression")
DATASETS = (
    points("amazon", "books dvd electronics kitchen", TWO),
    points(
        "sine",
        "source_0 source_1 target_0 target_1",
        NUMBER,
        sources=lambda _: dict.fromkeys(("target_0", "target_1"), ("source_0", "source_1")),
    ),
    points("lonely", "only", TWO),
    points("faulty", "", TWO, domains=property(raises(KeyError("no\ndomains")))),
)


class _Net(Backbone):
    def build(self, task, input, files=None):
        return Network(nn.Linear(input.shape[0], 3), nn.Linear(3, task.outputs), 3)


@component
class Mlp(_Net):
    """A backbone with widths and dropout."""

    name = "mlp"
    hidden: tuple[Count, ...] = (10,)
    dropout: Rate = 0.0


@component
class Linear(_Net):
    """A component with trivial parameters."""

    name = "linear"
    bias_column: bool = False


class _Gap(Discrepancy):
    def build(self, feature_dim, k):
        return nn.Identity()


@component
class DA(_Gap):
    """A component with a choice of strings."""

    name = "d_A"
    sign: Literal["text", "code"] = "text"


class _Weights(Aggregator):
    def __call__(self, risks, gaps, mu, state):
        raise NotImplementedError


@component
class Sharpmax(_Weights):
    """A component with one positive number."""

    name = "sharpmax"
    gamma: Positive = 1.0


@component
class Picky(_Weights):
    """A component with a required parameter and a check that may raise anything."""

    name = "picky"
    size: int | None

    def __post_init__(self):
        if self.size == 13:
            raise RuntimeError("bad\nluck")


def way(name: str, **members: Any) -> type[Any]:
    return toy(Scheme, name, step=raises(NotImplementedError()), **members)


SCHEMES = (
    way("adapt"),
    way("pooled", groups=lambda self, sources, target: (sources,)),
    way(
        "target_only",
        groups=lambda self, sources, target: ((target,),),
        uses_discrepancy=False,
        uses_mu=False,
        needs_target_labels=True,
    ),
    way("mdmn", uses_discrepancy=False),
    way("m3sda", uses_discrepancy=False, tasks=("classification",)),
    way("kd3a", uses_discrepancy=False, uses_mu=False, adds_offsets=True),
)
OTHERS = (
    *(Mlp, Linear, DA, Sharpmax, Picky),
    *(toy(_Gap, "none"), toy(_Weights, "uniform")),
    toy(Validator, "source_accuracy", score=lambda *_: 0.0, tasks=("classification",)),
    toy(Validator, "source_risk", score=lambda *_: 0.0),
)
CLASSES: tuple[type[Component], ...] = (*DATASETS, *OTHERS, *SCHEMES)


@pytest.fixture(scope="session")
def registry() -> Registry:
    return Registry([Entry(cls.kind, cls, "toys", "1.0") for cls in CLASSES])


@pytest.fixture(scope="session")
def installed() -> Registry:
    return discover()


@pytest.fixture
def replaced(registry: Registry) -> Callable[..., Registry]:
    """A registry with other members of one component."""

    def replaced(kind: str, of: str, /, **members: Any) -> Registry:
        # A class of its own: Python remembers of a class that it has what a protocol asks for.
        other = toy(registry.entry(kind, of).cls, **{"name": of, **members})
        rest = [entry for entry in registry.entries if (entry.kind, entry.name) != (kind, of)]
        return Registry([*rest, Entry(kind, other, "toys", "1.0")])

    return replaced


@pytest.fixture(scope="session")
def good() -> str:
    return GOOD


@pytest.fixture
def load(tmp_path: Path, registry: Registry) -> Callable[..., Suite]:
    """Loads a text as tmp_path/s.yaml."""

    def load(text: str, components: Registry = registry) -> Suite:
        path = tmp_path / "s.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        return load_suite(path, components)

    return load


@pytest.fixture
def expanded(load: Callable[..., Suite], registry: Registry) -> Callable[..., Expansion]:
    """The expansion of a text."""

    def expanded(text: str, components: Registry = registry) -> Expansion:
        return expand(load(text, components), components)

    return expanded


@pytest.fixture
def mistakes(load: Callable[..., Suite]) -> Callable[..., list[str]]:
    """The lines reported about a text, each without the folder and `s.yaml:`.

    Lines of this file, where the toys are, have no number.
    """

    def mistakes(*text: Any) -> list[str]:
        with pytest.raises(SuiteError) as caught:
            load(*text)
        reported = [line.rpartition("s.yaml:")[2] if ":" in line else line for line in caught.value.lines]
        return [re.sub(r"conftest\.py:[0-9]+", "conftest.py:N", line) for line in reported]

    return mistakes
