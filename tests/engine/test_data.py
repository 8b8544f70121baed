"""The data that runs train on: sizes, fitted features, shuffled labels, images that stay bytes, and unusual data.

Unusual data give a defined result or a one-line error, never a traceback or a silently wrong number.
"""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from msda_bench.api import BenchError, DataError, Dataset, DomainData, InputSpec, Task, component
from msda_bench.engine import tensors
from msda_bench.engine.tensors import HostBytes, all_numbers, batch_of
from msda_bench.functional import uniform
from msda_bench.store.codec import decode, encode
from msda_bench.suite.protocol import Splitting
from msda_bench.suite.run_spec import ComponentSpec
from tests.engine.conftest import CPU, METHODS, POOLED, Toy, make_cell, prepare, swapped, train, train_with_weights

HARMS = {  # of inputs, labels, the place among the domains, and whether it is the target's
    "none": lambda x, y, place, last: (x, y),
    "constant": lambda x, y, place, last: (x, np.ones_like(y)),
    "missing class": lambda x, y, place, last: (x, np.where(y == place % 3, (place + 1) % 3, y)),
    "one class each": lambda x, y, place, last: (x, np.full_like(y, place % 3)),
    "one example": lambda x, y, place, last: (x[: 1 + last], y[: 1 + last]),
    "same inputs": lambda x, y, place, last: (np.ones_like(x), y),
    "zeros": lambda x, y, place, last: (np.zeros_like(x), y),
    "huge": lambda x, y, place, last: (x * np.float32(1e30), y),
    "nan in a source": lambda x, y, place, last: (x if last else x * np.float32([1, 1, np.nan]), y),
    "infinity in a source": lambda x, y, place, last: (x if last else x + np.float32([0, 0, np.inf]), y),
    "nan in the target": lambda x, y, place, last: (x * np.float32([1, 1, np.nan]) if last else x, y),
}


REFUSED = {  # the fields of the data that are refused with these words
    ": label 3 of example 7 is none of the 3 classes, 0..2": lambda data: {"y": labelled(data, 3)},
    ": label -1 of example 7 is none of the 3 classes, 0..2": lambda data: {"y": labelled(data, -1)},
    ": label nan of example 7 is not finite": lambda data: {"y": labelled(data, np.float32("nan"))},
    ": labels are float64; classes are whole numbers": lambda data: {"y": labelled(data, 0.5)},
    ": gives examples of shape (2,), but its `input` says (3,); report it": lambda data: {"x": data.x[:, 1:]},
    ": has 30 examples, but labels of shape (29,); one each is needed": lambda data: {"y": data.y[:-1]},
    ": has 30 examples, but labels of shape (30, 1); one each is needed": lambda data: {"y": data.y[:, None]},
    ": has 30 examples, but texts of shape (1,); one each is needed": lambda _: {"texts": np.array(["a"], object)},
    ": has 30 examples, but marks those for the test in bool of shape (1,)": lambda _: {"test": np.array([True])},
    ": has 30 examples, but groups of shape (3,); one each is needed": lambda _: {"groups": np.arange(3)},
    ": groups are float64; they are whole numbers or texts": lambda _: {"groups": np.full(30, 0.5)},
    " has 0 examples to train on, fewer than train = 12; set a": lambda data: {"x": data.x[:0], "y": data.y[:0]},
}


def labelled(data, label):
    return np.where(np.arange(30) == 7, label, data.y)


@component
class Hostile(Toy):
    name = "hostile"
    train: int = 12
    k: int = 2
    harm: str = "none"

    @property
    def domains(self):
        return (*(f"s{index}" for index in range(self.k)), "t")

    @property
    def task(self):
        return Task("regression") if self.regression else Task("classification", 3)

    @property
    def input(self):
        return InputSpec((3,))

    def load(self, domain, files):
        place = self.domains.index(domain)
        generator = np.random.Generator(np.random.Philox(key=place))
        x, y = generator.standard_normal((30, 3)).astype(np.float32), generator.integers(0, 3, 30)
        x, y = HARMS.get(self.harm, HARMS["none"])(x, y, place, domain == "t")
        data = DomainData(x, y.astype(np.float32) if self.regression else y)
        return replace(data, **REFUSED[self.harm](data)) if self.harm in REFUSED else data


