"""The contracts of discrepancies and aggregators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from msda_bench.api import Aggregate, Aggregator, Discrepancy
from msda_bench.testing import toy
from msda_bench.testing.broken import BrokenContractError
from msda_bench.testing.component import RUNS, Call, RepeatedContract, brief

_SLOPE_STEP = 4e-3
_SLOPE_TOLERANCE = 5e-3
"""Largest error of float32 central differences with this step, for all but the steepest aggregators."""
_NO_TARGET = "declares `uses_target = False`"
_WIDTH = 6
_SIZE = 8
_CRITIC_STEPS = 60
_CRITIC_RATE = 0.05


class DiscrepancyContract(RepeatedContract):
    """What every discrepancy promises.

    Attributes:
        source_counts: the numbers of sources in the tests.
    """

    component: ClassVar[Discrepancy]
    source_counts: ClassVar[tuple[int, ...]] = (1, 2, 5)

    def module(self, k: int, seed: int = 0) -> nn.Module:
        """The module for k sources, with initial weights drawn from the seed."""
        with toy.seeded(seed):
            return self.component.build(_WIDTH, k)

    def batch(self, k: int, stream: int = 0) -> tuple[Tensor, Tensor | None]:
        """Features of the sources (k, 8, 6) and of the target (8, 6); None for the target if it is not used."""
        target = toy.features(_SIZE, _WIDTH, stream=stream + 100) if self.component.uses_target else None
        return toy.features(k, _SIZE, _WIDTH, stream=stream), target

    def calls(self) -> Iterator[Call]:
        """The gaps of seven sources."""
        module, (source, target) = self.module(7), self.batch(7)
        given = {"sources' features": source} | ({} if target is None else {"target's features": target})
        yield Call(lambda: {"gaps": module(source, target)}, given)

    def test_gaps_are_one_finite_number_a_source(self) -> None:
        """Gaps are (k,), float32 and finite, for different samples and for one sample in every domain."""
        for k in self.source_counts:
            source, target = self.batch(k)
            same = source[0] if target is not None else None
            for features in ((source, target), (source[:1].expand(k, -1, -1), same)):
                self.is_sound(self.module(k)(*features), (k,), f"the gaps of {k} sources", torch.float32)

    def test_gradient_reaches_the_features(self) -> None:
        """The gaps give the features of the target and of every source a finite gradient that is not all zero."""
        self.applies(self.component.uses_target, _NO_TARGET)
        for k in self.source_counts:
            source, target = self.batch(k)
            if target is None:
                raise BrokenContractError(f"{self.who}: it declares that it uses the target, but gets none")
            of = {"the sources' features": source, "the target's features": target}
            on_source, on_target = self.gradients(self.module(k)(source, target).sum(), of, "the gaps")
            for what, gradient in (("target", on_target), *((f"source {i} of {k}", on_source[i]) for i in range(k))):
                failure = f"the gradient that reaches the features of the {what} is zero, so nothing would be aligned"
                self.holds(gradient.any(), failure)

    def test_gradient_reaches_every_parameter(self) -> None:
        """The gaps give each parameter of the module, such as a critic's, a finite gradient."""
        module = self.module(3)
        self.reaches_every_parameter(module, module(*self.batch(3)).sum())

    def test_same_seed_same_module(self) -> None:
        """The initial weights are drawn from torch's global generator, which the engine seeds for each run."""
        self.same_weights(lambda: self.module(3))

    def test_is_symmetric_if_declared(self) -> None:
        """Exchanging source and target does not change the gap if `symmetric` is True."""
        self.applies(self.component.symmetric, "does not declare `symmetric = True`")
        module, (source, target) = self.module(1), self.batch(1)
        if target is None:
            raise BrokenContractError(f"{self.who}: it declares itself symmetric but ignores the target")
        there = module(source, target)
        back = module(target.unsqueeze(0), source.squeeze(0))
        self.close(back, there, "it declares itself symmetric, but exchanging source and target changes the gap")

    def test_identical_samples_are_near_the_floor(self) -> None:
        """Each gap is smaller for identical samples than for sources far from the target.

        Critics are trained first, because an untrained critic cannot distinguish domains.
        """
        self.applies(self.component.uses_target, _NO_TARGET)
        k = 3
        sample = toy.numbers(_SIZE, _WIDTH, stream=100)
        far = 3 * toy.numbers(k, _SIZE, _WIDTH) + 2
        same = self._trained(k, sample.expand(k, -1, -1), sample)
        apart = self._trained(k, far, sample)
        shown = f"the gaps are {brief(same)} for identical samples and {brief(apart)} for samples far apart"
        self.holds((same < apart).all(), f"{shown}; the contract asks for smaller gaps for identical samples")

    def test_stacked_runs_equal_each_alone(self) -> None:
        """Each run of a stack gets the gaps that it gets alone."""
        self.must_stack()
        modules = [self.module(3, seed=run) for run in range(RUNS)]
        self.same_in_a_stack(modules, [self.batch(3, stream=run) for run in range(RUNS)], "gaps")

    def _trained(self, k: int, source: Tensor, target: Tensor) -> Tensor:
        """The gaps after training the module's parameters, if any, on these samples."""
        module = self.module(k)
        gaps: Tensor = module(source, target)
        if not gaps.requires_grad:
            return gaps
        parameters = list(module.parameters())
        for _ in range(_CRITIC_STEPS):
            # Sign steps do not depend on the scale of the gaps; torch.optim would take seconds to import.
            gradients = torch.autograd.grad(gaps.sum(), parameters, materialize_grads=True)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_(_CRITIC_RATE * gradient.sign())
            gaps = module(source, target)
        return gaps.detach()


