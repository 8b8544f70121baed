"""The contract of aggregators."""

from __future__ import annotations

import math
import unittest
from typing import ClassVar

import torch
from torch import Tensor

from msda_bench.api import Aggregate, Aggregator
from msda_bench.testing import toy
from msda_bench.testing.claims import brief, carries_gradient, close, equal, has_shape, is_finite, on_simplex
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.guard import leaves_alone
from msda_bench.testing.stack import RUNS, stacked

_SLOPE_STEP = 4e-3
_SLOPE_TOLERANCE = 5e-3
"""What central differences of that step in float32 leave of a right gradient, for all but the steepest aggregators."""


class AggregatorContract(ComponentContract):
    """What every aggregator promises.

    Attributes:
        component: the aggregator under test.
        mu: the weight of the gaps in the tests.
        source_counts: the numbers of sources in the tests.
    """

    component: ClassVar[Aggregator]
    draws: ClassVar[str] = "an aggregator draws nothing; what changes from step to step belongs in its state"
    mu: ClassVar[float] = 0.1
    source_counts: ClassVar[tuple[int, ...]] = (1, 2, 5)

    def aggregate(self, risks: Tensor, gaps: Tensor) -> Aggregate:
        """The first step of a run."""
        found = self.component(risks, gaps, self.mu, self.component.initial_state(len(risks)))
        count = len(found) if isinstance(found, tuple) else 1
        assert count == 3, (
            f"{self.who} returned {count} values; the contract asks for Aggregate(objective, weights, state)"
        )
        return Aggregate(*found)

    def test_weights_lie_on_the_simplex(self) -> None:
        """The weights of several sources are (k,), not negative, and sum to 1."""
        for k in self.source_counts:
            if k > 1:
                weights = self.aggregate(toy.numbers(k), toy.numbers(k, stream=1)).weights
                on_simplex(weights, k, f"{self.who}: the weights of {k} sources")

    def test_one_source_gets_all_the_weight(self) -> None:
        """With k = 1 the weight is 1."""
        weights = self.aggregate(toy.numbers(1), toy.numbers(1, stream=1)).weights
        close(weights, torch.ones(1), f"{self.who} with one source: the contract asks for the weight 1")

    def test_order_of_the_sources_does_not_matter(self) -> None:
        """Permuting the sources permutes the weights and leaves the objective."""
        risks, gaps, order = toy.numbers(5), toy.numbers(5, stream=1), torch.tensor([3, 0, 4, 2, 1])
        found, permuted = self.aggregate(risks, gaps), self.aggregate(risks[order], gaps[order])
        close(permuted.weights, found.weights[order], f"{self.who}: permuted sources have other weights")
        close(permuted.objective, found.objective, f"{self.who}: permuted sources have another objective")

    def test_objective_is_a_scalar_that_trains(self) -> None:
        """The objective is a scalar whose gradient with respect to the risks is finite and not all zero."""
        for k in self.source_counts:
            risks = toy.features(k).detach().abs().requires_grad_()
            objective = self.aggregate(risks, toy.numbers(k, stream=1)).objective
            gradient = self._gradient(objective, risks)
            assert gradient.any(), f"{self.who}: the objective's gradient is zero; nothing would be trained"

    def test_gradient_is_the_objectives_own(self) -> None:
        """The gradient is the objective's derivative, or its derivative with the reported weights held fixed.

        The first is measured by central differences. The second, sum_i weights_i dg_i, is what an aggregator gives that
        detaches its weights.
        """
        risks, gaps = toy.features(4).detach().abs().requires_grad_(), toy.numbers(4, stream=1)
        found = self.aggregate(risks, gaps)
        gradient = self._gradient(found.objective, risks)
        measured = torch.stack([self._slope(risks.detach(), gaps, i) for i in range(4)])
        weighted = found.weights.detach()
        right = any(torch.allclose(gradient, one, atol=_SLOPE_TOLERANCE) for one in (measured, weighted))
        assert right, (
            f"{self.who}: the gradient with respect to the risks is {brief(gradient)}, but the objective's slope is "
            f"{brief(measured)} and the weights are {brief(weighted)}; the contract asks for one of them"
        )

    def test_extreme_values_stay_finite(self) -> None:
        """Equal, zero and huge (1e30) risks and gaps give finite weights, objective and gradient."""
        huge = torch.tensor([1e30, 1.0, 1.0])
        for what, values in {
            "equal": torch.ones(3),
            "zero": torch.zeros(3),
            "1e30": huge,
            "all 1e30": 1e30 * torch.ones(3),
        }.items():
            risks = values.clone().requires_grad_()
            found = self.aggregate(risks, values)
            on_simplex(found.weights, 3, f"{self.who}: the weights for {what} risks and gaps")
            is_finite(found.objective, f"{self.who}: the objective for {what} risks and gaps")
            self._gradient(found.objective, risks, f" for {what} risks and gaps")

    def test_infinite_source_leaves_the_weights_finite(self) -> None:
        """A source whose risk or gap is infinite leaves the weights on the simplex; the objective may be infinite."""
        one = torch.tensor([math.inf, 1.0, 2.0])
        for what, risks, gaps in (("risk", one, torch.ones(3)), ("gap", torch.ones(3), one)):
            weights = self.aggregate(risks, gaps).weights
            on_simplex(weights, 3, f"{self.who}: the weights where a source's {what} is infinite")

    def test_is_deterministic(self) -> None:
        """The same input gives the same output, bit for bit."""
        risks, gaps = toy.numbers(6), toy.numbers(6, stream=1)
        first, second = self.aggregate(risks, gaps), self.aggregate(risks, gaps)
        equal(second.weights, first.weights, f"{self.who}: a second call with the same input has other weights")
        equal(second.objective, first.objective, f"{self.who}: a second call with the same input has another objective")

    def test_leaves_the_process_alone(self) -> None:
        """No global random generator, default dtype, number of threads or gradient mode is touched."""
        with leaves_alone(self.who, self.draws):
            self.aggregate(toy.numbers(5), toy.numbers(5, stream=1))

    def test_input_is_not_changed(self) -> None:
        """Risks, gaps and state are left as they were."""
        given = [toy.numbers(7), toy.numbers(7, stream=1), self.component.initial_state(7)]
        kept = [tensor.clone() for tensor in given]
        risks, gaps, state = given
        self.component(risks, gaps, self.mu, state)
        for what, now, then in zip(("risks", "gaps", "state"), given, kept, strict=True):
            equal(now, then, f"{self.who} changed its input, the {what}, in place; the contract asks for a new tensor")

    def test_state_keeps_its_shape(self) -> None:
        """The state after a step has the shape and dtype that it had before."""
        state = self.component.initial_state(8)
        after = self.component(toy.numbers(8), toy.numbers(8, stream=1), self.mu, state)[2]
        has_shape(after, tuple(state.shape), f"{self.who}: the state after a step")
        assert after.dtype == state.dtype, (
            f"{self.who}: the state changes from {state.dtype} to {after.dtype} in a step"
        )

    def test_start_has_the_shape_of_the_initial_state(self) -> None:
        """However large the sources are, the state before the first step has one shape and dtype, and is finite."""
        for k in self.source_counts:
            plain, started = self.component.initial_state(k), self.component.start(100 * (1 + toy.numbers(k)))
            has_shape(started, tuple(plain.shape), f"{self.who}: the state at the start, of {k} sources")
            is_finite(started, f"{self.who}: the state at the start")
            assert started.dtype == plain.dtype, (
                f"{self.who}: start() gives a state of {started.dtype}, initial_state() of {plain.dtype}"
            )

    def test_stacked_runs_equal_each_alone(self) -> None:
        """A stack of runs, each with its own mu, gives each what it gets alone, gradient included."""
        if not self.component.stackable:
            raise unittest.SkipTest(f"{self.who} says that it cannot be stacked")
        risks, gaps = toy.features(RUNS, 4), toy.numbers(RUNS, 4, stream=1)
        mu = toy.numbers(RUNS, stream=2)
        state = torch.stack([self.component.initial_state(4)] * RUNS)
        together = Aggregate(*stacked(self.who, self.component, risks, gaps, mu, state))
        gradient = self._gradient(together.objective.sum(), risks)
        for run in range(RUNS):
            own = risks.detach()[run].requires_grad_()
            alone = Aggregate(*self.component(own, gaps[run], mu[run], state[run]))
            close(together.weights[run], alone.weights, f"{self.who}: a stacked run has other weights than alone")
            close(
                together.objective[run], alone.objective, f"{self.who}: a stacked run has another objective than alone"
            )
            close(
                gradient[run], self._gradient(alone.objective, own), f"{self.who}: a stacked run has another gradient"
            )

    def _slope(self, risks: Tensor, gaps: Tensor, i: int) -> Tensor:
        step = torch.zeros_like(risks)
        step[i] = _SLOPE_STEP
        above, below = self.aggregate(risks + step, gaps).objective, self.aggregate(risks - step, gaps).objective
        return (above - below).detach() / (2 * _SLOPE_STEP)

    def _gradient(self, objective: Tensor, risks: Tensor, where: str = "") -> Tensor:
        has_shape(objective, (), f"{self.who}: the objective{where}")
        carries_gradient(objective, f"{self.who}: the objective{where}")
        (gradient,) = torch.autograd.grad(objective, risks, allow_unused=True)
        assert gradient is not None, f"{self.who}: the objective{where} does not depend on the risks"
        is_finite(gradient, f"{self.who}: the objective's gradient{where}")
        return gradient
