"""Sizes in a suite: valid values, and domains that are too small, reported before training."""

from __future__ import annotations

import json

import pytest

from msda_bench.errors import SuiteError
from msda_bench.plugins import discover
from msda_bench.suite.expand import PROTOCOLS, expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.plan import parse_plan, plan_to_json
from msda_bench_builtin.datasets import Amazon, Digits

SUITE = """\
schema: 1
name: sizes
dataset: {DATASET}
seeds: 1
backbone: {mlp: {hidden: [8], dropout: 0.5}}
training: {epochs: 1, batch: 20, optimizer: adadelta}
methods:
  SRC: {scheme: pooled}
"""
TAR = "  TAR: {scheme: target_only, reference: true}\n"


@pytest.fixture
def reported(tmp_path):
    """`reported(dataset, more)`: the notes of the suite's table, or all its mistakes."""

    def run(dataset, more=""):
        path = tmp_path / "s.yaml"
        path.write_text(SUITE.replace("DATASET", dataset) + more)
        registry = discover()
        try:
            (table,) = expand(load_suite(path, registry), registry).plan.experiments
        except SuiteError as error:
            return [line.removeprefix(f"{path}:") for line in error.lines]
        return list(table.notes)

    return run


@pytest.mark.parametrize(
    ("train", "asked"),
    [
        ("6000", "train = 6000"),
        ("{dvd: 6000, default: 0.5}", "train.dvd = 6000"),
        ("{default: 6000}", "train.default = 6000"),
    ],
)
def test_a_domain_too_small_is_reported_with_its_size_and_the_required_one(reported, train, asked):
    (line,) = reported(f"amazon: {{train: {train}}}")
    size = "domain 'dvd' has 5586 examples to train on"
    assert line == f"3:27: dataset.amazon.train: {size}, fewer than {asked}; set a smaller `train`"


@pytest.mark.parametrize(
    ("dataset", "what"),
    [
        ("amazon: {train: all}", "train: target 'books' has no test examples left; set a smaller `train`"),
        ("amazon: {train: {dvd: 2}}", "train: `train` names no size for domain 'books'; add it, or a default"),
        (
            "amazon: {train: {dvds: 2, default: 3}}",
            "train.dvds: 'dvds' is not a domain of amazon (did you mean 'dvd'?)",
        ),
        (
            "amazon: {target_train: {dvds: 2}}",
            "target_train.dvds: 'dvds' is not a domain of amazon (did you mean 'dvd'?)",
        ),
        ("amazon: {target_train: 9999}", "target_train: domain 'books' has 6465 examples to train on, fewer than"),
        ("amazon: {train: {dvd: 1.5}}", "train: of domain 'dvd' must be a count, a fraction between 0 and 1, or 'all'"),
        ("amazon: {test: 0}", "test: must be at least 1, not 0"),
        ("amazon: {test: {dvd: 3}}", "test: must be a count, a fraction between 0 and 1, or 'all', not a mapping"),
        ("amazon: {protocol: transductive, test: 9}", "test: `test` is 9, but `protocol: transductive` trains on"),
        ("amazon: {corrupt: {source: dvds, labels: shuffle}}", "corrupt.source: 'dvds' is not a domain of amazon"),
        ("amazon: {corrupt: {source: dvd, labels: flip}}", "corrupt: must be {source: NAME, labels: shuffle}"),
        ("digits: {domains: [mnist, usps], train: 8000}", "train: domain 'usps' has 7291 examples to train on, fewer"),
    ],
)
def test_other_mistakes_are_reported_at_their_place(reported, dataset, what):
    name = dataset.partition(":")[0]
    assert any(f": dataset.{name}.{what}" in line for line in reported(dataset)), reported(dataset)


def test_a_source_that_is_left_out_must_also_suit_as_target(reported):
    dataset = "amazon: {train: {books: 2000, default: all}}"
    select = (
        "targets: [books]\nselect: {how: grid, budget: 1, by: leave_one_source_out, space: {training.epochs: [1]}}\n"
    )
    assert PROTOCOLS["held_out"] in reported(dataset, "targets: [books]\n")
    (line, *_) = reported(dataset, select)
    assert "dataset.amazon.train: target 'dvd' has no test examples left" in line


@pytest.mark.parametrize(
    "dataset",
    [
        "amazon: {train: 0.5}",
        "amazon: {train: all, target_train: 0.5, test: 0.25}",
        "amazon: {train: {books: 2000, dvd: all, default: 0.5}, target_train: {default: 100}}",
    ],
)
def test_sizes_in_every_form_are_held_out(reported, dataset):
    assert PROTOCOLS["held_out"] in reported(dataset)


