"""The key that a module draws from."""

from __future__ import annotations

import torch
from torch import nn

from msda_bench.layers import StepKey


def test_key_is_zero_until_set_and_is_not_saved() -> None:
    module = nn.Sequential(StepKey())
    assert module[0].key.tolist() == [0, 0]
    assert module[0].key.dtype == torch.int32
    assert not module.state_dict()
    assert [name for name, _ in module.named_buffers()] == ["0.key"]
