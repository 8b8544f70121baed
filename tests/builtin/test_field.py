"""The suite of the field's methods covers the whole catalogue, and every method trains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.expand import Expansion
from tests.builtin.suites import loaded
from tests.engine.conftest import NoFiles, Toy

LEFT_OUT = {
    "size": "uniform, where all sources have one size",
    "wadn": "sharpmax, where all sources have one size",
    "spectral_l2": "for regression",
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry([*discover().entries, Entry("dataset", Toy, "tests", "0")])


@pytest.fixture(scope="module")
def field(registry: Registry) -> Expansion:
    return loaded("field", registry)[1]


def test_the_field_suite_crosses_the_catalogue_with_two_seeds(field: Expansion, registry: Registry) -> None:
    for experiment in field.plan.experiments:
        cells = [cell for cell in field.cells.values() if cell.dataset.name == experiment.dataset]
        named = {ref.name for cell in cells for ref in (cell.scheme, cell.discrepancy, cell.aggregator) if ref}
        kinds = {"scheme", "discrepancy", "aggregator"}
        ours = {entry.name for entry in registry.entries if entry.kind in kinds and entry.distribution == "msda-bench"}
        assert ours - named == set(LEFT_OUT)
        assert {cell.seed for cell in cells} == {0, 1}
        assert max(cell.dataset.params["train"] * cell.training.epochs for cell in cells) <= 5000


def test_every_method_trains(field: Expansion, registry: Registry) -> None:
    """Trains each method for two steps on a toy world, with the suite's parameters."""
    toy = Toy()
    dataset = Ref("dataset", toy.name, toy.version, "tests", toy.params())
    chosen: dict[tuple[str, str], Cell] = {}
    for planned in field.plan.cells:
        chosen.setdefault((planned.experiment, planned.method), field.cells[planned.key])
    cells = [
        replace(
            cell,
            dataset=dataset,
            fingerprint="none",
            target="c",
            sources=("a", "b"),
            training=cell.training.model_copy(update={"epochs": 1, "steps": 2}),
        )
        for cell in chosen.values()
    ]
    records = list(Trainer(registry, NoFiles(), "cpu").train(cells))
    assert len(records) == len(chosen)
    assert {record.status for record in records} == {"ok"}
    assert all(record.curves is not None and len(record.curves.weights) == 1 for record in records)


def test_methods_of_the_field_have_their_authors_settings(field: Expansion) -> None:
    """The settings are those in docs/methods.md, from the papers or released code."""
    cells = {(planned.experiment, planned.method): field.cells[planned.key] for planned in field.plan.cells}
    for experiment, train in (("field-amazon", 500), ("field-opinions", 800)):
        mcd, m3sda, cdan, wdgrl, dro = (
            cells[experiment, name] for name in ("MCD", "M3SDA", "CDAN", "WDGRL", "GroupDRO")
        )
        for cell in (mcd, m3sda):
            assert cell.training.optimizer.params["lr"] == 2e-4
            assert cell.scheme.params["repeats"] == 4
        assert (m3sda.scheme.params["orders"], m3sda.scheme.params["centred"]) == (5, True)
        assert m3sda.mu == pytest.approx(0.0005 / 6, rel=0.01)
        assert cdan.discrepancy is not None
        assert len(cdan.discrepancy.params["hidden"]) == 2  # and so three layers
        assert (cdan.scheme.params["ramp"], cdan.scheme.params["entropy"], cdan.mu) == (10, True, 1)
        assert wdgrl.discrepancy is not None
        assert wdgrl.discrepancy.params == {"hidden": [100], "penalty": 10.0}
        assert (wdgrl.scheme.params["critic_steps"], wdgrl.training.optimizer.name) == (5, "adam")
        mdd, mcc, bnm = (cells[experiment, name].scheme.params for name in ("MDD", "MCC", "BNM"))
        assert (mdd["margin"], mdd["ramp"]) == (4, 100)
        assert (mcc["by"], mcc["temperature"], bnm["by"]) == ("mcc", 2.5, "bnm")
        assert dro.discrepancy is not None
        assert dro.discrepancy.name == "none"
        assert dro.aggregator is not None
        steps = dro.training.epochs * (train // dro.training.batch)
        assert dro.aggregator.params["eta"] * steps == pytest.approx(0.01 * 5000, rel=0.15)


def test_methods_of_several_networks_have_their_authors_settings(field: Expansion) -> None:
    """The settings of MFSAN, SImpAl, SHOT, DECISION, WJDOT and KD3A are those in docs/methods.md."""
    cells = {planned.method: field.cells[planned.key] for planned in field.plan.cells}
    assert cells["MFSAN"].scheme.params == {"kernels": 5, "ramp": 10.0}
    assert cells["SImpAl"].scheme.params == {"adapt": 1.0}
    for name in ("SHOT", "DECISION"):
        assert cells[name].scheme.params == {"beta": 0.3, "smoothing": 0.1, "adapt": 0.5}
    wjdot, kd3a = cells["WJDOT"], cells["KD3A"]
    assert (wjdot.training.optimizer.name, wjdot.scheme.params["rate"]) == ("adam", 0.01)
    assert kd3a.scheme.params == {"gate": 0.9, "gate_end": 0.95, "momentum": 0.9, "mixup": True}
