"""Fine-tuning: a step of ResNet-18 beside plain loops in equal precision, with a DataLoader or a resident batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from pytest_benchmark.fixture import BenchmarkFixture
from torch import nn

from benchmarks.costs import measure_steps
from msda_bench.api import Files, Pretrained, component
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.checksums import tree_sha256
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench_builtin.backbones.headless import torchvision

DOMAINS, CLASSES, EACH, SIDE, BATCH = ("one", "two", "three"), 7, 48, 224, 8
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SUITE = """\
schema: 1
name: fine-tuning
dataset:
  image_folder: {{domains: [one, two, three], classes: 7, folder: mine, sha256: {sha256}, train: 40, flip: true}}
targets: [three]
seeds: 1
backbone: {{resnet18_here: {{trainable: all, hidden: [], batch_norm: train}}}}
training:
  epochs: 1
  batch: 8
  precision: {precision}
  optimizer: {{sgd: {{lr: 0.01, momentum: 0.9, nesterov: true, weight_decay: 0.001}}}}
methods: {{SRC: {{scheme: pooled}}}}
"""


class _Normalised(nn.Module):
    """Colours as pretrained networks get them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1))
        self.register_buffer("deviation", torch.tensor(DEVIATION).view(3, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.deviation


def _resnet() -> nn.Module:
    network = torchvision("models").resnet18(weights=None)
    network.fc = nn.Identity()
    return network


@component
class ResNet18Here(Pretrained):
    """torchvision's ResNet-18 with random weights."""

    name = "resnet18_here"
    capturable = True

    @property
    def width(self) -> int:
        """512."""
        return 512

    def trunk(self, files: Files) -> nn.Module:  # noqa: ARG002 - it reads none
        """The network with its normalisation of colours."""
        return nn.Sequential(_Normalised(), _resnet())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs of noise in three domains."""
    draw, root = np.random.default_rng(0), tmp_path_factory.mktemp("photographs")
    for domain in DOMAINS:
        for number in range(EACH):
            path = root / "mine" / domain / str(number % CLASSES) / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            coarse = Image.fromarray(draw.integers(0, 256, (57, 57, 3), np.uint8))
            coarse.resize((227, 227)).save(path, quality=90)
    return root / "mine"


def ours(folder: Path, device: str, precision: str) -> Callable[[int], object]:
    """Trains the engine's run for a number of steps."""
    registry = Registry([*discover().entries, Entry("backbone", ResNet18Here, "benchmarks", "0")])
    suite = folder.parent / "suite.yaml"
    suite.write_text(SUITE.format(sha256=tree_sha256(folder), precision=precision))
    (cell,) = expand(load_suite(suite, registry), registry).cells.values()
    files = LocalFiles(Folders(folder.parent, folder.parent / "cache"), "image_folder", 2)
    trainer = Trainer(registry, files, device)

    def run(steps: int) -> None:
        (record,) = trainer.train([replace(cell, training=cell.training.model_copy(update={"steps": steps}))])
        assert record.status == "ok"

    return run


def theirs(folder: Path, device: str, precision: str, *, resident: bool = False) -> Callable[[int], object]:
    """As many images a step: two sources' batches of 8, mirrored at random, decoded by a DataLoader or resident.

    All else is torch's default, such as convolutions in channels-last and algorithms that need not repeat.
    """
    v2, datasets = torchvision("transforms.v2"), torchvision("datasets")
    change = [v2.Resize((SIDE, SIDE)), v2.ToImage(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]
    workers = 0 if device == "cpu" else 8
    network = nn.Sequential(_Normalised(), _resnet(), nn.Linear(512, CLASSES)).to(device)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(network.parameters(), 0.01, 0.9, weight_decay=1e-3, nesterov=True)
    held = torch.rand(2 * BATCH, 3, SIDE, SIDE, device=device), torch.arange(2 * BATCH, device=device) % CLASSES

    def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        data = [datasets.ImageFolder(folder / domain, v2.Compose(change)) for domain in DOMAINS[:2]]
        loaders = [torch.utils.data.DataLoader(each, BATCH, shuffle=True, num_workers=workers) for each in data]
        while True:
            for parts in zip(*loaders, strict=True):
                x, y = (torch.cat(column) for column in zip(*parts, strict=True))
                yield x.to(device), y.to(device)

    def run(steps: int) -> None:
        found = iter(lambda: held, None) if resident else batches()
        former = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=precision == "tf32"):
            for _, (x, y) in zip(range(steps), found, strict=False):
                loss = nn.functional.cross_entropy(network(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss.item()
        torch.set_float32_matmul_precision(former)

    return run


@pytest.mark.slow
@pytest.mark.benchmark(group="fine-tuning: a step of 16 images of ResNet-18")
@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_a_step(benchmark: BenchmarkFixture, folder: Path, device: str, precision: str) -> None:
    if (device, precision) == ("cpu", "tf32"):
        pytest.skip("a CPU has no tf32")
    made = folder, device, precision
    ways = {"engine": ours(*made), "torch and a DataLoader": theirs(*made)}
    ways["torch, resident batch"] = theirs(*made, resident=True)
    measure_steps(benchmark, ways, (1, 3) if device == "cpu" else (10, 60), 3, device=device)
