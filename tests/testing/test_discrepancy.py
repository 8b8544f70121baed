"""The contract of discrepancies passes honest ones and catches each sin."""

from __future__ import annotations

import random

import torch
from torch import nn

from msda_bench.api import Discrepancy, component
from msda_bench.testing import DiscrepancyContract
from msda_bench.testing.toy import WeightedMeans


class TestWeightedMeans(DiscrepancyContract):
    component = WeightedMeans()


class Made(nn.Module):
    """A module of a function and, where asked for, one parameter."""

    def __init__(self, function, *parameters):
        super().__init__()
        self.function = function
        for number, parameter in enumerate(parameters):
            self.register_parameter(f"p{number}", nn.Parameter(parameter))

    def forward(self, source, target):
        return self.function(self, source, target)


def means(source, target):
    return (source.mean(1) - target.mean(0)).square().sum(-1)


@component
class AcrossSources(Discrepancy):
    """The spread of the sources among themselves; looks at no target."""

    name = "across"
    uses_target = False

    def build(self, feature_dim, k):
        return Made(lambda _, s, t: (s.mean(1) - s.mean((0, 1))).square().sum(-1))


class TestAcrossSources(DiscrepancyContract):
    component = AcrossSources()


@component
class Spoiled(Discrepancy):
    """A discrepancy of one function, for the tests."""

    name = "spoiled"
    symmetric = True

    def build(self, feature_dim, k):
        return Made(type(self).gaps)


@component
class Mean(Spoiled):
    """One gap for all."""

    def gaps(self, source, target):
        return means(source, target).mean()


@component
class Infinite(Spoiled):
    """Divides by a distance that may be zero."""

    def gaps(self, source, target):
        return 1 / means(source, target)


@component
class Wide(Spoiled):
    """Returns float64."""

    def gaps(self, source, target):
        return means(source, target).double()


@component
class IgnoresTarget(Spoiled):
    """Looks at the sources alone, and does not say so."""

    def gaps(self, source, target):
        return source.mean(1).square().sum(-1)


@component
class DetachesSource(Spoiled):
    """Lets no gradient through to the sources."""

    def gaps(self, source, target):
        return means(source.detach(), target)


@component
class OneSided(Spoiled):
    """Not symmetric, though it says so."""

    def gaps(self, source, target):
        return means(source, 2 * target)


@component
class Noisy(Spoiled):
    """Draws from torch's global generator."""

    def gaps(self, source, target):
        return means(source + torch.rand_like(source), target)


@component
class Upside(Spoiled):
    """Largest where nothing differs."""

    def gaps(self, source, target):
        return 1 / (1 + means(source, target))


@component
class NoisyForSix(Spoiled):
    """Other gaps at each call, for six sources."""

    def gaps(self, source, target):
        return means(source, target) + (random.SystemRandom().random() if len(source) == 6 else 0)


@component
class DrawsAndForgets(Spoiled):
    """Draws from Python's global generator, for nothing."""

    def gaps(self, source, target):
        random.random()
        return means(source, target)


@component
class CentresSeven(Spoiled):
    """Works in place on seven sources."""

    def gaps(self, source, target):
        if len(source) == 7:
            with torch.no_grad():
                source += 1
        return means(source, target)


@component
class BranchingOnBoth(Spoiled):
    """Branches on a value in which source and target count alike."""

    def gaps(self, source, target):
        return means(source, target) * (2 if source.sum() + target.sum() > 0 else 1)


@component
class IdleParameter(Spoiled):
    """Owns a parameter that it does not use."""

    def build(self, feature_dim, k):
        return Made(lambda _, s, t: means(s, t), torch.zeros(2))


@component
class UnseededWeights(Spoiled):
    """Draws its initial weights from a generator that nobody seeds."""

    def build(self, feature_dim, k):
        weight = torch.rand(feature_dim, generator=torch.Generator().manual_seed(torch.seed()))
        return Made(lambda module, s, t: means(s * module.p0, t * module.p0), weight)


SINS = [
    (Mean, "gaps_are_one_finite_number_a_source", r"has shape \(\); the contract asks for \(1,\)"),
    (Infinite, "gaps_are_one_finite_number_a_source", "the gaps of 1 sources is not finite: .inf."),
    (Wide, "gaps_are_one_finite_number_a_source", "gaps are torch.float64; the contract asks for float32"),
    (IgnoresTarget, "gradient_reaches_the_features", "no gradient reaches the target's features"),
    (DetachesSource, "gradient_reaches_the_features", "no gradient reaches the features of source 0 of 1"),
    (IdleParameter, "gradient_reaches_every_parameter", "no gradient reaches the parameter p0"),
    (UnseededWeights, "same_seed_same_module", "built twice with one seed, p0 differs"),
    (OneSided, "is_symmetric_if_declared", "exchanging source and target changes the gap"),
    (Noisy, "leaves_the_process_alone", "changed torch's global random generator"),
    (CentresSeven, "input_is_not_changed", "changed its input, the sources' features, in place"),
    (Upside, "identical_samples_are_near_the_floor", "asks for less where nothing differs"),
    (BranchingOnBoth, "stacked_runs_equal_each_alone", "cannot be stacked"),
    (NoisyForSix, "is_deterministic", "a second call with the same features gives other gaps"),
    (DrawsAndForgets, "leaves_the_process_alone", "Python's global random generator"),
]
"""What spoils a component, the clause that it breaks and how the kit says so."""
