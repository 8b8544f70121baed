"""The contract of aggregators passes an honest one and catches each sin."""

from __future__ import annotations

import random
import unittest

import pytest
import torch

from msda_bench.api import Aggregate, Aggregator, component
from msda_bench.testing import AggregatorContract
from msda_bench.testing.toy import Mean


@component
class Momentum(Aggregator):
    """Softmax of minus the risks averaged over the steps; keeps state."""

    name = "momentum"

    def initial_state(self, k):
        return torch.zeros(k)

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
    """The share of each source's examples; told of them at the start."""

    name = "by_size"

    def initial_state(self, k):
        return torch.ones(k)

    def start(self, sizes):
        return sizes

    def __call__(self, risks, gaps, mu, state):
        weights = state / state.sum()
        return Aggregate((weights * (risks + mu * gaps)).sum(-1), weights, state)


class TestBySize(AggregatorContract):
    component = BySize()


class Honest(Aggregator):
    """Right but for what a subclass spoils."""

    name = "spoiled"

    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        return Aggregate((weights * (risks + mu * gaps)).sum(), weights, state)


@component
class Negative(Honest):
    """Weights below zero."""

    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        tilt = torch.linspace(-1, 1, len(risks)) if len(risks) > 1 else torch.zeros(1)
        return Aggregate(risks.mean(), weights + tilt, state)


@component
class TwoValues(Honest):
    """Forgets the state."""

    def __call__(self, risks, gaps, mu, state):
        return risks.mean(), torch.full_like(risks, 1 / len(risks))


@component
class FirstCome(Honest):
    """Favours the first source."""

    def __call__(self, risks, gaps, mu, state):
        weights = torch.softmax(-torch.arange(float(len(risks))), dim=-1)
        return Aggregate(weights @ risks, weights, state)


@component
class Detached(Honest):
    """No gradient."""

    def __call__(self, risks, gaps, mu, state):
        return Aggregate(risks.detach().mean(), torch.full_like(risks, 1 / len(risks)), state)


@component
class Indifferent(Honest):
    """A gradient of zero."""

    def __call__(self, risks, gaps, mu, state):
        return Aggregate((0 * risks).sum(), torch.full_like(risks, 1 / len(risks)), state)


@component
class Overflowing(Honest):
    """Squares what may be huge."""

    def __call__(self, risks, gaps, mu, state):
        return Aggregate(risks.square().mean(), torch.full_like(risks, 1 / len(risks)), state)


@component
class DividesByZero(Honest):
    """Weights of 1 / risk."""

    def __call__(self, risks, gaps, mu, state):
        inverse = 1 / risks.detach()
        weights = inverse / inverse.sum()
        return Aggregate(weights @ risks, weights, state)


@component
class Noisy(Honest):
    """Draws from torch's global generator."""

    def __call__(self, risks, gaps, mu, state):
        weights = torch.softmax(torch.rand(len(risks)), dim=-1)
        return Aggregate(weights @ risks, weights, state)


@component
class WidensTheDefault(Honest):
    """Sets torch's default dtype."""

    def __call__(self, risks, gaps, mu, state):
        torch.set_default_dtype(torch.float64)
        return super().__call__(risks, gaps, mu, state)


@component
class GrowingState(Honest):
    """Returns a state of another shape."""

    def __call__(self, risks, gaps, mu, state):
        return super().__call__(risks, gaps, mu, torch.cat([state, risks.detach()]))


@component
class Branching(Honest):
    """Branches on a tensor's value."""

    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        return Aggregate(risks.mean() if risks[0] > 0 else risks.sum(), weights, state)


@component
class Mixing(Honest):
    """Mixes the runs of a stack: it reads the data behind the batched tensor."""

    def __call__(self, risks, gaps, mu, state):
        weights = torch.full_like(risks, 1 / len(risks))
        return Aggregate(risks.mean() * (2 if torch._C._functorch.is_batchedtensor(risks) else 1), weights, state)


def test_one_that_says_it_cannot_be_stacked_is_not_asked():
    @component
    class Alone(Branching):
        """Branches, and says so."""

        stackable = False

    class Contract(AggregatorContract):
        component = Alone()

    with pytest.raises(unittest.SkipTest, match="says that it cannot be stacked"):
        Contract().test_stacked_runs_equal_each_alone()


