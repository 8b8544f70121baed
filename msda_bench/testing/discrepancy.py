"""The contract of discrepancies."""

from __future__ import annotations

import unittest
from typing import ClassVar

import torch
from torch import Tensor, nn

from msda_bench.api import Discrepancy
from msda_bench.testing import toy
from msda_bench.testing.claims import brief, carries_gradient, close, equal, has_shape, is_finite
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.guard import leaves_alone, seeded
from msda_bench.testing.stack import RUNS, stacked_modules

_WIDTH = 6
_SIZE = 8
_CRITIC_STEPS = 60
_CRITIC_RATE = 0.05


class DiscrepancyContract(ComponentContract):
    """What every discrepancy promises.

    Attributes:
        component: the discrepancy under test.
        source_counts: the numbers of sources in the tests.
    """

    component: ClassVar[Discrepancy]
    source_counts: ClassVar[tuple[int, ...]] = (1, 2, 5)

    def module(self, k: int, seed: int = 0) -> nn.Module:
        """The module for k sources, its initial weights drawn from the seed."""
        with seeded(seed):
            return self.component.build(_WIDTH, k)

    def batch(self, k: int, stream: int = 0) -> tuple[Tensor, Tensor | None]:
        """Features of k sources and, if it looks at them, of the target."""
        target = toy.features(_SIZE, _WIDTH, stream=stream + 100) if self.component.uses_target else None
        return toy.features(k, _SIZE, _WIDTH, stream=stream), target

    def test_gaps_are_one_finite_number_a_source(self) -> None:
        """Gaps are (k,), float32 and finite, for samples that differ and for the same sample in every domain."""
        for k in self.source_counts:
            source, target = self.batch(k)
            same = source[0] if target is not None else None
            for features in ((source, target), (source[:1].expand(k, -1, -1), same)):
                gaps = self.module(k)(*features)
                has_shape(gaps, (k,), f"{self.who}: the gaps of {k} sources")
                is_finite(gaps, f"{self.who}: the gaps of {k} sources")
                assert gaps.dtype == torch.float32, f"{self.who}: gaps are {gaps.dtype}; the contract asks for float32"

    def test_gradient_reaches_the_features(self) -> None:
        """Every source's features, and the target's, get a finite gradient that is not all zero."""
        if not self.component.uses_target:
            raise unittest.SkipTest(f"{self.who} says that it does not look at the target")
        for k in self.source_counts:
            source, target = self.batch(k)
            assert target is not None
            gaps = self.module(k)(source, target)
            carries_gradient(gaps, f"{self.who}: the gaps")
            on_source, on_target = torch.autograd.grad(gaps.sum(), [source, target], allow_unused=True)
            self._reaches(on_target, "the target's features")
            for i in range(k):
                self._reaches(None if on_source is None else on_source[i], f"the features of source {i} of {k}")

    def test_gradient_reaches_every_parameter(self) -> None:
        """Each parameter of the module, such as a critic's, gets a finite gradient."""
        module = self.module(3)
        gaps = module(*self.batch(3))
        for name, parameter in module.named_parameters():
            (gradient,) = torch.autograd.grad(gaps.sum(), parameter, allow_unused=True, retain_graph=True)
            assert gradient is not None, (
                f"{self.who}: no gradient reaches the parameter {name}; it would never be trained"
            )
            is_finite(gradient, f"{self.who}: the gradient of the parameter {name}")

    def test_same_seed_same_module(self) -> None:
        """The initial weights are drawn from torch's global generator, which the engine seeds for each run."""
        with leaves_alone(self.who, self.draws, torch_generator=False):
            first, second = self.module(3).state_dict(), self.module(3).state_dict()
        for name, value in first.items():
            equal(second[name], value, f"{self.who}: built twice with one seed, {name} differs")

    def test_is_deterministic(self) -> None:
        """The same module and features give the same gaps, bit for bit."""
        module, features = self.module(6), self.batch(6)
        first, second = module(*features), module(*features)
        equal(second, first, f"{self.who}: a second call with the same features gives other gaps")

    def test_leaves_the_process_alone(self) -> None:
        """No global random generator, default dtype, number of threads or gradient mode is touched."""
        module, features = self.module(3), self.batch(3)
        with leaves_alone(self.who, self.draws):
            module(*features)

    def test_input_is_not_changed(self) -> None:
        """The features are left as they were."""
        module, features = self.module(7), self.batch(7)
        kept = [None if part is None else part.detach().clone() for part in features]
        module(*features)
        for now, then in zip(features, kept, strict=True):
            if now is not None and then is not None:
                equal(now.detach(), then, f"{self.who} changed its input in place; the contract asks for a new tensor")

    def test_is_symmetric_if_declared(self) -> None:
        """Exchanging source and target leaves the gap, if `symmetric` says so."""
        if not self.component.symmetric:
            raise unittest.SkipTest(f"{self.who} does not declare that it is symmetric")
        module = self.module(1)
        source, target = self.batch(1)
        assert target is not None, f"{self.who} declares itself symmetric but does not look at the target"
        there, back = module(source, target), module(target.unsqueeze(0), source.squeeze(0))
        close(back, there, f"{self.who} declares itself symmetric, but exchanging source and target changes the gap")

    def test_identical_samples_are_near_the_floor(self) -> None:
        """Where every domain has the same sample, each gap is smaller than where the sources lie far from the target.

        Critics are first trained on what they are shown, since an untrained one tells nothing apart.
        """
        if not self.component.uses_target:
            raise unittest.SkipTest(f"{self.who} says that it does not look at the target")
        k = 3
        sample = toy.numbers(_SIZE, _WIDTH, stream=100)
        far = 3 * toy.numbers(k, _SIZE, _WIDTH) + 2
        same = self._trained(k, sample.expand(k, -1, -1), sample)
        apart = self._trained(k, far, sample)
        assert bool((same < apart).all()), (
            f"{self.who}: identical samples have the gaps {brief(same)}, samples far apart {brief(apart)}; the "
            "contract asks for less where nothing differs"
        )

    def test_stacked_runs_equal_each_alone(self) -> None:
        """A stack of runs gives each the gaps it gets alone."""
        if not self.component.stackable:
            raise unittest.SkipTest(f"{self.who} says that it cannot be stacked")
        modules = [self.module(3, seed=run) for run in range(RUNS)]
        batches = [self.batch(3, stream=run) for run in range(RUNS)]
        sources = torch.stack([source for source, _ in batches])
        targets = [target for _, target in batches if target is not None]
        inputs = (sources, torch.stack(targets)) if targets else (sources,)
        together = self._stacked(modules, inputs)
        for run in range(RUNS):
            alone = modules[run](*batches[run])
            close(together[run], alone, f"{self.who}: a stacked run has other gaps than alone", tolerance=1e-4)

    def _trained(self, k: int, source: Tensor, target: Tensor) -> Tensor:
        """The gaps after the module's own parameters, if it has any, were trained on these samples."""
        module = self.module(k)
        gaps: Tensor = module(source, target)
        if not gaps.requires_grad:
            return gaps
        parameters = list(module.parameters())
        for _ in range(_CRITIC_STEPS):
            # By the gradient's signs: any scale of gaps trains alike, and torch.optim takes seconds to import.
            gradients = torch.autograd.grad(gaps.sum(), parameters, materialize_grads=True)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_(_CRITIC_RATE * gradient.sign())
            gaps = module(source, target)
        return gaps.detach()

    def _stacked(self, modules: list[nn.Module], inputs: tuple[Tensor, ...]) -> Tensor:
        wrapped: list[nn.Module] = [_Bound(module, without_target=len(inputs) == 1) for module in modules]
        return stacked_modules(self.who, wrapped, *inputs)

    def _reaches(self, gradient: Tensor | None, what: str) -> None:
        assert gradient is not None, f"{self.who}: no gradient reaches {what}; nothing would be aligned"
        is_finite(gradient, f"{self.who}: the gradient that reaches {what}")
        assert gradient.any(), f"{self.who}: the gradient that reaches {what} is zero; nothing would be aligned"


class _Bound(nn.Module):
    """The module with a target of None, which vmap does not take as an argument."""

    def __init__(self, module: nn.Module, *, without_target: bool) -> None:
        super().__init__()
        self.module = module
        self.without_target = without_target

    def forward(self, *features: Tensor) -> Tensor:
        gaps: Tensor = self.module(*features, None) if self.without_target else self.module(*features)
        return gaps