def train_on(method, harm="none", *, k=2, regression=False, sources=None, **options):
    """The record of a method on these data, which can be stored."""
    params = {"train": 1 if harm == "one example" else 12, "k": k, "harm": harm, "regression": regression}
    cell = make_cell(method, dataset={"regression": regression}, target="t", epochs=1, batch=4, mu=0.01, **options)
    cell = replace(swapped(cell, Hostile, **params), sources=sources or Hostile(**params).domains[:-1])
    if harm == "one example":  # of which a source holds out none
        cell = replace(cell, validators=())
    (record,) = train([cell], Hostile)
    assert decode(encode(record)) == record
    return record


def check_defined(record):
    assert (record.status, record.message) == ("ok", None)
    assert record.outcome is not None
    for row in record.curves.weights:
        assert sum(row) == pytest.approx(1, abs=1e-4)
    numbers = [number for rows in (record.curves.risks, record.curves.gaps) for row in rows for number in row]
    assert all(map(math.isfinite, numbers))


@pytest.mark.parametrize(
    ("method", "regression"), [*((method, False) for method in METHODS), ("SPECTRAL", True), ("SRC", True)]
)
@pytest.mark.parametrize("harm", ["constant", "missing class", "one class each", "one example", "same inputs", "zeros"])
def test_unusual_data_give_a_result(method, harm, regression):
    check_defined(train_on(method, harm, regression=regression))


def test_groups_may_be_of_numpys_text_type(monkeypatch):
    texts = np.dtypes.StringDType()
    monkeypatch.setitem(REFUSED, "groups", lambda data: {"groups": data.x[:, 0].astype(str).astype(texts)})
    check_defined(train_on("SRC", "groups"))


@pytest.mark.parametrize("method", METHODS)
def test_one_source_and_many_sources_give_a_result(method):
    for k in (1, 33):
        record = train_on(method, k=k)
        check_defined(record)
        assert len(record.curves.groups) == (1 if METHODS[method][0] in POOLED else k)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("harm", ["nan in a source", "infinity in a source", "nan in the target", "huge"])
def test_non_finite_data_diverge_and_name_the_epoch(method, harm):
    record = train_on(method, harm)
    if record.status == "ok":  # the oracle sees no source, and numbers that are huge may be borne
        check_defined(record)
        assert harm == "huge" or (method == "TAR" and "source" in harm)
        return
    assert (record.status, record.outcome) == ("diverged", None)
    assert "not finite" in record.message
    domain = "t" if harm == "nan in the target" else "s0"
    named = f" in epoch 1; the inputs of domain '{domain}' are not finite" in record.message
    assert named or harm == "huge" or record.message == "an output on the target's test examples was not finite"


@pytest.mark.parametrize("words", REFUSED)
def test_unusable_data_are_reported_in_one_line(words):
    with pytest.raises(DataError, match=re.escape(f"dataset hostile: domain 's0'{words}")) as caught:
        train_on("SRC", words, regression="nan" in words)
    assert len(caught.value.lines) == 1


def test_a_target_that_is_its_own_source_is_refused():
    with pytest.raises(DataError, match="dataset hostile: target 't' is among its own sources"):
        train_on("DARN", sources=("s0", "t"))


def test_sizes_can_be_set_by_domain_and_for_the_target():
    sizes = {"train": {"a": 30, "default": 0.5}, "target_train": 20, "test": 0.1}
    prepared = prepare(make_cell(), Toy(**sizes))
    assert {name: len(rows) for name, rows in prepared.training.rows.items()} == {"a": 30, "b": 75, "c": 20}
    assert len(prepared.test.y) == 15
    usual = prepare(make_cell(), Toy())
    assert (len(usual.test.y), [len(source.y) for source in usual.held_out]) == (90, [90, 90])


