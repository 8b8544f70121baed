"""Every kind of mistake in a suite, with its exact line, from mistakes.txt.

A case is one or more edits of the suite named in the heading, whose files are joined, and the lines that it then gets.
An edit of nothing adds to the end.
"""

import re
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from tests.suite.conftest import HERE

FOLDER = Path(__file__).parent
TEXT = (FOLDER / "mistakes.txt").read_text()
EDIT = re.compile(r"`(.*)` => `(.*)`\n")
CASE = re.compile(r"((?:`.*` => `.*`\n)+)((?: {4}.+\n)+)")
CASES = [
    pytest.param(part.partition(":")[0], EDIT.findall(edits), lines, id=lines.strip().partition("\n")[0])
    for part in TEXT.split("## ")[1:]
    for edits, lines in CASE.findall(part)
]


@pytest.mark.parametrize(("base", "edits", "lines"), CASES)
def test_each_mistake_has_its_line(mistakes, base, edits, lines):
    text = "".join((FOLDER / f"{part}.yaml").read_text() for part in base.split("+"))
    for old, new in ((words.replace(r"\n", "\n") for words in edit) for edit in edits):
        assert old in text
        text = text.replace(old, new, 1) if old else text + new
    assert mistakes(text) == [line.strip() for line in lines.splitlines()]


def test_no_case_is_skipped():
    assert sum(len(case.values[1]) for case in CASES) == TEXT.count(" => ")


def test_a_file_that_is_not_a_suite_is_refused(mistakes):
    assert mistakes("[1, 2]") == ["1:1: must be a mapping with keys such as schema and name, not a list"]
    required = ("schema", "name", "dataset", "seeds", "backbone", "training", "methods")
    assert mistakes("{}") == [f"1:1: {key}: is missing" for key in required]


@pytest.mark.parametrize(
    ("data", "line"),
    {
        "train: 6000": "domain 'dvd' has 5586 examples to train on, fewer than train = 6000; set a smaller `train`",
        "train: {dvd: 6000, default: 0.5}": "domain 'dvd' has 5586 examples to train on, fewer than train.dvd = ",
        "train: {dvd: 2, books: 2, kitchen: 2}": "`train` names no size for domain 'electronics'; add it, or a",
        "train: {books: all, default: 9}": "target 'books' has no test examples left; set a smaller `train`",
        "target_train: 6000": "domain 'dvd' has 5586 examples to train on, fewer than target_train = 6000; set a",
    }.items(),
)
def test_domains_that_are_too_small_are_named_before_anything_trains(tmp_path, monkeypatch, capsys, data, line):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text((FOLDER / "sizes.yaml").read_text().replace("DATASET", f"amazon: {{{data}}}"))
    for command in ("validate", "run"):
        assert main([command, "s.yaml"]) == 2
        assert f"\nmsda-bench: error: dataset amazon: {line}" in f"\n{capsys.readouterr().err}"
    assert not Path("results").exists()


def test_mistakes_between_domains_of_a_dataset_are_reported(mistakes, good, load, monkeypatch):
    amazon = type(load(good).experiments[0].data)
    options = "split_sources: {clusters: 4}\nlabelled_target: 50\n"
    with monkeypatch.context() as patch:
        patch.setattr(amazon, "domains", ("books", "dvd", "kitchen", "dvd/3", "kitchen/labelled"))
        what = "which would also be the name of a part of another"
        assert mistakes(good + options) == [
            f"3:10: dataset: has a domain 'dvd/3', {what}",
            f"3:10: dataset: has a domain 'kitchen/labelled', {what}",
        ]
        load(good)
    with monkeypatch.context() as patch:
        patch.setattr(amazon, "notes", (3,))
        (line,) = mistakes(good)
        assert line.startswith(f"3:10: dataset: dataset 'amazon' of {HERE} cannot be inspected: TypeError: ")


def test_a_target_among_its_own_sources_is_refused(mistakes, good, replaced):
    of_target = {name: ("books", "dvd" if name == "kitchen" else "kitchen") for name in ("books", "dvd", "kitchen")}
    registry = replaced("dataset", "amazon", sources=lambda _: of_target)
    assert mistakes(good, registry) == ["3:10: dataset: target 'books' is among its own sources in amazon"]


@pytest.mark.parametrize("name", ["oracle", "chance"])
def test_a_validator_with_a_reserved_name_is_refused(mistakes, good, replaced, name):
    registry = replaced("validator", "source_risk", name=name)
    text = good.replace("[source_accuracy]", f"[{name}, source_accuracy]")
    what = f"{name} has another meaning in select; it cannot be a validator's name"
    select = (FOLDER / "select.yaml").read_text()
    assert mistakes(text + select, registry) == [f"14:14: validators[0]: {what}"]


def test_accuracies_are_not_compared_with_a_regression(tmp_path, mistakes, good):
    (tmp_path / "t.csv").write_text("method,target,mean,source,table,certainty\nSRC,target_0,79.0,paper,1,high\n")
    text = good.replace("{amazon: {train: 2000}}", "sine").replace("[books, dvd]", "all").replace("_accuracy", "_risk")
    assert mistakes(f"{text}published: t.csv\n") == ["17:12: published: t is of accuracy_percent; sine is regression"]
