"""Fine-tuning of a pretrained network: loss, statistics and learning rates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import Files, InputSpec, Pretrained, Task, component
from msda_bench.data import LocalFiles
from msda_bench.engine import single
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.store.record import Record
from tests.builtin.suites import loaded

DOMAINS = ("art", "photo", "sketch")
SGD = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.001, "nesterov": True}


class Normalised(nn.Module):
    """Normalises colours as pretrained networks expect them."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - 0.45) / 0.25


@component
class SmallNetwork(Pretrained):
    """A third-party network with batch normalisation."""

    name = "small_network"
    hidden: tuple[int, ...] = (16,)
    dropout: float = 0.1

    @property
    def width(self) -> int:
        return 24

    def trunk(self, files: Files) -> nn.Module:
        blocks = [
            layer
            for narrow, wide in ((3, 12), (12, 24), (24, 24))
            for layer in (nn.Conv2d(narrow, wide, 3, 2, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU())
        ]
        for convolution in blocks[::3]:
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        return nn.Sequential(Normalised(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry([*discover().entries, Entry("backbone", SmallNetwork, "tests", "0")])


@pytest.fixture
def tune(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Record, Any]]:
    """Trains DARN on images of three colours; returns the record and the modules with their initial state."""
    draw, y = np.random.default_rng(0), np.arange(150) % 3
    x = 0.5 * draw.random((150, 3, 32, 32), dtype=np.float32)
    x[np.arange(150), y] += 0.3
    np.savez(tmp_path / "t.npz", x=x, y=y, domain=np.repeat(DOMAINS, 50))
    kept: list[Any] = []
    build = single.build_model

    def keep(*args: Any) -> Any:
        model = build(*args)
        kept.append((model[0], {name: value.clone() for name, value in model[0].state_dict().items()}))
        return model

    monkeypatch.setattr(single, "build_model", keep)

    def run(*, params: Any = (), **training: Any) -> tuple[Record, Any]:
        darn = {"scheme": "adapt", "discrepancy": "d_A", "aggregator": {"sharpmax": {"gamma": 0.9}}, "mu": 0.01}
        text = {
            "schema": 1,
            "name": "tuned",
            "dataset": {"arrays": {"file": "t.npz", "train": 40, "standardise": "none"}},
            "targets": ["photo"],
            "seeds": 1,
            "backbone": {"small_network": {"trainable": "all", **dict(params)}},
            "training": {"epochs": 2, "batch": 8, "optimizer": {"sgd": SGD}, "epoch": "scheme", **training},
            "methods": {"DARN": darn},
        }
        (tmp_path / "tuned.yaml").write_text(json.dumps(text))
        (cell,) = loaded(tmp_path / "tuned.yaml", registry)[1].cells.values()
        (record,) = Trainer(registry, LocalFiles(processes=1), "cpu", stack=4).train([cell])
        return record, kept[-1]

    return run


Tune = Callable[..., tuple[Record, Any]]


def statistics(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in state.items() if "running" in name or "batches" in name}


@pytest.mark.slow
@pytest.mark.parametrize("batch_norm", ["frozen", "train"])
def test_fine_tuning_lowers_the_loss(tune: Tune, batch_norm: str) -> None:
    adam = {"lr": 0.005, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    record, (modules, before) = tune(params={"batch_norm": batch_norm}, epochs=8, optimizer={"adam": adam})
    assert record.status == "ok"
    assert record.provenance["stack"] == 1
    assert "backbone 'small_network' cannot be stacked" in record.provenance["stack_note"]
    risks = [sum(epoch) for epoch in record.curves.risks]
    assert sum(risks[-3:]) / 3 < 0.95 * risks[0]
    for name, value in statistics(modules.state_dict()).items():
        assert torch.equal(value, before[name]) == (batch_norm == "frozen"), name
    changed = [name for name, value in modules.named_parameters() if not torch.equal(value, before[name])]
    assert len(changed) == len(list(modules.parameters()))


def test_training_normalises_by_frozen_statistics() -> None:
    network = SmallNetwork(trainable="all", dropout=0.0).build(
        Task("classification", 2), InputSpec((3, 32, 32)), LocalFiles()
    )
    x = torch.rand(4, 3, 32, 32)
    wanted = network.features.eval()(x)
    for mode in (True, False, True):
        torch.testing.assert_close(network.features.train(mode)(x), wanted)
    learning = SmallNetwork(trainable="all", dropout=0.0, batch_norm="train").build(
        Task("classification", 2), InputSpec((3, 32, 32)), LocalFiles()
    )
    assert not torch.allclose(learning.features.train()(x), learning.features.eval()(x))


def test_the_trunk_has_its_own_learning_rate(tune: Tune) -> None:
    _, (modules, before) = tune(lr_factors={"trunk": 0.0})
    for name, value in modules.named_parameters():
        assert torch.equal(value, before[name]) == (".trunk." in name), name
    _, (slow, before) = tune(lr_factors={"trunk": 0.5, "features": 0.2}, epochs=1, steps=1)
    _, (plain, _) = tune(epochs=1, steps=1)
    for name, value in slow.named_parameters():
        share = 0.1 if ".trunk." in name else 0.2 if name.startswith("features") else 1.0
        moved = plain.state_dict()[name] - before[name]
        torch.testing.assert_close(value - before[name], share * moved, atol=2e-7, rtol=1e-3)
