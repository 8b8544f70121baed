"""Summarises risks, gaps and weights once an epoch."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.api import Group
from msda_bench.store.record import Curves

DECAY = 0.9
"""Decay of the weights' moving average over the steps (paper, figure of the weights)."""


TOLERANCE = 1e-3
"""How far rounding may take the weights of a step from the simplex."""


class Trace:
    """Summarises the risks, gaps and weights of one run.

    Args:
        groups: the labelled groups.
    """

    def __init__(self, groups: tuple[Group, ...]) -> None:
        self._curves = Curves([list(group) for group in groups], [], [], [])
        self._average: Tensor | None = None

    def close_epoch(self, seen: Tensor) -> bool:
        """Summarises an epoch; False if a risk, gap or weight of it was not finite.

        Args:
            seen: (steps, 3, k) float64 on the host: risks, gaps and weights of each step.

        Raises:
            ValueError: the weights of a step are not on the simplex.
        """
        if not bool(seen.isfinite().all()):
            return False
        weights = seen[:, 2]
        sums = weights.sum(1)
        if weights.min() < -TOLERANCE or (sums - 1).abs().max() > TOLERANCE:
            raise ValueError(
                f"weights from {weights.min():g} to {weights.max():g}, sums {sums.min():g} to {sums.max():g}"
            )
        before = weights[0] if self._average is None else self._average
        age = torch.arange(len(weights) - 1, -1, -1, dtype=torch.float64)
        recency = ((1 - DECAY) * DECAY**age).unsqueeze(1)
        # The recursion a <- 0.9 a + 0.1 w, unrolled over the epoch's steps.
        self._average = before * DECAY ** len(weights) + (recency * weights).sum(0)
        self._curves.risks.append(_compact(seen[:, 0].mean(0)))
        self._curves.gaps.append(_compact(seen[:, 1].mean(0)))
        self._curves.weights.append(_compact(self._average))
        return True

    @property
    def curves(self) -> Curves:
        """The epochs so far."""
        return self._curves

    @property
    def weights(self) -> Tensor:
        """(k,) float64, the average at the end of the last epoch; raises `ValueError` before the first."""
        if self._average is None:
            raise ValueError("no epoch is closed yet")
        return self._average


def _compact(values: Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]
