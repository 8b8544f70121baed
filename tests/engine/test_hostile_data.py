"""Unusual data give a defined result or a one-line error, never a traceback or a silently wrong number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from msda_bench.api import DataError, Dataset, DomainData, Files, InputSpec, Task, component
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry
from msda_bench.store.files import decode, encode
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell
from msda_bench.suite.protocol import Splitting
from tests.engine.conftest import METHODS, NoFiles

WIDTH = 6
Harm = Literal[
    "none",
    "constant",
    "missing class",
    "one class each",
    "one example",
    "same inputs",
    "zeros",
    "huge",
    "nan in a source",
    "infinity in a source",
    "nan in the target",
    "label too large",
    "label below zero",
    "label of half",
    "label of nan",
    "labels of another number",
    "labels in a column",
    "texts of another number",
    "no examples",
]
INPUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "same inputs": np.ones_like,
    "zeros": np.zeros_like,
    "huge": lambda x: x * np.float32(1e30),
}
LABELS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "constant": lambda y, _: np.ones_like(y),
    "missing class": lambda y, place: np.where(y == place % 3, (place + 1) % 3, y),
    "one class each": lambda y, place: np.full_like(y, place % 3),
    "labels of another number": lambda y, _: y[:-1],
    "labels in a column": lambda y, _: y[:, None],
}
SPOILT = {"nan in a source": np.nan, "infinity in a source": np.inf, "nan in the target": np.nan}
LABEL = {"label too large": 3, "label below zero": -1, "label of half": 0.5, "label of nan": math.nan}
MakeCell = Callable[..., Cell]


@component
class Hostile(Dataset):
    """Domains s0, s1, ... and a target t."""

    name = "hostile"
    train: int = 12
    k: int = 2
    harm: Harm = "none"
    regression: bool = False

    @property
    def domains(self) -> tuple[str, ...]:
        return (*(f"s{index}" for index in range(self.k)), "t")

    @property
    def task(self) -> Task:
        return Task("regression") if self.regression else Task("classification", 3)

    @property
    def input(self) -> InputSpec:
        return InputSpec((WIDTH,))

    def load(self, domain: str, files: Files) -> DomainData:
        place = self.domains.index(domain)
        generator = np.random.Generator(np.random.Philox(key=place))
        count = {"one example": 2 if domain == "t" else 1, "no examples": 0}.get(self.harm, 30)
        x = generator.standard_normal((count, WIDTH)).astype(np.float32)
        y = generator.integers(0, 3, count)
        x, y = self._harmed(x, y, place)
        texts = np.array(["a text"], object) if self.harm == "texts of another number" else None
        return DomainData(x, y.astype(np.float32) if self.regression else y, texts=texts)

    def _harmed(self, x: np.ndarray, y: np.ndarray, place: int) -> tuple[np.ndarray, np.ndarray]:
        if self.harm in INPUTS:
            return INPUTS[self.harm](x), y
        if self.harm in LABELS:
            return x, LABELS[self.harm](y, place)
        if self.harm in SPOILT and (place == self.k) == ("target" in self.harm):
            x[:, 2] = SPOILT[self.harm]
        if place == self.k // 2 and self.harm in LABEL:
            y = y.astype(np.result_type(y, type(LABEL[self.harm])))
            y[7] = LABEL[self.harm]
        return x, y


@pytest.fixture(scope="session")
def strange(registry: Registry) -> Registry:
    return Registry([*registry.entries, Entry("dataset", Hostile, "tests", "0")])


@pytest.fixture
def train(strange: Registry, files: NoFiles, make_cell: MakeCell) -> Callable[..., Record]:
    """The record of a method on these data; asserts that it can be stored."""

    def run(method: str, harm: Harm = "none", *, k: int = 2, regression: bool = False, **fields: object) -> Record:
        size = 1 if harm == "one example" else 12
        dataset = Hostile(train=size, k=k, harm=harm, regression=regression)
        drawn = {name: fields.pop(name) for name in ("split_sources", "labelled_target") if name in fields}
        cell = make_cell(method, dataset={"regression": regression}, target="t", epochs=1, batch=4, mu=0.01, **drawn)
        ref = replace(cell.dataset, name="hostile", params=dataset.params(), distribution="tests")
        changed = {"dataset": ref, "sources": dataset.domains[:-1]} | fields
        if harm == "one example":  # of which a source holds out none
            changed["validators"] = ()
        (record,) = Trainer(strange, files, "cpu").train([replace(cell, **changed)])
        assert decode(encode(record), record.key) == record
        return record

    return run


def check_defined(record: Record) -> None:
    assert record.status == "ok"
    assert record.outcome is not None
    assert record.curves is not None
    for row in record.curves.weights:
        assert sum(row) == pytest.approx(1, abs=1e-4)
    assert all(
        math.isfinite(number) for rows in (record.curves.risks, record.curves.gaps) for row in rows for number in row
    )
    assert record.message is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("harm", ["constant", "missing class", "one class each", "one example", "same inputs", "zeros"])
def test_unusual_data_give_a_result(train: Callable[..., Record], method: str, harm: Harm) -> None:
    check_defined(train(method, harm))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [1, 64])
def test_one_source_and_sixty_four_sources_give_a_result(train: Callable[..., Record], method: str, k: int) -> None:
    record = train(method, k=k)
    check_defined(record)
    assert record.curves is not None
    assert len(record.curves.groups) == (k if METHODS[method][0] not in {"pooled", "target_only"} else 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("harm", ["nan in a source", "infinity in a source", "nan in the target", "huge"])
def test_non_finite_data_diverge_and_name_the_epoch(train: Callable[..., Record], method: str, harm: Harm) -> None:
    record = train(method, harm)
    if record.status == "ok":  # the oracle sees no source, and numbers that are huge may be borne
        check_defined(record)
        assert harm == "huge" or (method == "TAR" and "source" in harm)
        return
    assert (record.status, record.outcome) == ("diverged", None)
    assert record.message is not None
    assert "not finite" in record.message


@pytest.mark.parametrize("harm", ["constant", "one example", "same inputs", "zeros"])
def test_unusual_regression_data_give_a_result(train: Callable[..., Record], harm: Harm) -> None:
    for method in ("SPECTRAL", "SRC"):
        check_defined(train(method, harm, regression=True))


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        ("label too large", "domain 's1': label 3 of example 7 is none of the 3 classes, 0..2"),
        ("label below zero", "domain 's1': label -1 of example 7 is none of the 3 classes, 0..2"),
        ("label of half", "domain 's1': labels are float64; classes are whole numbers"),
        ("labels of another number", "domain 's0': has 30 examples, but labels of shape (29,); one each is needed"),
        ("labels in a column", "domain 's0': has 30 examples, but labels of shape (30, 1); one each is needed"),
        ("texts of another number", "domain 's0': has 30 examples, but texts of shape (1,); one each is needed"),
        ("no examples", "domain 's0' has 0 examples to train on, fewer than train = 12; set a smaller `train`"),
    ],
)
def test_unusable_data_are_reported_in_one_line(train: Callable[..., Record], harm: Harm, what: str) -> None:
    with pytest.raises(DataError) as caught:
        train("DARN", harm)
    (line,) = caught.value.lines
    assert line.startswith("dataset hostile: ")
    assert what in line


def test_a_non_finite_label_is_reported_in_one_line(train: Callable[..., Record]) -> None:
    with pytest.raises(DataError, match="dataset hostile: domain 's1': label nan of example 7 is not finite"):
        train("SRC", "label of nan", regression=True)


def test_a_target_that_is_its_own_source_is_refused(train: Callable[..., Record]) -> None:
    with pytest.raises(DataError, match="dataset hostile: target 't' is among its own sources"):
        train("DARN", sources=("s0", "t"))


@pytest.mark.parametrize("by", ["kmeans", "chance"])
def test_sources_that_cannot_be_split_are_refused(
    train: Callable[..., Record], by: Literal["kmeans", "chance"]
) -> None:
    """Equal examples can be split into clusters."""
    for harm in ("same inputs", "zeros", "constant"):
        check_defined(train("DARN", harm, split_sources=Splitting(clusters=2, by=by)))


def test_unusual_labelled_target_examples_give_a_result(train: Callable[..., Record]) -> None:
    for harm in ("constant", "missing class", "same inputs"):
        check_defined(train("DARN", harm, labelled_target=4))


def test_split_sources_with_non_finite_data_diverge(train: Callable[..., Record]) -> None:
    assert train("DARN", "nan in a source", split_sources=Splitting(clusters=2, by="kmeans")).status == "diverged"
