"""Normal numbers from a key."""

from __future__ import annotations

import scipy.stats
import torch

from msda_bench.functional import normal


def test_normal_numbers_are_normal_and_depend_only_on_the_key() -> None:
    key = torch.tensor([1, 2], dtype=torch.int32)
    drawn = normal(key, (200, 100))
    assert drawn.dtype == torch.float32
    assert drawn.isfinite().all()
    assert scipy.stats.kstest(drawn.flatten().numpy(), "norm").pvalue > 0.01
    assert torch.equal(drawn, normal(key, (200, 100)))
    assert not torch.equal(drawn, normal(torch.tensor([1, 3], dtype=torch.int32), (200, 100)))
    assert abs(torch.corrcoef(drawn[:2])[0, 1].item()) < 0.3
