"""A toy world for the engine: three domains, sparse or dense, that a small network learns quickly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from torch import nn

from msda_bench.api import Dataset, DomainData, File, Files, InputSpec, Size, Task, component
from msda_bench.engine import single
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.protocol import Protocol, Splitting

WIDTH = 30


@component
class Toy(Dataset):
    """Bags of thirty words in three domains."""

    name = "toy"
    train: Size = 60
    sparse: bool = True
    regression: bool = False
    poison: str | None = None
    spared: tuple[int, ...] = ()

    @property
    def domains(self) -> tuple[str, ...]:
        return ("a", "b", "c")

    @property
    def task(self) -> Task:
        return Task("regression") if self.regression else Task("classification", 2)

    @property
    def input(self) -> InputSpec:
        return InputSpec((WIDTH,), sparse=self.sparse)

    def load(self, domain: str, files: Files) -> DomainData:
        place = self.domains.index(domain)
        generator = np.random.Generator(np.random.Philox(key=place))
        dense = (generator.random((150, WIDTH)) < 0.3).astype(np.float32) * (1 + place)
        truth = dense[:, :5].sum(1) - dense[:, 5:10].sum(1)
        y = truth.astype(np.float32) if self.regression else (truth > 0).astype(np.int64)
        if domain == self.poison:
            poisoned = np.setdiff1d(np.arange(len(y)), self.spared)
            y[poisoned] = -y[poisoned] if self.regression else 1 - y[poisoned]
        return DomainData(scipy.sparse.csr_matrix(dense) if self.sparse else dense, y)


class NoFiles:
    """A dataset that needs no files is given none."""

    def path(self, file: File) -> Path:
        raise AssertionError(file)

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        raise AssertionError(name)


@pytest.fixture(scope="session")
def registry() -> Registry:
    return Registry([*discover().entries, Entry("dataset", Toy, "tests", "0")])


@pytest.fixture
def files() -> NoFiles:
    return NoFiles()


METHODS: dict[str, tuple[Any, ...]] = {
    "SRC": ("pooled", "none", "uniform", {}),
    "TAR": ("target_only", None, None, {}),
    "DANN": ("pooled", "d_A", "uniform", {}),
    "MDAN": ("adapt", "d_A", "logsumexp", {"gamma": 10.0}),
    "MDAN-hard": ("adapt", "d_A", "hardmax", {}),
    "MDMN": ("mdmn", None, None, {}),
    "DARN": ("adapt", "d_A", "sharpmax", {"gamma": 0.9}),
    "MMD": ("adapt", "mmd", "sharpmax", {}),
    "SPECTRAL": ("adapt", "spectral_l2", "sharpmax", {}),
    "SWD": ("adapt", "sliced_wasserstein", "group_dro", {}),
    "WDGRL": ("alternate", "wasserstein", "softmax", {}),
    "CDAN": ("cdan", "d_A", "wadn", {}),
    "MCD": ("mcd", None, None, {}),
}


@pytest.fixture
def make_cell(registry: Registry) -> Callable[..., Cell]:
    def ref(kind: str, name: str | None, params: dict[str, Any] | None = None) -> Ref | None:
        if name is None:
            return None
        entry = registry.entry(kind, name)
        made = entry.create(params or {})
        return Ref(kind, name, made.version, entry.distribution, made.params())

    def make(
        method: str = "DARN",
        *,
        dataset: dict[str, Any] | None = None,
        seed: int = 0,
        epochs: int = 2,
        batch: int = 10,
        backbone: tuple[str, dict[str, Any]] = ("mlp", {"hidden": [16, 8], "dropout": 0.3}),
        optimizer: tuple[str, dict[str, float]] = ("adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6}),
        mu: float = 0.1,
        target: str = "c",
        split_sources: Splitting | None = None,
        labelled_target: int = 0,
    ) -> Cell:
        scheme, discrepancy, aggregator, params = METHODS[method]
        regression = bool((dataset or {}).get("regression"))
        validator = "source_risk" if regression else "source_accuracy"
        training = {"epochs": epochs, "batch": batch, "optimizer": dict([optimizer]), "epoch": "scheme"}
        return Cell(
            dataset=ref("dataset", "toy", dataset),  # type: ignore[arg-type]
            fingerprint="none",
            target=target,
            sources=tuple(domain for domain in ("a", "b", "c") if domain != target),
            backbone=ref("backbone", *backbone),  # type: ignore[arg-type]
            scheme=ref("scheme", scheme),  # type: ignore[arg-type]
            discrepancy=ref("discrepancy", discrepancy),
            aggregator=ref("aggregator", aggregator, params),
            mu=mu,
            training=Protocol.model_validate(training),
            validators=(ref("validator", validator),),  # type: ignore[arg-type]
            seed=seed,
            split_sources=split_sources,
            labelled_target=labelled_target,
        )

    return make


def train_with_weights(registry: Registry, files: Files, cell: Cell) -> dict[str, Any]:
    """The record's parts, and the trained weights as bytes."""
    kept: list[nn.Module] = []
    build = single.build_model

    def keep(*args: Any) -> Any:
        model = build(*args)
        kept.append(model.modules)
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single, "build_model", keep)
        (record,) = Trainer(registry, files, "cpu").train([cell])
    weights = [value.detach().numpy().tobytes() for value in kept[0].parameters()]
    return {"weights": weights, **vars(record)}
