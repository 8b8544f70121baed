"""The paper's authors' synthetic regression: a sine seen through narrow windows."""

from __future__ import annotations

from typing import Literal

import numpy as np

from msda_bench.api import Count, Dataset, DomainData, Files, InputSpec, NonNegative, Size, Task, component
from msda_bench_builtin.datasets.features import Draws

_SOURCES = tuple(f"source_{i}" for i in range(8))
_TARGETS = tuple(f"target_{j}" for j in range(4))


@component
class Sine(Dataset):
    """y = sin(x) + noise; each domain has x around its own mean.

    The synthetic regression of the paper's authors: x of source i is normal with standard deviation 0.2 around
    -pi + (i + 1/2) pi / 4; x of target j has standard deviation 0.4 around -3/4 pi, -1/4 pi, 1/4 pi or 3/4 pi, midway
    between sources 2j and 2j + 1, so that two sources are near each target and six are not.

    Parameters:
        means: "centres" puts the sources' means at the centres of eight equal pieces of [-pi, pi], as the authors do;
            "ends" spaces them evenly from -pi to pi, as version 1 did, with the targets still midway.
        noise: standard deviation of the noise added to sin(x).
        size: examples of each domain.

    Wen, Greiner, Schuurmans. Domain Aggregation Networks for Multi-Source Domain Adaptation. ICML 2020.
    """

    name = "sine"
    version = 2
    licence = "none needed: made on the spot"
    modality = "synthetic"
    source = "the synthetic regression of Wen, Greiner and Schuurmans 2020, drawn anew"
    domains = (*_SOURCES, *_TARGETS)
    task = Task("regression")
    input = InputSpec((1,))

    train: Size = 100
    noise: NonNegative = 0.05
    size: Count = 1000
    means: Literal["centres", "ends"] = "centres"

    def sources(self) -> dict[str, tuple[str, ...]]:
        """All eight sources, for each of the four targets."""
        return dict.fromkeys(_TARGETS, _SOURCES)

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """The same number in each domain."""
        return dict.fromkeys(self.domains, self.size)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's examples: x (n, 1) float32."""
        mean, deviation = self._window(domain)
        draws = Draws((self.name, 1, domain))  # those of version 1, which differed only in the means
        x = mean + deviation * draws.normal("x", (self.size,))
        y = np.sin(x) + self.noise * draws.normal("noise", (self.size,))
        return DomainData(x[:, None].astype(np.float32), y.astype(np.float32))

    def _window(self, domain: str) -> tuple[float, float]:
        """Mean and standard deviation of a domain's x."""
        kind, number = domain.split("_")
        count = len(_SOURCES)
        if self.means == "centres":
            first = np.pi / count
            step = 2 * np.pi / count
        else:
            first = 0.0
            step = 2 * np.pi / (count - 1)
        if kind == "source":
            return -np.pi + first + step * int(number), 0.2
        return -np.pi + first + step * (2 * int(number) + 0.5), 0.4
