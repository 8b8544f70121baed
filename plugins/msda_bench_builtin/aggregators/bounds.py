"""The base of aggregators whose formulas use only the sources' bound terms."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from msda_bench.api import Aggregate, Aggregator


class OfBounds(Aggregator):
    """Aggregates the bound terms g = risks + mu gaps."""

    def __call__(
        self,
        risks: Tensor,
        gaps: Tensor,
        mu: float | Tensor,
        state: Tensor,
    ) -> Aggregate:
        """The aggregated bound terms."""
        return self.of(risks + mu * gaps, state)

    @abstractmethod
    def of(self, g: Tensor, state: Tensor) -> Aggregate:
        """The objective, the weights and the new state.

        Args:
            g: (k,) bound terms.
            state: as of `Aggregator`.
        """
