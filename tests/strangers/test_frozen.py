"""Frozen features of a third-party network are computed once, reproducible, and never lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

import msda_bench as mb
from msda_bench.api import Array, DataError, DomainData, Embedding, component
from msda_bench.cli.main import main
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.features import Frozen
from tests.data.refusal import only_line
from tests.strangers.tiny_net import FILE, LOG, WEIGHTS, WIDTH, Stripes, TinyNet


@pytest.fixture(autouse=True)
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates the data folder with the weights, and lets child processes import this package."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    monkeypatch.chdir(tmp_path)
    weights = tmp_path / "given" / FILE.path
    weights.parent.mkdir(parents=True)
    weights.write_bytes(WEIGHTS)
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path / "given"))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    return weights


def seen(folder: Path) -> int:
    """The number of examples that went through the network."""
    return sum(map(int, (folder / "log").read_text().split())) if (folder / "log").exists() else 0


def kept(cache: Path) -> set[bytes]:
    return {path.read_bytes() for path in cache.glob("derived/*.npy")}


@component
class Failing(TinyNet):
    """A network whose trunk cannot be built."""

    name = "failing"

    def trunk(self, files):
        raise ValueError("no such thing")


@component
class Wide(TinyNet):
    """A network narrower than it declares."""

    name = "wide"
    width = WIDTH + 1


@component
class NotANumber(TinyNet):
    """A network whose features are NaN."""

    name = "not-a-number"

    def trunk(self, files):
        return torch.nn.Sequential(super().trunk(files), torch.nn.Threshold(math.inf, math.nan))


def computed(cache: Path, processes: int, x: Array | None = None, network: TinyNet | None = None) -> Array:
    """The features of a domain, or of the given examples instead."""
    dataset, files = Stripes(), LocalFiles(Folders(None, cache), "stripes", processes)
    frozen, data = Frozen.of(network or TinyNet(), dataset), dataset.load("thin", files)
    assert frozen is not None
    return frozen.features(data if x is None else replace(data, x=x), files)


def test_features_equal_the_networks_output_and_do_not_depend_on_the_number_of_processes(
    tmp_path: Path,
) -> None:
    images = Stripes().load("thin", LocalFiles()).x
    assert isinstance(images, np.ndarray)
    found = [computed(tmp_path / str(n), n) for n in (1, 2)]
    assert isinstance(found[0], np.memmap)
    assert (found[0].dtype, found[0].shape) == (np.float32, (len(images), WIDTH))
    with torch.no_grad():
        expected = TinyNet().trunk(LocalFiles())(torch.from_numpy(images).float() / 255)
    torch.testing.assert_close(torch.from_numpy(np.array(found[0])), expected)
    np.save(tmp_path / "images.npy", np.concatenate([images[:1], images]))
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    assert np.array_equal(computed(tmp_path / "a part of a file", 1, mapped[1:]), found[0])
    np.save(tmp_path / "images.npy", images)
    computed(tmp_path / "a file", 1, np.load(tmp_path / "images.npy", mmap_mode="r"))
    every = [kept(tmp_path / name) for name in ("1", "2", "a part of a file", "a file")]
    assert len(set.union(*every)) == 1
    assert not list(tmp_path.glob("*/derived/parts/*"))


def test_features_are_computed_once_per_identity_and_network(tmp_path: Path) -> None:
    files = LocalFiles(Folders(None, tmp_path / "cache"), "stripes", 1)
    x, y = np.full((20, 3, 8, 8), 9, np.uint8), np.zeros(20, np.int64)

    def found(x: Array, name: str, **params: Any) -> Array:
        frozen = Frozen.of(TinyNet(**params), Stripes())
        assert frozen is not None
        return frozen.features(DomainData(x, y, identity=name), files)

    first = found(x, "mine")
    assert np.array_equal(found(np.zeros_like(x), "mine", hidden=(3,), dropout=0.1), first)
    assert seen(tmp_path) == 20
    assert not np.array_equal(found(np.zeros_like(x), "another"), first)
    assert np.array_equal(found(x.astype(np.float32) / np.float32(255), "mine"), first)
    assert seen(tmp_path) == 60
    assert Frozen.of(TinyNet(trainable="all"), Stripes()) is None


@component
class Letters(TinyNet):
    """Counts letters, those that are an A, and lines of a text."""

    name = "letters"

    def embedding(self, input):
        return Embedding("letters", 3, lambda _: Counting(), texts=True)


class Counting(torch.nn.Module):
    def forward(self, texts):
        return torch.tensor([[len(text), text.count("Ä"), text.count("\n")] for text in texts], dtype=torch.float32)


def test_a_backbone_that_reads_gets_the_texts_as_written(tmp_path: Path) -> None:
    frozen = Frozen.of(Letters(), Stripes())
    assert frozen is not None
    files, texts = LocalFiles(Folders(None, tmp_path), "stripes", 1), ["Ä, Ä", "", "two\nlines \ud800"] * 7
    written = np.array(texts, object)
    x, y = np.zeros((21, 3, 8, 8), np.uint8), np.zeros(21, np.int64)
    expected = [[4, 2, 0], [0, 0, 0], [11, 0, 1]] * 7
    assert frozen.features(DomainData(x, y, texts=written, identity="mine"), files).tolist() == expected
    assert frozen.features(DomainData(written, y), files).tolist() == expected
    other = DomainData(x, y, texts=written[::-1], identity="mine")
    assert frozen.features(other, files).tolist() == expected[::-1]
    line = only_line(frozen.features, DomainData(x, y), files)
    assert line == "backbone letters reads texts, and the dataset gives none"


READER = """
    import torch
    from msda_bench.api import Embedding, Pretrained, component, hookimpl

    class Counting(torch.nn.Module):
        def forward(self, texts):
            return torch.tensor([[len(text), text.count("d")] for text in texts], dtype=torch.float32)

    @component
    class Counts(Pretrained):
        '''Counts letters of a text.'''

        name = "counts"
        width = 2

        def trunk(self, files):
            return Counting()

        def embedding(self, input):
            return Embedding("counts", 2, self.trunk, texts=True)

    @hookimpl
    def msda_backbones():
        return [Counts]
