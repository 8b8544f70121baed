"""Every kind of mistake in a single suite, with its exact line."""

from __future__ import annotations

import pytest

DATASET, TARGETS, SEEDS = "{amazon: {train: 2000}}", "[books, dvd]", "seeds: 2"
BACKBONE, TRAINING = "{mlp: {hidden: [8, 4], dropout: 0.5}}", "{epochs: 2, batch: 20, optimizer: {adadelta: {lr: 1.0}}}"
ADADELTA, SHARPMAX, MDMN = "{adadelta: {lr: 1.0}}", "{sharpmax: {gamma: 0.9}}", "{scheme: mdmn, mu: 0.01}"


def test_the_good_suite_is_good(load, good):
    (experiment,) = load(good).experiments
    assert experiment.name == "good"
    assert list(experiment.methods) == ["SRC", "TAR", "DANN", "MDMN", "DARN"]
    assert experiment.methods["MDMN"].discrepancy is None
    assert experiment.methods["SRC"].discrepancy.name == "none"
    assert experiment.methods["DANN"].aggregator.name == "uniform"
    assert experiment.methods["DARN"].scheme.name == "adapt"
    assert experiment.training.optimizer.params == {"lr": 1.0, "rho": 0.9, "eps": 1e-6}


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "<script>", "a|b_{", "m" * 65, "-m", "a\\nb"])
@pytest.mark.parametrize(("old", "place"), [("name: good", "2:7: name: "), ("  SRC:", "9:3: methods")])
def test_names_that_a_table_or_a_file_system_could_take_for_more_are_refused(mistakes, good, name, old, place):
    (line,) = mistakes(good.replace(old, old.replace("good", f'"{name}"').replace("SRC", f'"{name}"'), 1))
    assert line.startswith(place)
    assert "must be 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit, not " in line


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("schema: 1\n", "", "1:1: schema: is missing"),
        ("schema: 1", "schema: 2", "1:9: schema: is 2, but this msda-bench reads 1; install a newer one"),
        ("schema: 1", "schema: 0", "1:9: schema: must be at least 1, not 0"),
        ("schema: 1", "schema: true", "1:9: schema: must be a whole number, not true"),
        ("schema: 1", "schema: '1'", "1:9: schema: must be a whole number, not '1'"),
        ("name: good", "name: 12", "2:7: name: must be text, not 12 (put it in quotes)"),
        (
            "name: good",
            "name: a b",
            "2:7: name: must be 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit, not 'a b'",
        ),
        (
            "name: good",
            "name: ../x",
            "2:7: name: must be 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit, not '../x'",
        ),
        (SEEDS, "sedes: 2\nseeds: 2", "5:1: sedes: unknown key (did you mean 'seeds'?)"),
        (
            "SRC: {",
            "SRC: {q: 1, ",
            (
                "9:9: methods.SRC.q: unknown key (known: scheme, discrepancy, aggregator, mu, reference, "
                "optimizer, split_sources, labelled_target, search)"
            ),
        ),
        (
            "  SRC:",
            "  S/RC:",
            (
                "9:3: methods['S/RC']: must be 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit, "
                "not 'S/RC'"
            ),
        ),
        ("SRC: {scheme: pooled}", "SRC:", "9:7: methods.SRC: must be a mapping, not null"),
        ("MDMN: {", "scheme: {muu: 3, ", "12:12: methods.scheme.muu: unknown key (did you mean 'mu'?)"),
        (
            "SRC: {scheme: pooled}",
            "SRC: {scheme: pooled, discrepancy: d_A}",
            "9:38: methods.SRC.discrepancy: needs its weight; add mu, such as mu: 0.01",
        ),
        ("reference: true", "reference: yes", "10:41: methods.TAR.reference: must be true or false, not 'yes'"),
        ("notes: [Two", "notes: [2, Two", "16:9: notes[0]: must be text, not 2 (put it in quotes)"),
        ("notes: [Two seeds only.]", "notes: Two", "16:8: notes: must be a list, not 'Two'"),
    ],
)
def test_keys_and_types(mistakes, good, old, new, line):
    assert mistakes(good.replace(old, new, 1)) == [line]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (DATASET, "amazn", "3:10: dataset: unknown dataset 'amazn' (did you mean 'amazon'?)"),
        (DATASET, "{amazn: {}}", "3:11: dataset.amazn: unknown dataset 'amazn' (did you mean 'amazon'?)"),
        (DATASET, "[amazon]", "3:10: dataset: must be a dataset, as name or {name: {parameters}}, not a list"),
        (
            DATASET,
            "{amazon: {}, sine: {}}",
            "3:10: dataset: must name one dataset, not 2; write {name: {parameters}}",
        ),
        (DATASET, "{amazon: 3}", "3:19: dataset.amazon: must be a mapping of parameters, not 3"),
        (DATASET, "{amazon: {train: 0}}", "3:27: dataset.amazon.train: must be at least 1, not 0"),
        (
            DATASET,
            "{amazon: {trian: 5}}",
            "3:20: dataset.amazon.trian: unknown parameter of amazon (did you mean 'train'?)",
        ),
        (
            BACKBONE,
            "{mlp: {hidden: [8, x]}}",
            "6:30: backbone.mlp.hidden[1]: must be a whole number, not 'x'",
        ),
        (BACKBONE, "{mlp: {dropout: 1.0}}", "6:27: backbone.mlp.dropout: must be less than 1, not 1.0"),
        (BACKBONE, "{linear: {bias_column: 1}}", "6:34: backbone.linear.bias_column: must be true or false, not 1"),
        (
            SHARPMAX,
            "{sharpmax: {gamma: -1.0}}",
            "13:69: methods.DARN.aggregator.sharpmax.gamma: must be greater than 0, not -1.0",
        ),
        (
            SHARPMAX,
            "sharpmx",
            "13:50: methods.DARN.aggregator: unknown aggregator 'sharpmx' (did you mean 'sharpmax'?)",
        ),
        (
            SHARPMAX,
            "3",
            "13:50: methods.DARN.aggregator: must be an aggregator, as name or {name: {parameters}}, not 3",
        ),
        (SHARPMAX, "picky", "13:50: methods.DARN.aggregator.size: is missing"),
        (SHARPMAX, "{picky: {}}", "13:51: methods.DARN.aggregator.picky.size: is missing"),
        (
            SHARPMAX,
            "{picky: {size: a}}",
            "13:65: methods.DARN.aggregator.picky.size: must be a whole number, not 'a'",
        ),
        (
            SHARPMAX,
            "{picky: {size: 13}}",
            (
                "13:51: methods.DARN.aggregator.picky: aggregator 'picky' of toys 1.0 cannot be made: "
                "tests/suite/conftest.py:N: RuntimeError: bad luck"
            ),
        ),
        (
            "DANN: {scheme: pooled, discrepancy: d_A",
            "DANN: {scheme: pooled, discrepancy: {d_A: {sign: txt}}",
            "11:52: methods.DANN.discrepancy.d_A.sign: must be 'text' or 'code', not 'txt' (did you mean 'text'?)",
        ),
        (
            "SRC: {scheme: pooled}",
            "SRC: {scheme: poled}",
            "9:17: methods.SRC.scheme: unknown scheme 'poled' (did you mean 'pooled'?)",
        ),
        (
            "[source_accuracy]",
            "[source_accurcy]",
            "14:14: validators[0]: unknown validator 'source_accurcy' (did you mean 'source_accuracy'?)",
        ),
    ],
)
def test_components(mistakes, good, old, new, line):
    assert mistakes(good.replace(old, new, 1)) == [line]


