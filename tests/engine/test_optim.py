"""Each phase trains its own parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import BagLinear, Phase
from msda_bench.engine.optim import PhaseOptimizers, Trainable
from msda_bench.suite.protocol import Adadelta, Optimizer, Protocol, Sgd

SGD = Protocol(epochs=1, batch=1, optimizer=Optimizer(sgd=Sgd(lr=0.1)))
ADADELTA = Protocol(epochs=1, batch=1, optimizer=Optimizer(adadelta=Adadelta()))


def modules() -> dict[str, nn.Linear]:
    return {name: nn.Linear(1, 1, bias=False) for name in ("features", "predictor", "critic")}


def trainable(parts: dict[str, nn.Linear]) -> dict[str, Trainable]:
    return {name: Trainable.of(part, SGD, sparse=False) for name, part in parts.items()}


def moved(phases: Sequence[Phase], taken: Phase) -> set[str]:
    used = modules()
    before = {name: part.weight.item() for name, part in used.items()}
    optimizers = PhaseOptimizers(SGD, trainable(used), phases)
    torch.stack([part.weight.sum() for part in used.values()]).sum().backward()
    optimizers.step(taken)
    return {name for name, part in used.items() if part.weight.item() != before[name]}


def test_a_single_phase_trains_all_parts() -> None:
    everything = Phase("all")
    assert moved([everything], everything) == {"features", "predictor", "critic"}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_phases_train_only_the_parts_they_name(place: int) -> None:
    phases = [Phase("all"), Phase("heads", ("predictor", "critic")), Phase("body", ("features",))]
    assert moved(phases, phases[place]) == set(phases[place].trains)


def test_zero_grad_clears_all_gradients() -> None:
    used = modules()
    optimizers = PhaseOptimizers(SGD, trainable(used), [Phase("body", ("features",))])
    for part in used.values():
        part(torch.ones(1, 1)).sum().backward()
    optimizers.zero_grad()
    assert [part.weight.grad for part in used.values()] == [None] * 3


def test_bag_weights_are_separate_only_with_sparse_adadelta() -> None:
    layer = BagLinear(3, 2)
    assert Trainable.of(layer, ADADELTA, sparse=True).bags == [layer]
    assert [value.shape for value in Trainable.of(layer, ADADELTA, sparse=True).parameters] == [(2,)]
    for training, sparse in ((ADADELTA, False), (SGD, True)):
        found = Trainable.of(layer, training, sparse=sparse)
        assert found.bags == []
        assert len(found.parameters) == 2


@pytest.mark.parametrize("phase", [Phase("critic", ("critic",)), Phase("all")])
def test_a_restricted_backward_pass_gives_equal_gradients_to_trained_parts(phase: Phase) -> None:
    found: list[dict[str, list[Tensor | None]]] = []
    for whole in (True, False):
        torch.manual_seed(0)
        parts_of = nn.ModuleDict({"features": nn.Linear(4, 3), "predictor": nn.Linear(3, 2), "critic": nn.Linear(3, 1)})
        parts_of["critic"].bias.requires_grad_(False)  # as of a frozen layer
        parts = {name: Trainable(list(part.parameters()), []) for name, part in parts_of.items()}
        optimizers = PhaseOptimizers(SGD, parts, [Phase("critic", ("critic",)), Phase("all")])
        features = parts_of["features"](torch.ones(5, 4))
        objective = parts_of["predictor"](features).sum() + parts_of["critic"](features).square().sum()
        objective.backward(inputs=None if whole else optimizers.inputs(phase))
        found.append({name: [value.grad for value in part.parameters()] for name, part in parts_of.items()})
    whole_pass, ours = found
    for name in whole_pass:
        for expected, gradient in zip(whole_pass[name], ours[name], strict=True):
            if name in phase.trains and expected is not None:
                assert gradient is not None
                assert torch.equal(gradient, expected)
            else:
                assert gradient is None
