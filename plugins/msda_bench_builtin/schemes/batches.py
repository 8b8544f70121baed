"""The sources' part of a step's batch."""

from __future__ import annotations

from torch import Tensor

from msda_bench.api import Batch, Examples, Parts


def examples_of(batch: Batch, source: int) -> Examples:
    """The examples of one source."""
    size = batch.y.shape[1]
    return batch.x[source * size : (source + 1) * size]


def losses_of_each(parts: Parts, outputs: Tensor, labels: Tensor) -> Tensor:
    """The losses (c, n) of c classifiers with outputs (c, n, classes) for the same labels (n,)."""
    losses = parts.loss(outputs.flatten(0, 1), labels.repeat(len(outputs)))
    return losses.view(len(outputs), -1)


def source_risks(parts: Parts, outputs: Tensor, batch: Batch) -> Tensor:
    """The mean loss (k,) on each source's examples, whose outputs are the first rows."""
    k, size = batch.y.shape
    losses = parts.loss(outputs[: k * size], batch.y.reshape(-1))
    return losses.view(k, size).mean(1)
