"""Every kind of mistake in a single suite, with its exact line, from mistakes.txt or from this file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DATASET, TARGETS, SEEDS = "{amazon: {train: 2000}}", "[books, dvd]", "seeds: 2"
BACKBONE, SHARPMAX = "{mlp: {hidden: [8, 4], dropout: 0.5}}", "{sharpmax: {gamma: 0.9}}"
HERE = Path(__file__).parent
CASE = re.compile(r"`(.*)` => `(.*)`\n((?: {4}.+\n)+)")
TEXT = (HERE / "mistakes.txt").read_text(encoding="utf-8")
CASES = [
    (part.partition(":")[0], *(text.replace(r"\n", "\n") for text in (old, new)), lines.split("\n")[:-1])
    for part in TEXT.split("## ")[1:]
    for old, new, lines in CASE.findall(part)
]


@pytest.mark.parametrize(("base", "old", "new", "lines"), CASES, ids=[case[-1][0].strip() for case in CASES])
def test_each_mistake_has_its_line(mistakes, good, base, old, new, lines):
    text = good if base == "good" else good + (HERE / "select.yaml").read_text(encoding="utf-8")
    assert old in text
    assert len(CASES) == TEXT.count(" => ")
    assert mistakes(text.replace(old, new, 1)) == [line.strip() for line in lines]


def test_the_valid_suite_loads(load, good):
    (experiment,) = load(good).experiments
    assert experiment.name == "good"
    assert list(experiment.methods) == ["SRC", "TAR", "DANN", "MDMN", "DARN"]
    assert experiment.methods["MDMN"].discrepancy is None
    assert experiment.methods["SRC"].discrepancy.name == "none"
    assert experiment.methods["DANN"].aggregator.name == "uniform"
    assert experiment.methods["DARN"].scheme.name == "adapt"
    assert experiment.training.optimizer.params == {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0}


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "<script>", "a|b_{", "m" * 65, "-m", "a\\nb"])
@pytest.mark.parametrize(("old", "place"), [("name: good", "2:7: name: "), ("  SRC:", "9:3: methods")])
def test_names_that_a_table_or_file_system_could_misread_are_refused(mistakes, good, name, old, place):
    (line,) = mistakes(good.replace(old, old.replace("good", f'"{name}"').replace("SRC", f'"{name}"'), 1))
    assert line.startswith(place)
    assert "must be 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit, not " in line


def test_a_component_without_parameters_may_be_written_in_three_ways(load, good):
    backbones = [load(good.replace(BACKBONE, text)).experiments[0].backbone for text in ("mlp", "{mlp: {}}", "{mlp: }")]
    assert backbones[0] == backbones[1] == backbones[2]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (0, 1, 2)), ("[7, 3]", (7, 3)), ("2-4", (2, 3, 4)), ("'5-5'", (5,)), ("[2147483647]", (2147483647,))],
)
def test_seeds_may_be_a_number_or_a_list(load, good, text, seeds):
    assert load(good.replace(SEEDS, f"seeds: {text}")).experiments[0].seeds == seeds


def test_a_suite_without_methods_is_refused(mistakes, good):
    start, end = good.index("methods:"), good.index("validators:")
    assert mistakes(good[:start] + "methods: {}\n" + good[end:]) == ["8:10: methods: must have at least 1 item, not 0"]


def test_all_mistakes_are_reported_in_file_order(mistakes, good):
    text = good
    for old, new in [
        (DATASET, "{amazon: {train: 1.5}}"),
        (TARGETS, "books"),
        (SEEDS, "seeds: [1, x]"),
        (BACKBONE, "{mpl: {}}"),
        ("epochs: 2", "epochs: .inf"),
        ("SRC: {scheme: pooled}", "SRC: {mu: 1, mu: 2}"),
        (SHARPMAX, "{sharpmax: {gama: 1}}"),
        ("compare:", "compre:"),
    ]:
        text = text.replace(old, new)
    assert mistakes(text) == [
        (
            "3:27: dataset.amazon.train: must be a count, a fraction between 0 and 1, or 'all', or a mapping of these "
            "by domain, not 1.5"
        ),
        "4:10: targets: must be 'all' or a list of at least one domain, not 'books'",
        "5:12: seeds[1]: must be a whole number from 0 to 2**31 - 1, not 'x'",
        "6:12: backbone.mpl: unknown backbone 'mpl' (did you mean 'mlp'?)",
        "7:20: training.epochs: must be a finite number, not .inf",
        "9:13: methods.SRC.mu: weighs no discrepancy; name one, or remove mu (it is 1)",
        "9:16: methods.SRC.mu: duplicate key, first on line 9",
        "13:62: methods.DARN.aggregator.sharpmax.gama: unknown parameter of sharpmax (did you mean 'gamma'?)",
        "15:1: compre: unknown key (did you mean 'compare'?)",
    ]


def test_a_file_that_is_not_a_suite_is_refused(mistakes):
    assert mistakes("[1, 2]") == ["1:1: must be a mapping with keys such as schema and name, not a list"]
    assert mistakes("{}") == [
        "1:1: schema: is missing",
        "1:1: name: is missing",
        "1:1: dataset: is missing",
        "1:1: seeds: is missing",
        "1:1: backbone: is missing",
        "1:1: training: is missing",
        "1:1: methods: is missing",
    ]
