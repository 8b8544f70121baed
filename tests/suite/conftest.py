"""Small components, a registry of them, and a suite that is right in every way."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

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
from msda_bench.errors import PluginError, SuiteError
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.load import Suite, load_suite

GOOD = Path(__file__).with_name("good.yaml").read_text(encoding="utf-8")


class _Toy(Dataset):
    def load(self, domain, files):
        return DomainData(np.zeros((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64))


@component
class Amazon(_Toy):
    """Four domains, each the target of the other three."""

    name = "amazon"
    domains = ("books", "dvd", "electronics", "kitchen")
    task = Task("classification", 2)
    input = InputSpec((2,))


@component
class Sine(_Toy):
    """Targets that are no sources."""

    name = "sine"
    domains = ("source_0", "source_1", "target_0", "target_1")
    targets = ("target_0", "target_1")
    task = Task("regression")
    input = InputSpec((2,))

    def sources(self, target):
        return ("source_0", "source_1")


@component
class Lonely(_Toy):
    """One domain, so its target has no source."""

    name = "lonely"
    domains = ("only",)
    task = Task("classification", 2)
    input = InputSpec((2,))


@component
class Photos(_Toy):
    """Images."""

    name = "photos"
    domains = ("day", "night", "dusk")
    task = Task("classification", 2)
    input = InputSpec((3, 8, 8))


@component
class Faulty(_Toy):
    """Raises when it is asked for its domains."""

    name = "faulty"
    task = Task("classification", 2)
    input = InputSpec((2,))

    @property
    def domains(self):
        raise KeyError("no\ndomains")


class _Net(Backbone):
    def build(self, task, input):
        return Network(nn.Linear(input.shape[0], 3), nn.Linear(3, task.outputs), 3)


@component
class Convnet(_Net):
    """Wants images."""

    name = "convnet"

    def build(self, task, input):
        if len(input.shape) != 3:
            raise PluginError(f"backbone convnet needs images, not input of shape {input.shape}")
        raise KeyError("no\nkernel")


@component
class Mlp(_Net):
    """Widths and dropout."""

    name = "mlp"
    hidden: tuple[Count, ...] = (10,)
    dropout: Rate = 0.0


@component
class Linear(_Net):
    """No parameters to speak of."""

    name = "linear"
    bias_column: bool = False


class _Gap(Discrepancy):
    def build(self, feature_dim, k):
        return nn.Identity()


@component
class DA(_Gap):
    """Has a choice of words."""

    name = "d_A"
    sign: Literal["text", "code"] = "text"


@component
class SpectralL2(_Gap):
    """Another one."""

    name = "spectral_l2"


@component
class NoDiscrepancy(_Gap):
    """No discrepancy."""

    name = "none"


class _Weights(Aggregator):
    def __call__(self, risks, gaps, mu, state):
        raise NotImplementedError


@component
class Sharpmax(_Weights):
    """One positive number."""

    name = "sharpmax"
    gamma: Positive = 1.0


@component
class Uniform(_Weights):
    """No parameters."""

    name = "uniform"


@component
class Picky(_Weights):
    """A parameter without a default, and a check that raises what it likes."""

    name = "picky"
    size: int | None

    def __post_init__(self):
        if self.size == 13:
            raise RuntimeError("bad\nluck")


class _Way(Scheme):
    def step(self, parts, batch, state, phase):
        raise NotImplementedError


@component
class Adapt(_Way):
    """The default."""

    name = "adapt"


@component
class Pooled(_Way):
    """All sources as one."""

    name = "pooled"

    def groups(self, sources, target):
        return (sources,)


@component
class TargetOnly(_Way):
    """The oracle."""

    name = "target_only"
    uses_discrepancy = False
    uses_mu = False
    needs_target_labels = True

    def groups(self, sources, target):
        return ((target,),)


@component
class Mdmn(_Way):
    """Brings its own critic."""

    name = "mdmn"
    uses_discrepancy = False


@component
class M3sda(_Way):
    """Compares classifiers."""

    name = "m3sda"
    uses_discrepancy = False
    tasks = ("classification",)


class _Score(Validator):
    def score(self, view):
        return 0.0


@component
class SourceAccuracy(_Score):
    """For classification."""

    name = "source_accuracy"
    tasks = ("classification",)


@component
class SourceRisk(_Score):
    """For either task."""

    name = "source_risk"


CLASSES: tuple[type[Component], ...] = (
    *(
        Amazon,
        Sine,
        Lonely,
        Photos,
        Faulty,
        Mlp,
        Convnet,
        Linear,
        DA,
        SpectralL2,
        NoDiscrepancy,
        Sharpmax,
        Uniform,
        Picky,
    ),
    *(Adapt, Pooled, TargetOnly, Mdmn, M3sda, SourceAccuracy, SourceRisk),
)


@pytest.fixture(scope="session")
def registry() -> Registry:
    return Registry([Entry(cls.kind, cls, "toys", "1.0") for cls in CLASSES])


@pytest.fixture(scope="session")
def good() -> str:
    return GOOD


@pytest.fixture
def load(tmp_path: Path, registry: Registry) -> Callable[[str], Suite]:
    """Loads a text as tmp_path/s.yaml."""

    def load(text: str) -> Suite:
        path = tmp_path / "s.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        return load_suite(path, registry)

    return load


@pytest.fixture
def mistakes(load: Callable[[str], Suite]) -> Callable[[str], list[str]]:
    """The lines told about a text, each without the folder and the `s.yaml:` before line and column.

    Lines of this file, where the toys are, have no number.
    """

    def mistakes(text: str) -> list[str]:
        with pytest.raises(SuiteError) as caught:
            load(text)
        told = [line.rpartition("s.yaml:")[2] if ":" in line else line for line in caught.value.lines]
        return [re.sub(r"conftest\.py:[0-9]+", "conftest.py:N", line) for line in told]

    return mistakes
