"""Layers that the engine gives something in every step: randomness of the run's own, or how far its training is."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StepKey(nn.Module):
    """Base of modules that draw random numbers in training.

    The engine gives each one in the network or the critic a fresh `key` before every phase of a step; what is drawn
    from it by `msda_bench.functional.uniform` is the same whether a run trains alone or in a stack. Until then it is
    zero. Two calls in one phase see one key.

    Attributes:
        key: (2,) int32.
    """

    key: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("key", torch.zeros(2, dtype=torch.int32), persistent=False)


class StepProgress(nn.Module):
    """Base of modules that change in the course of training, such as a discrepancy that grows.

    The engine gives each one in the network or the critic the `progress` of the step, as it gives a scheme
    `Batch.progress`. Until then it is zero.

    Attributes:
        progress: () float32, how much of the stage is done, from 0 in its first step towards 1; of one stage, the run.
    """

    progress: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("progress", torch.zeros(()), persistent=False)
