"""Sins against the contract of discrepancies."""

from __future__ import annotations

import random

import torch
from torch import nn

from msda_bench.api import Discrepancy
from tests.testing.sins import after, sins


class Made(nn.Module):
    """A module with a function and optionally one parameter."""

    def __init__(self, function, parameter=None):
        super().__init__()
        self.function = function
        self.p = None if parameter is None else nn.Parameter(parameter)

    def forward(self, source, target):
        return self.function(source, target) if self.p is None else self.function(source, target, self.p)


def means(source, target):
    return (source.mean(1) - target.mean(0)).square().sum(-1)


class Spoiled(Discrepancy):
    name = "spoiled"
    symmetric = True


def drawn(feature_dim):
    return torch.rand(feature_dim, generator=torch.Generator().manual_seed(torch.seed()))


def gaps(function):
    return {"build": lambda self, feature_dim, k: Made(function)}


def raised(source):
    with torch.no_grad():
        source += 1


BROKEN = {
    "gaps_are_one_finite_number_a_source": {
        r"shape of the gaps of 1 sources is \(\); the contract asks for \(1,\)": gaps(lambda s, t: means(s, t).mean()),
        "NaN or infinity in the gaps of 1 sources: .inf.": gaps(lambda s, t: 1 / means(s, t)),
    },
    "gradient_reaches_the_features": {
        "no gradient reaches the target's features": gaps(lambda s, t: s.mean(1).square().sum(-1)),
        "reaches the features of the target is zero, so nothing": gaps(lambda s, t: 0 * means(s, t)),
        "no gradient reaches the sources' features": gaps(lambda s, t: means(s.detach(), t)),
    },
    "is_symmetric_if_declared": {
        "exchanging source and target changes the gap": gaps(lambda s, t: means(s, 2 * t)),
    },
    "identical_samples_are_near_the_floor": {
        "asks for smaller gaps for identical samples": gaps(lambda s, t: 1 / (1 + means(s, t))),
    },
    "is_deterministic": {
        "a second call with the same input changes the gaps": gaps(
            lambda s, t: means(s, t) + (random.SystemRandom().random() if len(s) == 7 else 0)
        ),
    },
    "leaves_the_process_alone": {
        "changed torch's global random generator": gaps(lambda s, t: means(s + torch.rand_like(s), t)),
        "Python's global random generator": gaps(lambda s, t: after(random.random(), means(s, t))),
    },
    "input_is_not_changed": {
        "changed its input, the sources' features, in place": gaps(
            lambda s, t: means(s, t) if len(s) != 7 else after(raised(s), means(s, t))
        ),
    },
    "stacked_runs_equal_each_alone": {
        "cannot be stacked": gaps(lambda s, t: means(s, t) * (2 if s.sum() + t.sum() > 0 else 1)),
    },
    "gradient_reaches_every_parameter": {
        "no gradient reaches parameter p": {
            "build": lambda self, feature_dim, k: Made(lambda s, t, p: means(s, t), torch.zeros(2))
        },
    },
    "same_seed_same_module": {
        "built twice with one seed, p differs": {
            "build": lambda self, feature_dim, k: Made(lambda s, t, p: means(s * p, t * p), drawn(feature_dim))
        },
    },
}
SINS = sins(Spoiled, BROKEN)
