"""The network `mlp` and the critics `d_A` in float64, and `mlp` on several threads.

Initial weights, batches and dropout masks are those of float32, so that a run differs from its twin by rounding alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from msda_bench.api import Backbone, Discrepancy, Files, InputSpec, Network, Task, component, hookimpl
from msda_bench.functional import SparseRows
from msda_bench_builtin.backbones.small import Mlp
from msda_bench_builtin.discrepancies.adversarial import ProxyADistance


class _Widened(nn.Module):
    """Features in float64 of float32 inputs."""

    def __init__(self, features: nn.Module) -> None:
        super().__init__()
        self.features = features.double()

    def forward(self, x: Tensor | SparseRows) -> Any:
        wide = replace(x, values=x.values.double()) if isinstance(x, SparseRows) else x.double()
        return self.features(wide)


@component
class DoubleMlp(Mlp):
    """`mlp` in float64."""

    name = "mlp64"

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The network of `mlp` with the same initial weights, widened."""
        network = super().build(task, input, files)
        return Network(_Widened(network.features), network.predictor.double(), network.feature_dim)


@component
class ThreadedMlp(Mlp):
    """`mlp` on `threads` threads, which msda-bench puts back to one after the run."""

    name = "mlp_threads"

    threads: int = 2

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The network of `mlp`."""
        torch.set_num_threads(self.threads)
        return super().build(task, input, files)


@component
class DoubleProxyADistance(ProxyADistance):
    """`d_A` in float64."""

    name = "d_A64"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """The critics of `d_A` with the same initial weights, widened."""
        return super().build(feature_dim, k).double()


@hookimpl
def msda_backbones() -> list[type[Backbone]]:
    """The networks."""
    return [DoubleMlp, ThreadedMlp]


@hookimpl
def msda_discrepancies() -> list[type[Discrepancy]]:
    """The critics."""
    return [DoubleProxyADistance]
