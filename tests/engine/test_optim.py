"""Each phase trains its own parts."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from msda_bench.api import Phase
from msda_bench.engine.optim import PhaseOptimizers
from msda_bench.suite.cell import Training

SGD = Training(1, 1, "sgd", {"lr": 0.1, "momentum": 0.0, "weight_decay": 0.0})


def model() -> Any:
    names = ("features", "predictor", "critic")
    return SimpleNamespace(modules=nn.ModuleDict({name: nn.Linear(1, 1, bias=False) for name in names}))


def moved(phases: Sequence[Phase], taken: Phase) -> set[str]:
    used = model()
    before = {name: part.weight.item() for name, part in used.modules.items()}
    optimizers = PhaseOptimizers(SGD, used, phases, sparse=False)
    torch.stack([part.weight.sum() for part in used.modules.values()]).sum().backward()
    optimizers.step(taken)
    return {name for name, part in used.modules.items() if part.weight.item() != before[name]}


def test_one_phase_trains_all() -> None:
    everything = Phase("all")
    assert moved([everything], everything) == {"features", "predictor", "critic"}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_phases_train_what_they_name(place: int) -> None:
    phases = [Phase("all"), Phase("heads", ("predictor", "critic")), Phase("body", ("features",))]
    assert moved(phases, phases[place]) == set(phases[place].trains)


def test_zero_grad_forgets_all() -> None:
    used = model()
    optimizers = PhaseOptimizers(SGD, used, [Phase("body", ("features",))], sparse=False)
    for part in used.modules.values():
        part(torch.ones(1, 1)).sum().backward()
    optimizers.zero_grad()
    assert [part.weight.grad for part in used.modules.values()] == [None] * 3


def test_an_unknown_optimizer_is_a_bug() -> None:
    with pytest.raises(ValueError, match="unknown optimizer 'lbfgs'"):
        PhaseOptimizers(Training(1, 1, "lbfgs", {}), model(), [Phase("all")], sparse=False)
