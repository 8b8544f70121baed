"""Each phase trains its own parts; compiled updates agree with torch's."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from msda_bench.api import BagLinear, Phase, component
from msda_bench.engine.compiled import CompiledBag, compiled_dropout
from msda_bench.engine.optim import PhaseOptimizers, Trainable, _dense, _one_pass
from msda_bench.functional import SparseRows
from msda_bench.layers.step_key import dropout
from msda_bench.suite.protocol import TrainingConfig
from msda_bench.testing import toy
from msda_bench_builtin.schemes import Kd3a
from tests.engine.conftest import OPTIMIZERS, at_seeds, close, make_cell, ref, stacked, swapped, train

SGD = TrainingConfig.model_validate({"epochs": 1, "batch": 1, "optimizer": {"sgd": {"lr": 0.1}}})
PHASES = [Phase("all"), Phase("heads", ("predictor", "critic")), Phase("body", ("features",))]


@pytest.mark.parametrize(("phases", "place"), [(PHASES[:1], 0), (PHASES, 0), (PHASES, 1), (PHASES, 2)])
def test_a_phase_trains_the_parts_that_it_names_and_differentiates_no_others(phases, place):
    """The gradients of other parts, which cost time, would change nothing."""
    phase, found = phases[place], []
    for whole in (True, False):
        torch.manual_seed(0)
        modules = nn.ModuleDict({"features": nn.Linear(4, 3), "predictor": nn.Linear(3, 2), "critic": nn.Linear(3, 1)})
        modules["critic"].bias.requires_grad_(False)  # as of a frozen layer
        optimizers = PhaseOptimizers(
            SGD, {name: Trainable.of(part, SGD, sparse=False) for name, part in modules.items()}, phases
        )
        before = {name: part.weight.detach().clone() for name, part in modules.items()}
        features = modules["features"](torch.ones(5, 4))
        objective = modules["predictor"](features).sum() + modules["critic"](features).square().sum()
        objective.backward(inputs=None if whole else optimizers.inputs(phase))
        differentiated = {name for name, part in modules.items() if part.weight.grad is not None}
        optimizers.step(phase, {})
        moved = {name for name, part in modules.items() if not torch.equal(part.weight, before[name])}
        assert moved == set(phase.trains)
        assert whole or differentiated == moved
        optimizers.zero_grad()
        assert [value.grad for value in modules.parameters()] == [None] * 6
        found.append(list(modules.parameters()))
    assert all(map(torch.equal, *found))


class Apart(Kd3a):
    """KD3A whose models start as the same weights, so that in the first epoch nothing is added to them."""

    def build(self, network, k, discrepancy):
        critic = super().build(network, k, discrepancy)
        for features in critic["features"]:
            features.load_state_dict(network.features.state_dict())
        return critic


PLAIN = component(type("Plain", (Apart,), {"name": "plain", "offsets_weights": False}))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weight_decay_acts_on_the_models_of_kd3a_as_on_models_of_their_own(optimizer):
    more = {"optimizer": OPTIMIZERS[optimizer], "schedule": "cosine", "clip": 0.5, "steps": 12, "epochs": 1}
    cells = at_seeds(swapped(make_cell("SRC", **more), PLAIN))
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "nesterov", "plain sgd"])
def test_a_compiled_optimiser_is_torchs_to_the_bit(name, decay, dtype):
    """At a changing rate, over layouts and widths that fill no vector; a weight without a gradient is left alone."""
    drawn = torch.Generator().manual_seed(0)
    shapes = ((64, 13), (64,), (3, 5), (), (257,), (600, 40), (8, 3, 5, 5))
    ours = [torch.randn(shape, dtype=dtype, generator=drawn) for shape in shapes]
    ours[-1] = ours[-1].to(memory_format=torch.channels_last)
    theirs = [weight.clone() for weight in ours]
    params = {"lr": 0.01, "weight_decay": decay}
    if name in {"adam", "adamw"}:
        params |= {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
    else:
        params |= {"momentum": 0.0 if name == "plain sgd" else 0.9, "nesterov": name == "nesterov"}
        name = "sgd"
    optimizers = _one_pass(name, params, ours), _dense(name, params, theirs)
    assert type(optimizers[0]).__name__.startswith("Compiled")
    for step in range(50):
        for optimizer in optimizers:
            optimizer.set_lr(0.01 / (1 + step // 9))
        for place, pair in enumerate(zip(ours, theirs, strict=True)):
            scale = 10.0 ** torch.randint(-4, 3, shapes[place], generator=drawn)
            gradient = torch.randn(shapes[place], dtype=dtype, generator=drawn) * scale
            for weight in pair:
                weight.grad = None if (step + place) % 5 == 0 else gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
        assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_a_bag_updated_word_by_word_equals_torchs_adadelta(dtype, atol):
    """At a changing rate, over documents that lack most words; a step without gradient counts, too."""
    bags = [BagLinear(60, 5).to(dtype) for _ in range(2)]
    bags[1].load_state_dict(bags[0].state_dict())
    settings = {"lr": 0.7, "rho": 0.95, "eps": 1e-5}
    optimizers = CompiledBag(bags[0], settings), _dense("adadelta", settings, [bags[1].weight])
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


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.7])
def test_compiled_dropout_is_the_plain_one_to_the_bit_and_twice_differentiable(rate):
    """In any layout and of any key; what is not finite stays so."""
    for key in torch.randint(-(2**31), 2**31 - 1, (10, 2), generator=torch.Generator().manual_seed(0)).int():
        drawn = torch.randn(70, 30, generator=torch.Generator().manual_seed(1))
        x, same = (drawn.t().clone(memory_format=torch.preserve_format).requires_grad_() for _ in range(2))
        dropped, expected = compiled_dropout(x, key, rate), dropout(same, key, rate)
        assert torch.equal(dropped, expected)
        for out in (dropped, expected):
            out.square().sum().backward()
        assert torch.equal(x.grad, same.grad)
    x = torch.randn(5, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: compiled_dropout(z, key, rate) ** 2, x)
    assert torch.autograd.gradgradcheck(lambda z: compiled_dropout(z, key, rate) ** 2, x)
    for value in (float("nan"), float("inf")):
        x = torch.full((50,), value)
        assert torch.equal(compiled_dropout(x, key, rate).isfinite(), dropout(x, key, rate).isfinite())
