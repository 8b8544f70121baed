"""The suites of digits follow the paper's protocol and the available data."""

from __future__ import annotations

from msda_bench.api import InputSpec
from msda_bench.suite.expand import PROTOCOLS
from msda_bench_builtin.backbones import ConvNet
from tests.builtin.suites import SUITES, loaded

METHODS = ["SRC", "DANN", "MDAN", "MDMN", "DARN", "TAR"]


def load(name: str):
    suite, expansion = loaded(name)
    return suite.experiments[0], expansion


def test_networks_and_optimiser_are_the_papers():
    experiment, expansion = load("paper-digits")
    digits = experiment.dataset.component
    assert experiment.backbone.component == ConvNet()
    assert digits.input == InputSpec((3, 32, 32))
    for method in ("DANN", "MDAN", "DARN"):
        critics = experiment.methods[method].discrepancy.component.build(2304, 3)
        assert sum(parameter.numel() for parameter in critics.parameters()) == 3 * (
            2304 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 + 1
        )
    training = experiment.training
    assert (training.epochs, training.batch) == (50, 128)
    assert training.optimizer.name == "adadelta"
    assert training.optimizer.params == {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0}
    assert training.epoch == "scheme"
    assert list(experiment.methods) == METHODS
    assert experiment.methods["MDAN"].aggregator.component.gamma == 0.5
    assert experiment.methods["DARN"].aggregator.component.gamma == 0.1
    assert len(expansion.cells) == 6 * 4 * 20


def test_the_papers_suite_uses_the_papers_data():
    experiment, expansion = load("paper-digits")
    digits = experiment.dataset.component
    assert (digits.train, digits.test, digits.copies) == (20000, 9000, "original")
    assert expansion.plan.experiments[0].targets == ("mnist", "mnist_m", "svhn", "synth")
    assert expansion.plan.experiments[0].notes == (PROTOCOLS["held_out"],)


def test_the_papers_suite_states_what_its_text_leaves_open():
    """The scales of the pixels and of DARN's objective; an ablation changes them jointly and separately."""
    text = (SUITES / "paper-digits.yaml").read_text()
    assert "pixels: unit" in text
    assert "sharpmax: {gamma: 0.1, scale: text}" in text
    suite, _ = loaded("ablations/digits-scale")
    tried = {
        (experiment.dataset.component.pixels, method.aggregator.component.scale)
        for experiment in suite.experiments
        for method in experiment.methods.values()
    }
    assert tried == {(pixels, scale) for pixels in ("unit", "bytes") for scale in ("text", "code")}


def test_the_small_suite_notes_its_omissions_and_needs_only_available_data():
    experiment, expansion = load("leaderboard/digits-small")
    digits = experiment.dataset.component
    assert (digits.train, digits.made_train, digits.copies) == (1000, 1000, "reduced")
    assert digits.domains == ("mnist", "mnist_m", "svhn", "synth_fonts")
    notes = expansion.plan.experiments[0].notes
    assert [note.split()[0] for note in notes if note.split()[0] in digits.domains or ":" in note.split()[0]] == [
        *("mnist_m:", "svhn:", "synth_fonts"),
    ]
