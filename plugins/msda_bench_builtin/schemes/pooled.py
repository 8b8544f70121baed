"""All sources as one."""

from __future__ import annotations

from typing import Literal

from msda_bench.api import Group, component
from msda_bench_builtin.schemes.adapt import Adapt


@component
class Pooled(Adapt):
    """All sources merged into one of k*m examples: SRC without a discrepancy, DANN with d_A.

    With `training: {epoch: equal}` it takes as many steps as every other method, each on k batches. With `epoch:
    scheme` an epoch is a pass over the pool, floor(k*m / batch) steps, as in the authors' code; its own `epoch: domain`
    makes that a pass over as many examples as one source has, the steps of other methods.
    """

    name = "pooled"

    epoch: Literal["pool", "domain"] = "pool"

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources."""
        return (sources,)

    def steps(self, sizes: tuple[tuple[int, ...], ...], batch: int) -> int:
        """floor(examples / batch), of the pool or of its largest domain."""
        counted = sizes if self.epoch == "pool" else tuple((max(group),) for group in sizes)
        return super().steps(counted, batch)