def test_a_component_without_parameters_may_be_written_in_three_ways(load, good):
    backbones = [load(good.replace(BACKBONE, text)).experiments[0].backbone for text in ("mlp", "{mlp: {}}", "{mlp: }")]
    assert backbones[0] == backbones[1] == backbones[2]


@pytest.mark.parametrize(
    ("new", "line"),
    [
        (
            "{epochs: 2, batch: 20, optimizer: {adadlta: {}}}",
            "7:46: training.optimizer.adadlta: unknown optimizer (did you mean 'adadelta'?)",
        ),
        (
            "{epochs: 2, batch: 20, optimizer: adm}",
            "7:45: training.optimizer.adm: unknown optimizer (did you mean 'adam'?)",
        ),
        (
            "{epochs: 2, batch: 20, optimizer: {adam: {}, sgd: {}}}",
            "7:45: training.optimizer: must name one optimizer, not 2",
        ),
        ("{epochs: 2, batch: 20, optimizer: [adam]}", "7:45: training.optimizer: must be a mapping, not a list"),
        (
            "{epochs: 2, batch: 20, optimizer: {adam: {beta: 1}}}",
            "7:53: training.optimizer.adam.beta: unknown key (did you mean 'beta2'?)",
        ),
        (
            "{epochs: 2, batch: 20, optimizer: {adam: {eps: 0}}}",
            "7:58: training.optimizer.adam.eps: must be greater than 0, not 0",
        ),
        (
            "{epochs: 2, batch: 20, optimizer: {sgd: {momentum: 1}}}",
            "7:62: training.optimizer.sgd.momentum: must be less than 1, not 1",
        ),
        ("{epochs: 2, batch: 20}", "7:1: training.optimizer: is missing"),
        ("{epochs: 2.5, batch: 20, optimizer: sgd}", "7:20: training.epochs: must be a whole number, not 2.5"),
        ("{epochs: 2, batch: 0, optimizer: sgd}", "7:30: training.batch: must be at least 1, or 'all', not 0"),
        ("{epochs: 2, batch: 1, steps: 0, optimizer: sgd}", "7:40: training.steps: must be at least 1, not 0"),
        ("fast", "7:11: training: must be a mapping, not 'fast'"),
    ],
)
def test_training(mistakes, good, new, line):
    assert mistakes(good.replace(TRAINING, new)) == [line]