@component
class HalfForOneAlone(Honest):
    """Gives a single source half the weight."""

    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(weights=found.weights / 2) if len(risks) == 1 else found


@component
class StartsWithOneMore(Honest):
    """A state of another shape where it starts from the sources' sizes."""

    def start(self, sizes):
        return sizes


@component
class UnnormalisedPair(Honest):
    """Weights of sum 2 for two sources."""

    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(weights=found.weights * 2) if len(risks) == 2 else found


@component
class VectorForTwo(Honest):
    """An objective of shape (1,) for two sources."""

    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(objective=found.objective.reshape(-1)) if len(risks) == 2 else found


@component
class Doubling(Honest):
    """Twice the gradient of its objective."""

    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        return found._replace(objective=2 * found.objective - found.objective.detach())


@component
class WorstBySoftmax(Honest):
    """The softmax of what may be infinite."""

    def __call__(self, risks, gaps, mu, state):
        g = risks + mu * gaps
        weights = torch.softmax(g.detach(), dim=-1)
        return Aggregate((weights * g).sum(), weights, state)


@component
class NoisyForSix(Honest):
    """Other weights at each call, for six sources."""

    def __call__(self, risks, gaps, mu, state):
        found = super().__call__(risks, gaps, mu, state)
        if len(risks) != 6:
            return found
        return found._replace(weights=torch.softmax(torch.tensor([random.SystemRandom().random() for _ in risks]), -1))


@component
class DrawsAndForgets(Honest):
    """Draws from Python's global generator, for nothing."""

    def __call__(self, risks, gaps, mu, state):
        random.random()
        return super().__call__(risks, gaps, mu, state)


@component
class OverwritesSeven(Honest):
    """Works in place on seven sources."""

    def __call__(self, risks, gaps, mu, state):
        return super().__call__(risks.add_(1) if len(risks) == 7 else risks, gaps, mu, state)


SINS = [
    (UnnormalisedPair, "weights_lie_on_the_simplex", "sums to 2; the contract asks for the simplex"),
    (Negative, "weights_lie_on_the_simplex", "has a negative entry"),
    (TwoValues, "weights_lie_on_the_simplex", "returned 2 values; the contract asks for Aggregate"),
    (HalfForOneAlone, "one_source_gets_all_the_weight", "the contract asks for the weight 1"),
    (FirstCome, "order_of_the_sources_does_not_matter", "permuted sources have other weights"),
    (VectorForTwo, "objective_is_a_scalar_that_trains", r"has shape \(1,\); the contract asks for \(\)"),
    (Detached, "objective_is_a_scalar_that_trains", "carries no gradient"),
    (Indifferent, "objective_is_a_scalar_that_trains", "gradient is zero; nothing would be trained"),
    (Overflowing, "extreme_values_stay_finite", "objective for 1e30 risks and gaps is not finite"),
    (DividesByZero, "extreme_values_stay_finite", "weights for zero risks and gaps is not finite"),
    (Noisy, "leaves_the_process_alone", "changed torch's global random generator"),
    (
        NoisyForSix,
        "is_deterministic",
        "second call with the same input has other weights",
    ),
    (WidensTheDefault, "leaves_the_process_alone", "changed torch's default dtype"),
    (OverwritesSeven, "input_is_not_changed", "changed its input, the risks, in place"),
    (GrowingState, "state_keeps_its_shape", r"the state after a step has shape \(8,\)"),
    (Branching, "stacked_runs_equal_each_alone", "cannot be stacked.*`stackable = False`"),
    (Mixing, "stacked_runs_equal_each_alone", "a stacked run has another objective than alone"),
    (Doubling, "gradient_is_the_objectives_own", "but the objective's slope is"),
    (WorstBySoftmax, "infinite_source_leaves_the_weights_finite", "weights where a source's risk is infinite is not"),
    (StartsWithOneMore, "start_has_the_shape_of_the_initial_state", r"of 1 sources has shape \(1,\)"),
    (DrawsAndForgets, "leaves_the_process_alone", "Python's global random generator"),
]
"""What spoils a component, the clause that it breaks and how the kit says so."""
