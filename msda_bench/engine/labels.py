"""Labels as tensors: those of a regression may be standardised for training, those of a source shuffled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, DataError, Dataset, DomainData, Task
from msda_bench.component.dataset import corrupted_source
from msda_bench.data.splits import Split
from msda_bench.engine.settings import stream_key
from msda_bench.functional import lost_in_float32, random_bits
from msda_bench.suite.cell import Cell


class Unit(NamedTuple):
    """The unit of a regression's labels, of which every model learns and predicts (y - mean) / deviation."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, labels: Array) -> Unit:
        """Of the (n,) labels of the sources' training rows; equal ones are only moved."""
        y = labels.astype(np.float64)
        return cls(float(y.mean()), float(y.std()) if y.min() < y.max() else 1.0)

    def restored(self, outputs: Tensor) -> Tensor:
        """Predictions or labels of a model in the user's unit, float64."""
        return outputs.double() * self.deviation + self.mean


def as_labels(task: Task, y: Array, device: torch.device, unit: Unit | None = None) -> Tensor:
    """Labels on the device as models learn them: int64 classes, or float32 numbers.

    Raises:
        DataError: float32 does not tell the numbers apart.
    """
    if task.kind == "classification":
        return torch.from_numpy(y.astype(np.int64)).to(device)
    numbers = y if unit is None else (y.astype(np.float64) - unit.mean) / unit.deviation
    if lost_in_float32(numbers).any():
        remedy = "remove `standardise_labels: false`" if unit is None else "scale them, or leave out the domain far off"
        raise DataError(f"labels from {y.min():.10g} to {y.max():.10g} are too close for float32; {remedy}")
    return torch.from_numpy(numbers.astype(np.float32)).to(device)


def no_labels(task: Task, count: int, device: torch.device) -> Tensor:
    """Labels that no loss accepts: -1 or NaN."""
    if task.kind == "classification":
        return torch.full((count,), -1, dtype=torch.int64, device=device)
    return torch.full((count,), torch.nan, device=device)


def corrupted(
    dataset: Dataset, cell: Cell, domains: Mapping[str, DomainData], splits: Mapping[str, Split]
) -> dict[str, DomainData]:
    """The source whose labels are shuffled, if any: separately within its training and its held-out examples."""
    source = corrupted_source(dataset)
    if source is None or source not in cell.sources:
        return {}
    y = domains[source].y.copy()
    for part in ("train", "test"):
        rows: Array = getattr(splits[source], part)
        bits = random_bits(stream_key(cell, "corrupt", source, part), torch.arange(len(rows), dtype=torch.int32))
        y[rows] = y[rows[bits.argsort(stable=True).numpy()]]
    return {source: replace(domains[source], y=y)}