def test_only_the_named_source_has_shuffled_labels():
    def labels(seed, **params):
        prepared = prepare(make_cell(seed=seed), Toy(sparse=False, **params))
        found = {name: prepared.training.y[rows].tolist() for name, rows in prepared.training.rows.items()}
        return found | {"held out": prepared.held_out[0].y.tolist(), "test": prepared.test.y.tolist()}

    shuffle = {"corrupt": {"source": "a", "labels": "shuffle"}}
    for seed in (0, 1):
        clean, corrupt = labels(seed), labels(seed, **shuffle)
        assert corrupt == labels(seed, **shuffle)
        for part in ("a", "held out"):
            assert corrupt[part] != clean[part]
            assert sorted(corrupt[part]) == sorted(clean[part])
        assert [corrupt[part] for part in ("b", "c", "test")] == [clean[part] for part in ("b", "c", "test")]
    assert labels(0, corrupt={"source": "c", "labels": "shuffle"}) == labels(0)


class ByDomain(Toy):
    """Learns each domain's mean."""

    def fit(self, train):
        assert {name: len(x) for name, x in train.items()} == {"a": 60, "b": 60, "c": 60}
        means = {name: np.mean(x, axis=0) for name, x in train.items()}
        return lambda domain, x: x - means[domain]


def test_a_fitted_feature_map_gets_the_domain_and_no_test_input():
    plain, centred = (prepare(make_cell(), kind(sparse=False)) for kind in (Toy, ByDomain))
    x, known = plain.training.x, centred.training
    means = {name: x[rows].mean(0) for name, rows in known.rows.items()}
    for name, rows in known.rows.items():
        torch.testing.assert_close(known.x[rows], x[rows] - means[name])
    torch.testing.assert_close(centred.test.x, plain.test.x - means["c"])
    torch.testing.assert_close(centred.held_out[1].x, plain.held_out[1].x - means["b"])


def test_texts_without_a_fitted_map_are_refused():
    class Wordy(Toy):
        def fit(self, train):
            return lambda _, x: np.array([str(row) for row in x])

    with pytest.raises(DataError, match="must map them to numbers"):
        prepare(make_cell(), Wordy(sparse=False))


def test_validators_are_refused_if_a_source_holds_nothing_out():
    cell = make_cell(dataset={"train": {"a": 150, "default": 60}}, epochs=1)
    what = r"^dataset toy: source_accuracy needs held-out examples of the sources, and none of 'a' are left; set a sma"
    with pytest.raises(DataError, match=what):
        train([cell])
    of_target = tuple(ComponentSpec("validator", name, 1, "msda-bench", {}) for name in ("entropy", "bnm"))
    (record,) = train([replace(cell, validators=of_target)])
    assert set(record.validation) == {"entropy", "bnm"}


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

    def fit(self, train):
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
    assert torch.equal(all_numbers(x), numbers.training.x)


def test_every_byte_becomes_numpys_quotient():
    every = np.arange(256, dtype=np.uint8).reshape(256, 1)
    expected = np.divide(every, np.float32(255), dtype=np.float32)
    host = HostBytes.of(every, np.arange(256), CPU)
    for examples in (host, torch.from_numpy(every)):
        assert np.array_equal(batch_of(examples, torch.arange(256)).numpy(), expected)
    assert np.array_equal(all_numbers(host).numpy(), expected)
    assert torch.equal(host.resident(), torch.from_numpy(every))
    assert host.take(torch.arange(0)).resident().shape == (0, 1)


def test_augmentation_draws_from_the_cells_stream_and_skips_test_batches(monkeypatch):
    drawn = []
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
