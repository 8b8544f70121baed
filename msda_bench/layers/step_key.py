"""Bases of layers that the engine updates in every step: with a random key or the progress of training."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StepKey(nn.Module):
    """Base of modules that draw random numbers in training.

    Before every phase of a step the engine sets a new `key` in each of these modules in the network and the critic.
    Draws from it with `msda_bench.functional.uniform` do not depend on whether a run trains alone or in a stack. Calls
    in one phase see one key.

    Attributes:
        key: (2,) int32; zero before the first phase.
    """

    key: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("key", torch.zeros(2, dtype=torch.int32), persistent=False)


class StepProgress(nn.Module):
    """Base of modules that change during training, such as a discrepancy with a growing weight.

    In every step the engine sets `progress` in each of these modules in the network and the critic, as it sets
    `Batch.progress` for a scheme.

    Attributes:
        progress: () float32, the share of the stage that is done, from 0 in its first step towards 1; zero before.
    """

    progress: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("progress", torch.zeros(()), persistent=False)