BY_ACCURACY = "select: {how: grid, budget: 1, by: source_accuracy, space: {training.epochs: [1]}}\n"


@pytest.mark.parametrize(
    ("dataset", "more", "place"),
    [
        ("amazon: {train: all, target_train: 9}", "validators: [entropy, dev]\n", "9:23: validators[1]: dev"),
        ("music: {train: 0.5}", "validators: [source_risk]\n", "9:14: validators[0]: source_risk"),
        ("amazon: {train: all, target_train: 9}", BY_ACCURACY, "9:36: select.by: source_accuracy"),
    ],
)
def test_a_validator_without_held_out_examples_is_refused(reported, dataset, more, place):
    (line,) = reported(dataset, more)
    assert line.startswith(f"{place} needs held-out examples of the sources, and none")
    assert "set a smaller `train`" in line


def test_a_suite_that_names_no_validator_has_none_if_nothing_is_held_out(tmp_path):
    def validators(dataset):
        path, registry = tmp_path / "s.yaml", discover()
        path.write_text(SUITE.replace("DATASET", dataset))
        cell = next(iter(expand(load_suite(path, registry), registry).cells.values()))
        return [validator.name for validator in cell.validators]

    assert validators("amazon: {train: all, target_train: 9}") == []
    assert validators("pacs: {train: all, target_train: 9}") == []
    assert validators("amazon: {train: {books: all, default: 9}, target_train: 9}") == []
    assert validators("amazon: {train: 0.5}") == ["source_accuracy"]
    assert validators("music: {train: 0.5}") == []
    assert validators("music: {train: 0.8, test: 0.2}") == []
    assert validators("music: {train: 0.5, test: 0.2}") == ["source_accuracy"]


@pytest.mark.parametrize(
    ("dataset", "more", "what"),
    [
        ("music: {train: all, target_train: 9}", "", "train: train = all trains on all of a source, and so on groups"),
        ("music: {protocol: transductive}", "", "protocol: `protocol: transductive` would show the test's labels, sin"),
    ],
)
def test_groups_in_several_domains_are_never_trained_on_and_tested(reported, dataset, more, what):
    (line,) = reported(dataset, more)
    assert f": dataset.music.{what}" in line


def test_no_source_with_groups_of_the_test_is_left_out_to_select(reported):
    select = BY_ACCURACY.replace("source_accuracy", "leave_one_source_out")
    (line,) = reported("music: {train: 0.5, test: 0.2}", select)
    assert "select.by: a source left out would show labels of the test, whose groups it shares; select by anot" in line


def test_a_transductive_table_has_a_note_and_refuses_target_labels(reported):
    dataset = "amazon: {train: all, protocol: transductive}"
    assert PROTOCOLS["transductive"] in reported(dataset)
    sees = "sees labels of the target, which in `protocol: transductive` are those of the test; remove it"
    assert reported(dataset, TAR) == [f"9:17: methods.TAR.scheme: target_only {sees}"]
    assert reported(dataset, "labelled_target: 5\n") == [f"9:1: labelled_target: {sees}"]


@pytest.mark.parametrize(("option", "source"), [("corrupt: {source: dvd, labels: shuffle}", "dvd"), ("", None)])
def test_a_plan_and_its_notes_keep_which_source_is_corrupted(tmp_path, option, source):
    path, registry = tmp_path / "s.yaml", discover()
    path.write_text(SUITE.replace("DATASET", f"amazon: {{{option}}}"))
    plain = plan_to_json(expand(load_suite(path, registry), registry).plan)
    (table,) = parse_plan(json.dumps(plain).encode()).experiments
    assert table.corrupted == source
    assert ("The labels of source dvd are shuffled (`corrupt`)." in table.notes) == (source is not None)
    assert ("corrupted" in plain["experiments"][0]) == (source is not None)


def test_only_sizes_that_are_set_are_part_of_the_key():
    assert Amazon(train=2000, test=None).identity() == {"train": 2000, "test": None}
    assert Digits(test="all") == Digits(test=None)
    said = Amazon(train={"dvd": "all", "default": 0.5}, target_train=9, protocol="transductive").identity()
    assert said == {
        "train": {"dvd": "all", "default": 0.5},
        "test": None,
        "target_train": 9,
        "protocol": "transductive",
    }
    assert Amazon(**said).fingerprint() != Amazon().fingerprint()