class AggregatorContract(RepeatedContract):
    """What every aggregator promises.

    Attributes:
        mu: the weight of the gaps in the tests.
        source_counts: the numbers of sources in the tests.
    """

    component: ClassVar[Aggregator]
    draws: ClassVar[str] = "an aggregator draws nothing; whatever changes from step to step belongs in its state"
    mu: ClassVar[float] = 0.1
    source_counts: ClassVar[tuple[int, ...]] = (1, 2, 5)

    def aggregate(self, risks: Tensor, gaps: Tensor) -> Aggregate:
        """The aggregate of the first step of a run, for (k,) risks and gaps."""
        return self._aggregate(risks, gaps, self._start(len(risks)))

    def calls(self) -> Iterator[Call]:
        """The first step of a run with seven sources."""
        (risks, gaps), state = _inputs(7), self._start(7)
        given = {"risks": risks, "gaps": gaps, "state": state}
        yield Call(lambda: self._aggregate(risks, gaps, state)._asdict(), given)

    def test_weights_lie_on_the_simplex(self) -> None:
        """The (k,) weights are non-negative and sum to 1, so that a single source has all the weight."""
        for k in self.source_counts:
            self.on_simplex(self.aggregate(*_inputs(k)).weights, k, f"the weights of {k} sources")

    def test_order_of_the_sources_does_not_matter(self) -> None:
        """Permuting the sources permutes the weights and does not change the objective."""
        (risks, gaps), order = _inputs(5), torch.tensor([3, 0, 4, 2, 1])
        straight = self.aggregate(risks, gaps)
        permuted = self.aggregate(risks[order], gaps[order])
        self.close(permuted.weights, straight.weights[order], "permuting the sources changes their weights")
        self.close(permuted.objective, straight.objective, "permuting the sources changes the objective")

    def test_objective_is_a_scalar_that_trains(self) -> None:
        """The objective is a scalar whose gradient with respect to the risks is finite and not all zero."""
        for k in self.source_counts:
            risks = toy.features(k).detach().abs().requires_grad_()
            gradient = self._gradient(self.aggregate(risks, toy.numbers(k, stream=1)).objective, risks)
            self.holds(gradient.any(), "the objective's gradient is zero, so nothing would be trained")

    def test_gradient_is_the_objectives_own(self) -> None:
        """The gradient is the objective's derivative, or its derivative with the reported weights held fixed.

        The first is measured by central differences. The second, sum_i weights_i dg_i, is the gradient of an aggregator
        that detaches its weights.
        """
        risks = toy.features(4).detach().abs().requires_grad_()
        gaps = toy.numbers(4, stream=1)
        aggregate = self.aggregate(risks, gaps)
        gradient = self._gradient(aggregate.objective, risks)
        measured = torch.stack([self._slope(risks.detach(), gaps, i) for i in range(4)])
        weighted = aggregate.weights.detach()
        self.holds(
            any(torch.allclose(gradient, one, atol=_SLOPE_TOLERANCE) for one in (measured, weighted)),
            f"the gradient with respect to the risks is {brief(gradient)}, but the objective's slope is "
            f"{brief(measured)} and the weights are {brief(weighted)}; the contract asks for one of them",
        )

    def test_extreme_values_stay_finite(self) -> None:
        """The weights, objective and gradient are finite for equal, zero and huge (1e30) risks and gaps."""
        ones = torch.ones(3)
        extremes = {
            "equal": ones,
            "zero": 0 * ones,
            "1e30": torch.tensor([1e30, 1, 1]),
            "all 1e30": 1e30 * ones,
        }
        for what, values in extremes.items():
            where = f"for {what} risks and gaps"
            risks = values.clone().requires_grad_()
            aggregate = self.aggregate(risks, values)
            self.on_simplex(aggregate.weights, 3, f"the weights {where}")
            self._gradient(aggregate.objective, risks, f" {where}")

    def test_infinite_source_leaves_the_weights_finite(self) -> None:
        """The weights stay on the simplex if the risk or gap of a source is infinite; the objective may be infinite."""
        one = torch.tensor([math.inf, 1.0, 2.0])
        for what, risks, gaps in (("risk", one, torch.ones(3)), ("gap", torch.ones(3), one)):
            self.on_simplex(self.aggregate(risks, gaps).weights, 3, f"the weights when a source's {what} is infinite")

    def test_state_keeps_its_shape(self) -> None:
        """A step does not change the shape or dtype of the state."""
        state = self._start(8)
        after = self._aggregate(*_inputs(8), state).state
        self.is_sound(after, tuple(state.shape), "the state after a step", state.dtype)

    def test_stacked_runs_equal_each_alone(self) -> None:
        """Each run of a stack, with its own mu, gets the objective, weights and gradient that it gets alone."""
        self.must_stack()
        risks = toy.features(RUNS, 4)
        gaps = toy.numbers(RUNS, 4, stream=1)
        mu = toy.numbers(RUNS, stream=2)
        state = torch.stack([self._start(4)] * RUNS)
        together = Aggregate(*self.vmapped(self.component, risks, gaps, mu, state))
        gradient = self._gradient(together.objective.sum(), risks)
        for run, single in enumerate(risks.detach()):
            alone = Aggregate(*self.component(single.requires_grad_(), gaps[run], mu[run], state[run]))
            self.close(together.weights[run], alone.weights, "stacking changes a run's weights")
            self.close(together.objective[run], alone.objective, "stacking changes a run's objective")
            self.close(gradient[run], self._gradient(alone.objective, single), "stacking changes a run's gradient")

    def _aggregate(self, risks: Tensor, gaps: Tensor, state: Tensor) -> Aggregate:
        returned = self.component(risks, gaps, self.mu, state)
        count = len(returned) if isinstance(returned, tuple) else 1
        asked = "the contract asks for Aggregate(objective, weights, state)"
        self.holds(count == 3, f"it returned {count} values; {asked}")
        return Aggregate(*returned)

    def _start(self, k: int) -> Tensor:
        return self.component.start(torch.full((k,), 100.0))

    def _slope(self, risks: Tensor, gaps: Tensor, i: int) -> Tensor:
        step = torch.zeros_like(risks)
        step[i] = _SLOPE_STEP
        above = self.aggregate(risks + step, gaps).objective
        below = self.aggregate(risks - step, gaps).objective
        return (above - below).detach() / (2 * _SLOPE_STEP)

    def _gradient(self, objective: Tensor, risks: Tensor, where: str = "") -> Tensor:
        self.is_sound(objective, (), f"the objective{where}")
        return self.gradients(objective, {"the risks": risks}, "the objective", where)[0]


def _inputs(k: int) -> tuple[Tensor, Tensor]:
    """Risks and gaps of k sources, (k,) float32 each."""
    return toy.numbers(k), toy.numbers(k, stream=1)
