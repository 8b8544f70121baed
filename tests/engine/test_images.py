"""Images stay bytes until a batch is taken, and datasets may augment each batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from msda_bench.api import BenchError, DataError, Dataset, DomainData, InputSpec, Task, component
from msda_bench.engine import tensors
from msda_bench.engine.tensors import HostBytes, batch_of, whole
from msda_bench.functional import uniform
from msda_bench.suite.protocol import Splitting
from tests.engine.conftest import CPU, make_cell, prepare, swapped, train, train_with_weights

SIDE = 12


@component
class Photos(Dataset):
    name = "photos"
    train: int = 40
    kept: bool = True
    folder: str = ""

    domains = ("a", "b", "c")
    task = Task("classification", 2)

    @property
    def input(self):
        return InputSpec((3, SIDE, SIDE), bytes=self.kept)

    def load(self, domain, files):
        draw = np.random.default_rng(self.domains.index(domain))
        y = draw.integers(0, 2, 90)
        x = draw.integers(0, 200, (90, 3, SIDE, SIDE), np.uint8) + (y * 50).astype(np.uint8)[:, None, None, None]
        if self.folder:
            path = Path(self.folder) / f"{domain}.npy"
            if not path.exists():
                np.save(path, x)
            x = np.load(path, mmap_mode="r")
        return DomainData(x, y)

    def fit(self, train: Any) -> Any:
        assert not self.kept
        return lambda _, x: np.divide(x, np.float32(255), dtype=np.float32)


@component
class Cropped(Photos):
    name = "cropped"

    @property
    def input(self):
        return InputSpec((3, SIDE - 2, SIDE - 2), bytes=True)

    def augment(self, x, key):
        if key is None:
            return x[..., 1:-1, 1:-1]
        return x[..., :-2, :-2] * (0.5 + uniform(key, (len(x), 1, 1, 1)))


@component
class Mistaken(Photos):
    name = "mistaken"

    def augment(self, x, key):
        return x[..., :5]


@component
class Floats(Photos):
    name = "floats"

    def load(self, domain, files):
        data = super().load(domain, files)
        return replace(data, x=np.asarray(data.x, np.float32))


def cell_of(dataset, **params):
    return swapped(make_cell(backbone=("convnet", {"channels": (4, 8), "hidden": (8,)})), dataset, **params)


def test_bytes_train_like_the_numbers_they_encode_without_a_copy(tmp_path):
    """With split sources, too; the dataset's name, and so every stream, is the same."""
    kept, scaled = {"folder": str(tmp_path)}, {"kept": False}
    splitting = Splitting(clusters=2)
    one, other = (
        train_with_weights(replace(cell_of(Photos, **params), split_sources=splitting), Photos)
        for params in (kept, scaled)
    )
    for what in ("weights", "curves", "outcome"):
        assert one[what] == other[what]
    prepared, numbers = (prepare(cell_of(Photos, **params), Photos(**params)) for params in (kept, scaled))
    x = prepared.training.x
    assert isinstance(x, HostBytes)
    assert isinstance(prepared.test.x, HostBytes)
    assert all(isinstance(array, np.memmap) for array in x.arrays)
    assert torch.equal(whole(x), numbers.training.x)


def test_every_byte_becomes_numpys_quotient():
    every = np.arange(256, dtype=np.uint8).reshape(256, 1)
    expected = np.divide(every, np.float32(255), dtype=np.float32)
    host = HostBytes.of(every, np.arange(256), CPU)
    for examples in (host, torch.from_numpy(every)):
        assert np.array_equal(batch_of(examples, torch.arange(256)).numpy(), expected)
    assert np.array_equal(whole(host).numpy(), expected)
    assert torch.equal(host.resident(), torch.from_numpy(every))
    assert host.take(torch.arange(0)).resident().shape == (0, 1)


def test_augmentation_draws_from_the_cells_stream_and_skips_test_batches(monkeypatch):
    drawn: list[Any] = []
    plain = Cropped.augment

    def counted(self, x, key):
        drawn.append(None if key is None else tuple(key.tolist()))
        return plain(self, x, key)

    monkeypatch.setattr(Cropped, "augment", counted)
    cell = cell_of(Cropped)
    (record,) = train([cell], Cropped)
    keys = [key for key in drawn if key is not None]
    assert len(keys) == len(set(keys)) == record.timing["steps"]
    assert drawn.count(None) == 4  # the test, and what the validators see
    first, drawn[:] = list(drawn), []
    train([replace(cell, mu=0.7)], Cropped)
    assert drawn == first  # methods share them


@pytest.mark.parametrize(
    ("dataset", "error", "what"),
    [
        (Mistaken, BenchError, r"augmented .* \(\d+, 3, 12, 12\) to torch.float32 of \(\d+, 3, 12, 5\); the contract"),
        (Floats, DataError, r"domain 'a': has examples of float32 in a ndarray; its `input` promises bytes"),
    ],
)
def test_data_that_contradict_the_dataset_are_reported_in_one_line(dataset, error, what):
    with pytest.raises(error, match=what):
        train([cell_of(dataset)], dataset)


def test_bytes_stay_on_the_gpu_if_they_fit_a_quarter_of_its_memory(monkeypatch):
    class Gpu:
        total_memory = 400

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Gpu)
    array = np.zeros((50, 1), np.uint8)
    assert tensors.fits_gpu([array, array], torch.device("cuda"))
    assert not tensors.fits_gpu([array, array, array], torch.device("cuda"))
    assert not tensors.fits_gpu([array], CPU)