"""
READ = """
schema: 1
name: mine
dataset: {table: {file: t.csv, domain: site, label: ill, text: note}}
targets: [b]
seeds: 1
backbone: counts
training: {epochs: 1, batch: 4, optimizer: {adam: {lr: 0.01}}}
methods: {forest: {scheme: random_forest}}
keep: [predictions]
"""


def test_a_backbone_that_reads_gets_the_other_columns_after_its_features(
    tmp_path: Path, install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("counts", READER)
    asked, answer = [], RandomForestClassifier.predict_proba
    monkeypatch.setattr(RandomForestClassifier, "predict_proba", lambda own, x: asked.append(x) or answer(own, x))
    texts, sexes = ("Good day", "", "bad"), ("f", "m", "")
    lines = [
        f"{site},{row % 2},{sexes[row % 3]},{texts[row % 3]},{row + 20 * (site == 'b')}"
        for site in "ab"
        for row in range(12)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["site,ill,sex,note,age", *lines]))
    path = tmp_path / "mine.yaml"
    path.write_text(READ)
    assert main(["run", str(path), "--executor", "inline", "--out", str(tmp_path / "out")]) == 0
    rows = mb.load_predictions(tmp_path / "out" / "mine")["row"].to_numpy()
    read = [[len(texts[row % 3]), texts[row % 3].count("d")] for row in rows]
    (x,) = (x for x in asked if x[:, :2].tolist() == read)
    assert x[:, 2:6].tolist() == np.eye(4)[rows % 3].tolist()  # f, m, none, unseen
    ages = x[:, 6] * (rows[1] - rows[0]) / (x[1, 6] - x[0, 6])
    np.testing.assert_allclose(ages - ages[0], rows - rows[0], atol=1e-4)
    assert x[:, 6].min() > 1  # standardised over the source, whose ages are 20 less


def test_a_failing_network_is_reported_with_its_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"test_frozen:Failing: tests/strangers/test_frozen.py:\d+: ValueError: no such thing$"
    ):
        computed(tmp_path / "cache", 1, network=Failing())
    with pytest.raises(DataError, match=r"gave float32 of shape \(16, 8\) for 16 examples; .* float32 of \(16, 9\)"):
        computed(tmp_path / "cache", 1, network=Wide())
    with pytest.raises(DataError, match=r"test_frozen:NotANumber: its features are not finite; correct its weights"):
        computed(tmp_path / "cache", 1, network=NotANumber())
    with pytest.raises(DataError, match=r"kept as \(3, 9, 9\) and seen by a network as \(3, 8, 8\)"):
        computed(tmp_path / "cache", 1, np.zeros((3, 3, 9, 9), np.uint8))
