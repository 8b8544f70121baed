"""The counter-based generator is pinned and passes statistical tests."""

import pytest
import torch
from scipy import stats

from msda_bench.functional import keep_mask, normal, random_bits, split_key, uniform

DRAWS = 1 << 18


def key(*halves):
    return torch.tensor(halves, dtype=torch.int32)


def test_bits_and_normal_numbers_never_change():
    index = torch.arange(4, dtype=torch.int32)
    assert random_bits(key(1, 2), index).tolist() == [779996176, -1271381923, -68267789, -2059509129]
    first, second = uniform(key(1, 2), (2, 50)).double()
    expected = (-2 * (1 - first).log()).sqrt() * (2 * torch.pi * second).cos()  # Box and Muller
    torch.testing.assert_close(normal(key(1, 2), (50,)).double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("halves", [(0, 0), (-5, 77)])
def test_uniform_numbers_are_uniform_and_uncorrelated_with_their_own_and_other_streams(halves):
    drawn = uniform(key(*halves), (DRAWS,))
    assert stats.chisquare(torch.histc(drawn, bins=256, min=0, max=1).numpy()).pvalue > 1e-4
    first, second = halves
    others = [drawn[lag:] for lag in (1, 7, 4096)]
    others += [uniform(key(*other), (DRAWS,)) for other in ((first, second + 1), (first + 1, second))]
    for other in others:
        correlation = ((drawn[: len(other)] - 0.5) * (other - 0.5)).mean() * 12
        assert abs(correlation.item()) < 5 / len(other) ** 0.5


def test_a_draw_does_not_depend_on_the_shape():
    assert torch.equal(uniform(key(1, 1), (6, 7)).flatten()[:20], uniform(key(1, 1), (20,)))


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.7])
def test_dropout_keeps_the_rate(rate):
    kept = keep_mask(key(5, 6), torch.arange(DRAWS, dtype=torch.int32), rate).double().mean().item()
    assert abs(kept - (1 - rate)) < 5 * (rate * (1 - rate) / DRAWS) ** 0.5 + 1e-12


def test_stacked_keys_draw_what_each_key_draws_alone():
    keys = split_key(key(7, 8), torch.arange(3, dtype=torch.int32))
    index = torch.arange(50, dtype=torch.int32)
    stacked = torch.func.vmap(lambda one: random_bits(one, index))(keys)
    assert torch.equal(stacked, torch.stack([random_bits(one, index) for one in keys]))
