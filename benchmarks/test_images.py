"""Images: the rate of decoding, and epochs from the array beside torchvision's ImageFolder and DataLoader."""

from __future__ import annotations

import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import cost_of, measure
from benchmarks.results import Results
from msda_bench.data import Folders, LocalFiles, folders
from msda_bench.data.check import tree_sha256
from msda_bench.engine.tensors import HostBytes, whole
from msda_bench_builtin.datasets import ImageFolder, Pacs
from msda_bench_builtin.datasets.images.decode import decode
from msda_bench_builtin.vision import torchvision

IMAGES, BATCH, SIDE = 512, 32, 224
ARRAY, LOADER = "resident array", "torchvision's ImageFolder and DataLoader"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first photographs of PACS in two domains, or made images where PACS is not here."""
    root = tmp_path_factory.mktemp("images") / "mine"
    for number, content in enumerate(_contents(root)):
        path = root / ("one", "two")[number % 2] / str(number // 2 % 7) / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def _contents(root: Path) -> list[bytes]:
    (file,) = Pacs(copies="q72").files
    here = [path for path in folders().candidates(file) if path.exists()]
    if here:
        with tarfile.open(here[0]) as archive:
            members = [one for one in archive if "/photo/" in one.name and one.isreg()][:IMAGES]
            return [archive.extractfile(one).read() for one in members]  # type: ignore[union-attr]
    noise = np.random.default_rng(0).integers(0, 256, (8, 57, 57, 3), np.uint8)
    made = root.parent / "made.jpg"
    for pixels in noise:
        Image.fromarray(pixels).resize((227, 227)).save(made, quality=90)
    return [made.read_bytes()] * IMAGES


@pytest.mark.benchmark(group="decoding", timer=time.process_time)
def test_decoding(benchmark: BenchmarkFixture, results: Results, folder: Path) -> None:
    contents = [path.read_bytes() for path in sorted(folder.rglob("*.jpg"))]
    found = measure(benchmark, lambda: [decode(content, SIDE, None) for content in contents], 3, len(contents))
    results.add("images", "decoding and resizing one image", found)
    benchmark.extra_info["images per second of CPU time"] = 1 / found.cost.cpu


@pytest.mark.benchmark(group="epoch", timer=time.process_time)
def test_an_epoch(benchmark: BenchmarkFixture, results: Results, folder: Path, tmp_path: Path) -> None:
    ours, theirs = _array_epoch(folder, tmp_path), _loader_epoch(folder)
    loader = min((cost_of(theirs) for _ in range(3)), key=lambda cost: cost.cpu)
    found = measure(benchmark, ours, 7)
    results.add("images", f"an epoch: {ARRAY}", found)
    benchmark.extra_info |= {
        f"{LOADER}, seconds of CPU time": loader.cpu,
        "times as fast, by CPU time": loader.cpu / found.cost.cpu,
        "times as fast, by wall time": loader.wall / found.cost.wall,
    }


def _array_epoch(folder: Path, cache: Path) -> Callable[[], object]:
    """Batches in random order of all images of both domains, as float32 tensors."""
    data = ImageFolder(domains=("one", "two"), classes=7, folder=folder.name, sha256=tree_sha256(folder), side=SIDE)
    files = LocalFiles(Folders(folder.parent, cache), data.name)
    loaded = [data.load(domain, files) for domain in data.domains]
    draw = np.random.default_rng(0)

    def epoch() -> float:
        total = 0.0
        for domain in loaded:
            for rows in np.array_split(draw.permutation(len(domain.y)), len(domain.y) // BATCH):
                bytes_of = HostBytes.of(domain.x, rows, torch.device("cpu"))
                images, _ = whole(bytes_of), torch.from_numpy(domain.y[rows])
                total += float(images[0, 0, 0, 0])
        return total

    return epoch


def _loader_epoch(folder: Path) -> Callable[[], object]:
    """The same batches by the field's usual means, in this process, so that both use one core."""
    v2, datasets = torchvision("transforms.v2"), torchvision("datasets")
    steps = [v2.Resize((SIDE, SIDE)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    loaders = [
        torch.utils.data.DataLoader(datasets.ImageFolder(folder / domain, v2.Compose(steps)), BATCH, shuffle=True)
        for domain in ("one", "two")
    ]
    return lambda: sum(float(images[0, 0, 0, 0]) for loader in loaders for images, _ in loader)
