from __future__ import annotations

import pytest
import torch

from msda_bench.errors import SuiteError
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.load import load_suite
from tests.suite.conftest import toy

TARGETS = "targets: [books, dvd]\n"


def test_a_target_among_its_own_sources_is_refused(tmp_path, good, registry):
    amazon = registry.entry("dataset", "amazon").cls
    of_target = {name: ("books", "dvd" if name == "kitchen" else "kitchen") for name in amazon().domains}
    # A class of its own: Python remembers of a class that it has what a protocol asks for.
    amazon = toy(amazon, "amazon", sources=lambda _: of_target)
    rest = [entry for entry in registry.entries if entry.name != "amazon"]
    path = tmp_path / "s.yaml"
    path.write_text(good)
    with pytest.raises(SuiteError) as caught:
        load_suite(path, Registry([*rest, Entry("dataset", amazon, "toys", "1.0")]))
    assert caught.value.lines == (f"{path}:3:10: dataset: target 'books' is among its own sources in amazon",)


APART = (
    "  MDMN: {scheme: mdmn, mu: 0.01}\n",
    "  DARN: {discrepancy: d_A, mu: 0.01, aggregator: {sharpmax: {gamma: 0.9}}}\n",
)


@pytest.mark.parametrize(
    ("targets", "without"),
    [
        ("targets: all\n", ""),
        ("", ""),
        (f"{TARGETS}sources: [kitchen, electronics]\n", ""),
        (f"{TARGETS}sources: [books, dvd, kitchen]\n", ""),
        (f"{TARGETS}sources: [kitchen]\n", APART),
        (f"{TARGETS}sources: [books, dvd]\n", APART),
    ],
)
def test_two_sources_are_enough_and_one_for_methods_that_pool(load, good, targets, without):
    text = good.replace(TARGETS, targets)
    for method in without:
        text = text.replace(method, "")
    assert len(load(text).experiments) == 1


@pytest.mark.parametrize(
    ("sources", "without", "line"),
    [
        (
            "[kitchen]",
            "",
            "5:10: sources: target 'books' has one source left, but MDMN, DARN weigh sources and need two",
        ),
        (
            "[books, kitchen]",
            APART[0],
            "5:10: sources: target 'books' has one source left, but DARN weighs sources and needs two",
        ),
    ],
)
def test_methods_that_weigh_sources_need_two(mistakes, good, sources, without, line):
    text = good.replace(TARGETS, f"targets: [books]\nsources: {sources}\n").replace(without, "")
    assert mistakes(text) == [f"{line}; only a scheme that pools them may have one"]


@pytest.mark.parametrize(
    ("dataset", "targets", "validators", "line"),
    [
        ("amazon", "targets: [books]\nsources: [books]\n", "source_risk",
         "5:10: sources: hold no source of target 'books'; it has dvd, electronics, kitchen"),
        ("lonely", "", "source_risk", "3:10: dataset: target 'only' has no source in lonely"),
        ("sine", "targets: [source_0]\n", "source_risk",
         "4:11: targets[0]: 'source_0' is not a target of sine (known: target_0, target_1)"),
        ("sine", "", "source_accuracy",
         "13:14: validators[0]: source_accuracy scores classification; sine is regression"),
        ("amazon", "", "source_risk, source_risk", "13:27: validators[1]: source_risk is named twice"),
    ],
)  # fmt: skip
def test_unsuitable_domains_and_validators_are_refused(mistakes, good, dataset, targets, validators, line):
    text = good.replace("{amazon: {train: 2000}}", dataset).replace(TARGETS, targets)
    assert mistakes(text.replace("source_accuracy", validators)) == [line]


def test_an_unsuitable_backbone_is_refused(mistakes, good):
    text = good.replace("{mlp: {hidden: [8, 4], dropout: 0.5}}", "convnet")
    assert mistakes(text) == ["6:11: backbone: backbone convnet needs images, not input of shape (2,)"]
    text = text.replace("{amazon: {train: 2000}}", "photos").replace(TARGETS, "")
    assert mistakes(text) == [
        (
            "5:11: backbone: backbone 'convnet' of toys 1.0 cannot be built for photos: "
            "tests/suite/conftest.py:N: KeyError: 'no\\nkernel'"
        )
    ]


def test_checking_does_not_use_the_callers_random_generators(load, good):
    before = torch.get_rng_state()
    load(good)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_dataset_with_invalid_notes_is_refused(mistakes, good, load, monkeypatch):
    monkeypatch.setattr(type(load(good).experiments[0].dataset.component), "notes", (3,))
    (line,) = mistakes(good)
    assert line.startswith("3:10: dataset: dataset 'amazon' of toys 1.0 cannot be inspected: TypeError: ")


def test_a_dataset_that_raises_is_reported(mistakes, good):
    (line,) = mistakes(good.replace("{amazon: {train: 2000}}", "faulty"))
    assert line == (
        "3:10: dataset: dataset 'faulty' of toys 1.0 cannot be inspected: "
        "tests/suite/conftest.py:N: KeyError: 'no\\ndomains'"
    )


def test_a_scheme_for_another_task_is_refused(load, mistakes, good):
    text = good.replace("scheme: mdmn", "scheme: m3sda")
    load(text)
    regression = text.replace("{amazon: {train: 2000}}", "sine").replace(TARGETS, "").replace("_accuracy", "_risk")
    assert mistakes(regression) == ["11:18: methods.MDMN.scheme: m3sda trains classification; sine is regression"]


def test_groups_of_different_sizes_are_for_the_schemes_own_steps(load, mistakes, good):
    text = good.replace("scheme: mdmn", "scheme: uneven")
    line = "scheme 'uneven': its groups hold 1 and 3 domains; add epoch: scheme to training"
    assert mistakes(text) == [f"12:18: methods.MDMN.scheme: {line}"]
    assert load(text.replace("{epochs:", "{epoch: scheme, epochs:"))


def test_parts_that_depend_on_each_other_are_checked_when_a_third_is_wrong(mistakes, good):
    text = good.replace("[books, dvd]", "[bokks]").replace("seeds: 2", "seeds: 0").replace("alpha: 0.05", "alpha: 2")
    assert mistakes(text) == [
        "4:11: targets[0]: 'bokks' is not a target of amazon (did you mean 'books'?)",
        "5:8: seeds: must be a count of at least 1, not 0; for one seed write [0]",
        "15:34: compare.alpha: must be less than 1, not 2",
    ]
