"""The project's suites plan what they describe, with the settings of papers and authors; weights find good sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench.api import InputSpec
from msda_bench.data.files import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import discover
from msda_bench.suite.expand import PROTOCOLS
from msda_bench.suite.published import PublishedNumbers
from msda_bench_builtin.backbones import ConvNet
from tests.builtin.suites import loaded

PUBLISHED = {
    # suite: experiments, cells, comparable published numbers of its methods
    "pacs": (1, 120, 20),
    "office-31": (1, 90, 0),
    "office-home": (1, 120, 15),
    "office-home-features": (1, 320, 0),
    "domainnet": (1, 198, 35),
    "digits-five": (1, 200, 24),
    "paper-digits-small": (1, 480, 0),
    "music": (2, 640, 0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_suites_of_the_fields_datasets_have_their_published_numbers(name: str) -> None:
    plan = loaded(name)[1].plan
    compared = 0
    for experiment in plan.experiments:
        table = experiment.published
        assert isinstance(table, PublishedNumbers)
        assert table.numbers
        compared += sum(one.backbone in table.backbones and one.protocol in table.protocols for one in table.numbers)
        assert name in {"music", "paper-digits-small"} or "Not run" in " ".join(experiment.notes)
        if name in {"pacs", "office-31", "office-home"}:  # the field tests on the target that it trains on
            assert any(note.startswith("Transductive: ") for note in experiment.notes)
            assert not experiment.references
    assert (len(plan.experiments), len(plan.cells), compared) == PUBLISHED[name]


SOURCE_FREE = """
schema: 1
name: free
dataset: {opinions: {train: 100}}
targets: [tweets]
seeds: 1
backbone: {mlp: {hidden: [8], dropout: 0.0}}
training: {epochs: 1, batch: 20, optimizer: adam}
methods: {SRC: {scheme: pooled}, SHOT: {scheme: shot}, DECISION: {scheme: decision}}
validators: [source_accuracy, infomax]
select: {how: grid, budget: 2, by: source_accuracy, space: {training.optimizer.adam.lr: [0.001, 0.01]}}
"""


@pytest.mark.parametrize(("by", "noted"), [("source_accuracy", True), ("infomax", False), ("oracle", False)])
def test_a_note_names_source_free_methods_that_scores_of_the_sources_select(
    by: str, noted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "free.yaml"
    path.write_text(SOURCE_FREE.replace("by: source_accuracy", f"by: {by}"))
    (table,) = loaded(path)[1].plan.experiments
    notes = [note for note in table.notes if note.startswith("SHOT, DECISION: adapt without the sources")]
    assert len(notes) == noted
    assert not any("SRC" in note for note in notes)


def test_the_suite_of_digits_is_the_papers() -> None:
    suite, expansion = loaded("paper-digits")
    experiment = suite.experiments[0]
    digits, methods = experiment.dataset.component, experiment.methods
    assert experiment.backbone.component == ConvNet()
    assert digits.input == InputSpec((3, 32, 32))
    assert (digits.train, digits.test, digits.copies, digits.pixels) == (20000, 9000, "original", "unit")
    assert expansion.plan.experiments[0].targets == ("mnist", "mnist_m", "svhn", "synth")
    assert expansion.plan.experiments[0].notes == (PROTOCOLS["held_out"],)
    for method in ("DANN", "MDAN", "DARN"):
        critics = methods[method].discrepancy.component.build(2304, 3)
        count = sum(parameter.numel() for parameter in critics.parameters())
        assert count == 3 * (2304 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 + 1)
    training = experiment.training
    assert (training.epochs, training.batch, training.epoch) == (50, 128, "scheme")
    assert training.optimizer.name == "adadelta"
    assert training.optimizer.params == {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0}
    assert list(methods) == ["SRC", "DANN", "MDAN", "MDMN", "DARN", "TAR"]
    assert methods["MDAN"].aggregator.component.gamma == 0.5
    sharpmax = methods["DARN"].aggregator.component
    assert (sharpmax.gamma, sharpmax.scale) == (0.1, "text")
    assert len(expansion.cells) == 6 * 4 * 20
    small = loaded("paper-digits-small")[0].experiments[0]
    assert (small.backbone, small.training, small.methods) == (experiment.backbone, training, methods)


@pytest.mark.slow
def test_neighbouring_sources_get_the_largest_weights_in_the_authors_regression() -> None:
    _, sine = loaded("regression/sine")
    keys = {cell.method: cell.key for cell in sine.plan.cells if (cell.target, cell.seed) == ("target_1", 1)}
    chosen = [sine.cells[keys[method]] for method in ("DARN", "SRC")]
    records = {record.key: record for record in Trainer(discover(), LocalFiles(), "cpu").train(chosen)}
    darn, pooled = (records[keys[method]] for method in ("DARN", "SRC"))
    weights = dict(zip((group[0] for group in darn.curves.groups), darn.curves.weights[-1], strict=True))
    largest = sorted(weights, key=weights.__getitem__)[-2:]
    assert set(largest) == {"source_2", "source_3"}
    assert sum(weights[source] for source in largest) > 0.9
    assert darn.outcome.n_test == pooled.outcome.n_test
    assert darn.outcome.sum_squared_error < pooled.outcome.sum_squared_error
