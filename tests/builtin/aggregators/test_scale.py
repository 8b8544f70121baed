"""DARN's objective in the text's scale and in its authors' code's."""

from __future__ import annotations

import pytest
import torch

from msda_bench.testing import checks, contract
from msda_bench_builtin.aggregators import Sharpmax


def test_the_codes_objective_is_gamma_times_the_texts() -> None:
    risks = torch.tensor([0.3, 0.9, 1.4], dtype=torch.float64, requires_grad=True)
    gaps = torch.tensor([0.5, 0.2, 0.1], dtype=torch.float64, requires_grad=True)
    text, code = (Sharpmax(gamma=0.1, scale=scale)(risks, gaps, 0.5, torch.zeros(0)) for scale in ("text", "code"))
    assert torch.equal(text.weights, code.weights)
    # gamma (<g, alpha> + ||alpha|| / gamma), as the released code has it.
    g = (risks + 0.5 * gaps).detach()
    assert code.objective.item() == pytest.approx((0.1 * g @ text.weights + text.weights.norm()).item())
    for one, other in zip(
        torch.autograd.grad(code.objective, (risks, gaps)),
        torch.autograd.grad(text.objective, (risks, gaps)),
        strict=True,
    ):
        assert torch.allclose(one, 0.1 * other)


@pytest.mark.parametrize("check", checks("aggregator"))
def test_it_keeps_the_contract(check: str) -> None:
    getattr(contract(Sharpmax(gamma=0.3, scale="code")), check)()
