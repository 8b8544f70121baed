"""The paper's authors' synthetic regression: a sine seen through narrow windows."""

from __future__ import annotations

import numpy as np

from msda_bench.api import Count, Dataset, DomainData, Files, InputSpec, NonNegative, Task, component
from msda_bench_builtin.datasets.draws import Draws

_SOURCES = 8
_TARGETS = 4


@component
class Sine(Dataset):
    """y = sin(x) + noise, where each domain sees x around a mean of its own.

    The synthetic regression of the paper's authors: x of source i is normal with standard deviation 0.2 around the
    i-th of eight means evenly spaced on [-pi, pi]; x of target j has standard deviation 0.4. The targets' means lie
    midway between those of sources 2j and 2j + 1, so that two sources are near each target and six are not.

    Parameters:
        noise: standard deviation of what is added to sin(x).
        size: examples of each domain.

    Wen, Greiner, Schuurmans. Domain Aggregation Networks for Multi-Source Domain Adaptation. ICML 2020.
    """

    name = "sine"
    version = 1
    licence = "none needed: made on the spot"
    source = "the synthetic regression of Wen, Greiner and Schuurmans 2020, drawn anew"

    train: Count = 100
    noise: NonNegative = 0.05
    size: Count = 1000

    @property
    def domains(self) -> tuple[str, ...]:
        """Eight sources, then four targets."""
        return tuple(f"source_{i}" for i in range(_SOURCES)) + self.targets

    @property
    def targets(self) -> tuple[str, ...]:
        """The four targets."""
        return tuple(f"target_{j}" for j in range(_TARGETS))

    def sources(self, target: str) -> tuple[str, ...]:
        """All eight sources, for every target."""
        return tuple(domain for domain in self.domains if domain not in self.targets)

    @property
    def task(self) -> Task:
        """The value of y."""
        return Task("regression")

    @property
    def input(self) -> InputSpec:
        """The number x."""
        return InputSpec((1,))

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's examples: x (n, 1) float32."""
        mean, deviation = _window(domain)
        draws = Draws((self.name, self.version, domain))
        x = mean + deviation * draws.normal("x", (self.size,))
        y = np.sin(x) + self.noise * draws.normal("noise", (self.size,))
        return DomainData(x[:, None].astype(np.float32), y.astype(np.float32))


def _window(domain: str) -> tuple[float, float]:
    """Mean and standard deviation of a domain's x."""
    kind, number = domain.split("_")
    step = 2 * np.pi / (_SOURCES - 1)
    if kind == "source":
        return -np.pi + step * int(number), 0.2
    return -np.pi + step * (2 * int(number) + 0.5), 0.4
