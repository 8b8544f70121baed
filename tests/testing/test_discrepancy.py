"""The contract of discrepancies accepts correct ones and catches each sin."""

from __future__ import annotations

import random

import torch
from torch import nn

from msda_bench.api import Discrepancy, component
from msda_bench.testing import DiscrepancyContract
from msda_bench.testing.toy import WeightedMeans
from tests.testing.sins import sin


class TestWeightedMeans(DiscrepancyContract):
    component = WeightedMeans()


class Made(nn.Module):
    """A module with a function and optionally one parameter."""

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
    """The spread of the sources; ignores the target."""

    name = "across"
    uses_target = False

    def build(self, feature_dim, k):
        return Made(lambda _, s, t: (s.mean(1) - s.mean((0, 1))).square().sum(-1))


class TestAcrossSources(DiscrepancyContract):
    component = AcrossSources()


@component
class Spoiled(Discrepancy):
    """A discrepancy defined by one function."""

    name = "spoiled"
    symmetric = True

    def build(self, feature_dim, k):
        return Made(type(self).gaps)


@sin("gaps_are_one_finite_number_a_source", r"the shape of the gaps of 1 sources is \(\); the contract asks for \(1,\)")
class Mean(Spoiled):
    def gaps(self, source, target):
        return means(source, target).mean()


@sin("gaps_are_one_finite_number_a_source", "NaN or infinity in the gaps of 1 sources: .inf.")
class Infinite(Spoiled):
    def gaps(self, source, target):
        return 1 / means(source, target)


@sin("gaps_are_one_finite_number_a_source", "gaps are torch.float64; the contract asks for float32")
class Wide(Spoiled):
    def gaps(self, source, target):
        return means(source, target).double()


@sin("gradient_reaches_the_features", "no gradient reaches the target's features")
class IgnoresTarget(Spoiled):
    def gaps(self, source, target):
        return source.mean(1).square().sum(-1)


@sin("gradient_reaches_the_features", "no gradient reaches the features of source 0 of 1")
class DetachesSource(Spoiled):
    def gaps(self, source, target):
        return means(source.detach(), target)


@sin("is_symmetric_if_declared", "exchanging source and target changes the gap")
class OneSided(Spoiled):
    def gaps(self, source, target):
        return means(source, 2 * target)


@sin("leaves_the_process_alone", "changed torch's global random generator")
class Noisy(Spoiled):
    def gaps(self, source, target):
        return means(source + torch.rand_like(source), target)


@sin("identical_samples_are_near_the_floor", "asks for smaller gaps for identical samples")
class Upside(Spoiled):
    def gaps(self, source, target):
        return 1 / (1 + means(source, target))


@sin("is_deterministic", "a second call with the same input changes the gaps")
class NoisyForSeven(Spoiled):
    def gaps(self, source, target):
        return means(source, target) + (random.SystemRandom().random() if len(source) == 7 else 0)


@sin("leaves_the_process_alone", "Python's global random generator")
class DrawsAndForgets(Spoiled):
    def gaps(self, source, target):
        random.random()
        return means(source, target)


@sin("input_is_not_changed", "changed its input, the sources' features, in place")
class CentresSeven(Spoiled):
    def gaps(self, source, target):
        if len(source) == 7:
            with torch.no_grad():
                source += 1
        return means(source, target)


@sin("stacked_runs_equal_each_alone", "cannot be stacked")
class BranchingOnBoth(Spoiled):
    def gaps(self, source, target):
        return means(source, target) * (2 if source.sum() + target.sum() > 0 else 1)


@sin("gradient_reaches_every_parameter", "no gradient reaches parameter p0")
class IdleParameter(Spoiled):
    def build(self, feature_dim, k):
        return Made(lambda _, s, t: means(s, t), torch.zeros(2))


@sin("same_seed_same_module", "built twice with one seed, p0 differs")
class UnseededWeights(Spoiled):
    def build(self, feature_dim, k):
        weight = torch.rand(feature_dim, generator=torch.Generator().manual_seed(torch.seed()))
        return Made(lambda module, s, t: means(s * module.p0, t * module.p0), weight)