@pytest.mark.parametrize(
    ("new", "line"),
    [
        ("seeds: 0", "5:8: seeds: must be a count of at least 1, not 0; for one seed write [0]"),
        ("seeds: []", "5:8: seeds: must have at least one seed"),
        ("seeds: [1, 1]", "5:12: seeds[1]: seed 1 is named twice"),
        ("seeds: [-1]", "5:9: seeds[0]: must be a whole number from 0 to 2**31 - 1, not -1"),
        ("seeds: [true]", "5:9: seeds[0]: must be a whole number from 0 to 2**31 - 1, not true"),
        ("seeds: [2147483648]", "5:9: seeds[0]: must be a whole number from 0 to 2**31 - 1, not 2147483648"),
        (
            "seeds: 4-1",
            (
                "5:8: seeds: must be a count, a list such as [0, 3] or a span such as '0-4', not '4-1' "
                "(did you mean '1-4'?)"
            ),
        ),
        ("seeds: 1.0", "5:8: seeds: must be a count, a list such as [0, 3] or a span such as '0-4', not 1.0"),
        ("seeds: true", "5:8: seeds: must be a count, a list such as [0, 3] or a span such as '0-4', not true"),
        ("seeds:", "5:7: seeds: must be a count, a list such as [0, 3] or a span such as '0-4', not null"),
        ("seeds: 1000000000", "5:8: seeds: must be at most 10000 seeds below 2**31, not 1000000000"),
        ("seeds: 0-9999999999", "5:8: seeds: must be at most 10000 seeds below 2**31, not '0-9999999999'"),
    ],
)
def test_seeds(mistakes, good, new, line):
    assert mistakes(good.replace(SEEDS, new)) == [line]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (0, 1, 2)), ("[7, 3]", (7, 3)), ("2-4", (2, 3, 4)), ("'5-5'", (5,)), ("[2147483647]", (2147483647,))],
)
def test_ways_to_write_seeds(load, good, text, seeds):
    assert load(good.replace(SEEDS, f"seeds: {text}")).experiments[0].seeds == seeds


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "mdmn, mu: 0.01",
            "mdmn, mu: 0.01, discrepancy: d_A",
            "12:34: methods.MDMN.discrepancy: scheme 'mdmn' takes none; remove it",
        ),
        (
            "mdmn, mu: 0.01",
            "mdmn, mu: 0.01, aggregator: uniform",
            "12:34: methods.MDMN.aggregator: scheme 'mdmn' takes none; remove it",
        ),
        (
            "{scheme: pooled}",
            "{scheme: pooled, mu: 0.5}",
            "9:29: methods.SRC.mu: weighs no discrepancy; name one, or remove mu (it is 0.5)",
        ),
        (
            "{scheme: pooled}",
            "{discrepancy: none, mu: 0.5}",
            "9:32: methods.SRC.mu: weighs no discrepancy; name one, or remove mu (it is 0.5)",
        ),
        (
            "DARN: {discrepancy: d_A, mu: 0.01",
            "DARN: {discrepancy: d_A, mu: -1",
            "13:32: methods.DARN.mu: must be at least 0, not -1",
        ),
        (
            "target_only, reference: true",
            "target_only",
            "10:17: methods.TAR.scheme: target_only asks for target labels; add reference: true",
        ),
        (
            "target_only, reference: true",
            "target_only, reference: true, mu: 0",
            "10:47: methods.TAR.mu: scheme 'target_only' takes none; remove it",
        ),
        ("mdmn, mu: 0.01", "mdmn", "12:18: methods.MDMN.scheme: needs its weight; add mu, such as mu: 0.01"),
        ("wilcoxon", "t-test", "15:17: compare.test: must be 'wilcoxon', not 't-test'"),
        ("0.05}", "1}", "15:34: compare.alpha: must be less than 1, not 1"),
    ],
)
def test_methods_and_comparison(mistakes, good, old, new, line):
    assert mistakes(good.replace(old, new)) == [line]


def test_no_method(mistakes, good):
    start, end = good.index("methods:"), good.index("validators:")
    assert mistakes(good[:start] + "methods: {}\n" + good[end:]) == ["8:10: methods: must have at least 1 item, not 0"]


def test_all_mistakes_at_once_in_the_order_of_the_file(mistakes, good):
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
        "3:27: dataset.amazon.train: must be a whole number, not 1.5",
        "4:10: targets: must be 'all' or a list of at least one domain, not 'books'",
        "5:12: seeds[1]: must be a whole number from 0 to 2**31 - 1, not 'x'",
        "6:12: backbone.mpl: unknown backbone 'mpl' (did you mean 'mlp'?)",
        "7:20: training.epochs: must be a finite number, not .inf",
        "9:13: methods.SRC.mu: weighs no discrepancy; name one, or remove mu (it is 1)",
        "9:16: methods.SRC.mu: duplicate key, first on line 9",
        "13:62: methods.DARN.aggregator.sharpmax.gama: unknown parameter of sharpmax (did you mean 'gamma'?)",
        "15:1: compre: unknown key (did you mean 'compare'?)",
    ]


def test_a_file_that_is_no_suite(mistakes):
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
