"""Each phase trains its own parts; compiled updates agree with torch's."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from msda_bench.api import BagLinear, Phase, component
from msda_bench.engine import machine
from msda_bench.engine.compiled import CompiledBag, compiled_dropout
from msda_bench.engine.optim import PhaseOptimizers, Trainable, _dense
from msda_bench.functional import SparseRows
from msda_bench.layers.step_key import dropout
from msda_bench.suite.protocol import Protocol
from msda_bench.testing import toy
from msda_bench_builtin.schemes import Kd3a
from tests.engine.conftest import OPTIMIZERS, close, make_cell, ref, stacked, swapped, train

SGD, ADADELTA = (
    Protocol.model_validate({"epochs": 1, "batch": 1, "optimizer": optimizer})
    for optimizer in ({"sgd": {"lr": 0.1}}, "adadelta")
)
PARTS = ("features", "predictor", "critic")
PHASES = [Phase("all"), Phase("heads", ("predictor", "critic")), Phase("body", ("features",))]
HALVES = st.integers(-(2**31), 2**31 - 1)


def optimized(phases):
    parts = {name: nn.Linear(1, 1, bias=False) for name in PARTS}
    trainable = {name: Trainable.of(part, SGD, sparse=False) for name, part in parts.items()}
    return parts, PhaseOptimizers(SGD, trainable, phases)


@pytest.mark.parametrize(("phases", "place"), [(PHASES[:1], 0), (PHASES, 0), (PHASES, 1), (PHASES, 2)])
def test_phases_train_only_the_parts_they_name(phases, place):
    parts, optimizers = optimized(phases)
    before = {name: part.weight.item() for name, part in parts.items()}
    sum(part.weight.sum() for part in parts.values()).backward()
    optimizers.step(phases[place], {})
    assert {name for name, part in parts.items() if part.weight.item() != before[name]} == set(phases[place].trains)
    optimizers.zero_grad()
    assert [part.weight.grad for part in parts.values()] == [None] * 3


class Apart(Kd3a):
    """KD3A whose models start as the same weights, so that in the first epoch nothing is added to them."""

    def build(self, network, k, discrepancy):
        critic = super().build(network, k, discrepancy)
        for features in critic["features"]:
            features.load_state_dict(network.features.state_dict())
        return critic


PLAIN = component(type("Plain", (Apart,), {"name": "plain", "adds_offsets": False}))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weight_decay_acts_on_the_models_of_kd3a_as_on_models_of_their_own(optimizer):
    more = {"optimizer": OPTIMIZERS[optimizer], "schedule": "cosine", "clip": 0.5, "steps": 12, "epochs": 1}
    cells = [swapped(make_cell("SRC", seed=seed, **more), PLAIN) for seed in (0, 1)]
    ours = [replace(cell, scheme=ref("scheme", "kd3a")) for cell in cells]
    plain, alone, together = train(cells, PLAIN), train(ours), stacked(ours)
    for theirs, *found in zip(plain, alone, together, strict=True):
        for record in found:
            close(record, theirs)
    undecayed = OPTIMIZERS[optimizer][optimizer] | {"weight_decay": 0.0}
    without = make_cell("SRC", **more | {"optimizer": {optimizer: undecayed}})
    (other,) = train([swapped(without, PLAIN)], PLAIN)
    with pytest.raises(AssertionError):
        close(other, plain[0])


def test_weight_decay_acts_on_the_sum_across_the_averages_of_kd3a():
    """Weights of constant slopes have a closed form: each epoch they part, decaying, and become their mean."""
    slopes, averages, lr, decay, steps = {"critic.features.0.": 1.0, "critic.features.1.": -3.0}, [], 0.1, 0.5, 3

    class Sloping(Kd3a):
        """No vote counts, so that the sources share alpha; the gradient is the same in every step."""

        def step(self, parts, batch, state, phase):
            slope = {name: slopes.get(name[: len("critic.features.0.")], 0.0) for name in parts.weights}
            objective = sum(slope[name] * value.sum() for name, value in parts.modules.live().items())
            carried = {**batch.carried, "seen": batch.carried["seen"] + 1}
            return super().step(parts, batch, state, phase)._replace(objective=objective, carried=carried)

        def at_epoch(self, parts, target, carried, stage):
            renewed = super().at_epoch(parts, target, carried, stage)
            names = [name for name in renewed if name.startswith("features.")]
            averages.append(torch.cat([(parts.weights[name] + renewed[name]).flatten() for name in names]))
            return renewed

    sgd = {"sgd": {"lr": lr, "momentum": 0.0, "weight_decay": decay}}
    cell = make_cell("SRC", optimizer=sgd, epochs=4, steps=steps, epoch="equal")
    sloping = component(type("Sloping", (Sloping,), {"name": "sloping"}))
    train([swapped(cell, sloping)], sloping)
    first, *later = averages
    shrinks = (1 - lr * decay) ** steps
    for average in later:
        first = shrinks * first - (1 - shrinks) / decay * sum(slopes.values()) / len(slopes)
        torch.testing.assert_close(average, first)
    assert len(later) == 3


def test_bag_weights_are_separate_only_with_sparse_compiled_adadelta(monkeypatch):
    layer = BagLinear(3, 2)
    lazy = Trainable.of(layer, ADADELTA, sparse=True)
    assert (lazy.bags, [value.shape for value in lazy.parameters]) == ([layer], [(2,)])
    decaying, clipped = (
        Protocol.model_validate(dict(ADADELTA) | more)
        for more in ({"optimizer": {"adadelta": {"weight_decay": 0.1}}}, {"clip": 1.0})
    )
    for training, sparse in ((ADADELTA, False), (SGD, True), (decaying, True), (clipped, True)):
        dense = Trainable.of(layer, training, sparse=sparse)
        assert (dense.bags, len(dense.parameters)) == ([], 2)
    monkeypatch.setattr(machine, "can_compile", lambda: False)
    assert Trainable.of(layer, ADADELTA, sparse=True).bags == []


@pytest.mark.parametrize("phase", [Phase("critic", ("critic",)), Phase("all")])
def test_a_restricted_backward_pass_gives_equal_gradients_to_trained_parts(phase):
    found = []
    for whole in (True, False):
        torch.manual_seed(0)
        modules = nn.ModuleDict({"features": nn.Linear(4, 3), "predictor": nn.Linear(3, 2), "critic": nn.Linear(3, 1)})
        modules["critic"].bias.requires_grad_(False)  # as of a frozen layer
        parts = {name: Trainable(list(part.parameters()), []) for name, part in modules.items()}
        optimizers = PhaseOptimizers(SGD, parts, [Phase("critic", ("critic",)), Phase("all")])
        features = modules["features"](torch.ones(5, 4))
        objective = modules["predictor"](features).sum() + modules["critic"](features).square().sum()
        objective.backward(inputs=None if whole else optimizers.inputs(phase))
        found.append({name: [value.grad for value in part.parameters()] for name, part in modules.items()})
    for name in PARTS:
        for expected, gradient in zip(*(gradients[name] for gradients in found), strict=True):
            if name in phase.trains and expected is not None:
                assert torch.equal(gradient, expected)
            else:
                assert gradient is None


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_a_bag_updated_word_by_word_equals_torchs_adadelta(dtype, atol):
    """At a changing rate, over documents that lack most words; a step without gradient counts, too."""
    bags = [BagLinear(60, 5).to(dtype) for _ in range(2)]
    bags[1].load_state_dict(bags[0].state_dict())
    settings = {"lr": 0.7, "rho": 0.95, "eps": 1e-5}
    optimizers = CompiledBag(bags[0], *settings.values()), _dense("adadelta", settings, [bags[1].weight])
    for step in range(60):
        found = toy.bag(2, 60, step)
        words = SparseRows(found.columns, found.values.to(dtype), found.offsets, 60)
        for bag, optimizer in zip(bags, optimizers, strict=True):
            optimizer.zero_grad()
            optimizer.set_lr(0.7 / (1 + step // 9))
            bag.weight.grad = None if bag is bags[0] else torch.zeros_like(bag.weight)
            if step % 7:
                (bag(words).sin() + bag(words).square()).sum().backward()
            optimizer.step()
    assert torch.allclose(*(bag.weight for bag in bags), rtol=0, atol=atol)


@settings(max_examples=30)
@given(HALVES, HALVES, st.sampled_from([0.1, 0.5, 0.7]), st.integers(0, 70))
def test_compiled_dropout_equals_the_plain_one_bit_for_bit(high, low, rate, size):
    key = torch.tensor([high, low], dtype=torch.int32)
    found = []
    for drop in (dropout, compiled_dropout):
        x = torch.linspace(-2, 3, 3 * size).view(3, size).requires_grad_()
        out = drop(x, key, rate)
        out.square().sum().backward()
        found.append((out, x.grad))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


def test_compiled_dropout_is_twice_differentiable_in_any_layout_and_keeps_what_is_not_finite():
    key = torch.tensor([1, 2], dtype=torch.int32)
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).t().requires_grad_()
    assert torch.equal(compiled_dropout(x, key, 0.4), dropout(x, key, 0.4))
    assert torch.autograd.gradcheck(lambda z: compiled_dropout(z, key, 0.4) ** 2, x)
    assert torch.autograd.gradgradcheck(lambda z: compiled_dropout(z, key, 0.4) ** 2, x)
    for value in (float("nan"), float("inf")):
        x = torch.full((50,), value)
        assert torch.equal(compiled_dropout(x, key, 0.5).isfinite(), dropout(x, key, 0.5).isfinite())
