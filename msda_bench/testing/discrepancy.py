"""The contract of discrepancies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from msda_bench.api import Discrepancy
from msda_bench.testing import toy
from msda_bench.testing.component import RUNS, Call, RepeatedContract, brief

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
            assert target is not None
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
        assert target is not None, f"{self.who}: it declares itself symmetric but ignores the target"
        there, back = module(source, target), module(target.unsqueeze(0), source.squeeze(0))
        self.close(back, there, "it declares itself symmetric, but exchanging source and target changes the gap")

    def test_identical_samples_are_near_the_floor(self) -> None:
        """Each gap is smaller for identical samples than for sources far from the target.

        Critics are trained first, because an untrained critic cannot distinguish domains.
        """
        self.applies(self.component.uses_target, _NO_TARGET)
        k, sample = 3, toy.numbers(_SIZE, _WIDTH, stream=100)
        far = 3 * toy.numbers(k, _SIZE, _WIDTH) + 2
        same = self._trained(k, sample.expand(k, -1, -1), sample)
        apart = self._trained(k, far, sample)
        shown = f"the gaps are {brief(same)} for identical samples and {brief(apart)} for samples far apart"
        self.holds((same < apart).all(), f"{shown}; the contract asks for smaller gaps for identical samples")

    def test_stacked_runs_equal_each_alone(self) -> None:
        """Each run of a stack gets the gaps that it gets alone."""
        self.must_stack()
        modules = [self.module(3, seed=run) for run in range(RUNS)]
        batches = [self.batch(3, stream=run) for run in range(RUNS)]
        targets = [target for _, target in batches if target is not None]
        sources = torch.stack([source for source, _ in batches])
        together, _ = self.stacked(modules, sources, torch.stack(targets) if targets else None)
        for gaps, module, own in zip(together, modules, batches, strict=True):
            self.close(gaps, module(*own), "stacking changes a run's gaps", tolerance=1e-4)

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
