"""The contract of aggregators accepts a correct one and catches each sin."""

from __future__ import annotations

import random
import unittest

import pytest
import torch

from msda_bench.api import Aggregate, Aggregator, component
from msda_bench.testing import AggregatorContract
from msda_bench.testing.toy import Mean
from tests.testing.sins import sin


@component
class Momentum(Aggregator):
    """Softmax of minus the risks averaged over steps, with state."""

    name = "momentum"

    def start(self, sizes):
        return torch.zeros_like(sizes)

    def __call__(self, risks, gaps, mu, state):
        state = 0.9 * state + 0.1 * risks.detach()
        weights = torch.softmax(-state, dim=-1)
        return Aggregate((weights * (risks + mu * gaps)).sum(-1), weights, state)


class TestMomentum(AggregatorContract):
    component = Momentum()


class TestMean(AggregatorContract):
    component = Mean()


@component
class BySize(Aggregator):
    """Weights each source by its share of the examples, known from the start."""

    name = "by_size"

    def start(self, sizes):
        return sizes

    def __call__(self, risks, gaps, mu, state):
        weights = state / state.sum()
        return Aggregate((weights * (risks + mu * gaps)).sum(-1), weights, state)


class TestBySize(AggregatorContract):
    component = BySize()


class Honest(Aggregator):
    """Correct except for what a subclass breaks."""

    name = "spoiled"

    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        return Aggregate((weights * (risks + mu * gaps)).sum(), weights, state)


@sin("weights_lie_on_the_simplex", "negative entry in the weights of 2 sources")
class Negative(Honest):
    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        tilt = torch.linspace(-1, 1, len(risks)) if len(risks) > 1 else torch.zeros(1)
        return Aggregate(risks.mean(), weights + tilt, state)


@sin("weights_lie_on_the_simplex", "returned 2 values; the contract asks for Aggregate")
class TwoValues(Honest):
    def __call__(self, risks, gaps, mu, state):
        return risks.mean(), torch.full_like(risks, 1 / len(risks))


@sin("order_of_the_sources_does_not_matter", "permuting the sources changes their weights")
class FirstCome(Honest):
    def __call__(self, risks, gaps, mu, state):
        weights = torch.softmax(-torch.arange(float(len(risks))), dim=-1)
        return Aggregate(weights @ risks, weights, state)


@sin("objective_is_a_scalar_that_trains", "no gradient flows from the objective")
class Detached(Honest):
    def __call__(self, risks, gaps, mu, state):
        return Aggregate(risks.detach().mean(), torch.full_like(risks, 1 / len(risks)), state)


@sin("objective_is_a_scalar_that_trains", "gradient is zero, so nothing would be trained")
class Indifferent(Honest):
    def __call__(self, risks, gaps, mu, state):
        return Aggregate((0 * risks).sum(), torch.full_like(risks, 1 / len(risks)), state)


@sin("extreme_values_stay_finite", "NaN or infinity in the objective for 1e30 risks and gaps")
class Overflowing(Honest):
    def __call__(self, risks, gaps, mu, state):
        return Aggregate(risks.square().mean(), torch.full_like(risks, 1 / len(risks)), state)


@sin("extreme_values_stay_finite", "NaN or infinity in the weights for zero risks and gaps")
class DividesByZero(Honest):
    def __call__(self, risks, gaps, mu, state):
        inverse = 1 / risks.detach()
        weights = inverse / inverse.sum()
        return Aggregate(weights @ risks, weights, state)


@sin("leaves_the_process_alone", "changed torch's global random generator")
class Noisy(Honest):
    def __call__(self, risks, gaps, mu, state):
        weights = torch.softmax(torch.rand(len(risks)), dim=-1)
        return Aggregate(weights @ risks, weights, state)


@sin("leaves_the_process_alone", "changed torch's default dtype")
class WidensTheDefault(Honest):
    def __call__(self, risks, gaps, mu, state):
        torch.set_default_dtype(torch.float64)
        return super().__call__(risks, gaps, mu, state)


@sin("state_keeps_its_shape", r"the shape of the state after a step is \(8,\)")
class GrowingState(Honest):
    def __call__(self, risks, gaps, mu, state):
        return super().__call__(risks, gaps, mu, torch.cat([state, risks.detach()]))


@sin("stacked_runs_equal_each_alone", "cannot be stacked.*`stackable = False`")
class Branching(Honest):
    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        return Aggregate(risks.mean() if risks[0] > 0 else risks.sum(), weights, state)


@sin("stacked_runs_equal_each_alone", "stacking changes a run's objective")
class Mixing(Honest):
    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        return Aggregate(risks.mean() * (2 if torch._C._functorch.is_batchedtensor(risks) else 1), weights, state)


def test_stacking_clause_is_skipped_if_declared_unstackable():
    @component
    class Alone(Branching):
        """Branches on values, and declares it."""

        stackable = False

    class Contract(AggregatorContract):
        component = Alone()

    with pytest.raises(unittest.SkipTest, match="declares `stackable = False`"):
        Contract().test_stacked_runs_equal_each_alone()


@sin("one_source_gets_all_the_weight", "the weight of a single source is not 1")
class HalfForOneAlone(Honest):
    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(weights=found.weights / 2) if len(risks) == 1 else found


@sin("start_does_not_depend_on_the_sizes_but_in_value", r"the start with 2 sources of unequal sizes is \(300,\)")
class RemembersEveryExample(Honest):
    def start(self, sizes):
        return torch.zeros(int(sizes.sum()))


@sin("weights_lie_on_the_simplex", "the sum of the weights of 2 sources is 2; the contract asks for the simplex")
class UnnormalisedPair(Honest):
    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(weights=found.weights * 2) if len(risks) == 2 else found


@sin("objective_is_a_scalar_that_trains", r"the shape of the objective is \(1,\); the contract asks for \(\)")
class VectorForTwo(Honest):
    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(objective=found.objective.reshape(-1)) if len(risks) == 2 else found


@sin("gradient_is_the_objectives_own", "but the objective's slope is")
class Doubling(Honest):
    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(objective=2 * found.objective - found.objective.detach())


@sin("infinite_source_leaves_the_weights_finite", "NaN or infinity in the weights when a source's risk is infinite")
class WorstBySoftmax(Honest):
    def __call__(self, risks, gaps, mu, state):
        g = risks + mu * gaps
        weights = torch.softmax(g.detach(), dim=-1)
        return Aggregate((weights * g).sum(), weights, state)


@sin("is_deterministic", "second call with the same input changes the weights")
class NoisyForSeven(Honest):
    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        if len(risks) != 7:
            return found
        return found._replace(weights=torch.softmax(torch.tensor([random.SystemRandom().random() for _ in risks]), -1))


@sin("leaves_the_process_alone", "Python's global random generator")
class DrawsAndForgets(Honest):
    def __call__(self, risks, gaps, mu, state):
        random.random()
        return super().__call__(risks, gaps, mu, state)


@sin("input_is_not_changed", "changed its input, the risks, in place")
class OverwritesSeven(Honest):
    def __call__(self, risks, gaps, mu, state):
        return super().__call__(risks.add_(1) if len(risks) == 7 else risks, gaps, mu, state)
