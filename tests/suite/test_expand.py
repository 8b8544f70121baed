from __future__ import annotations

import re

import pytest

from msda_bench.errors import PluginError, SuiteError
from msda_bench.plugins import Registry, discover
from msda_bench.suite.cell import Ref
from msda_bench.suite.expand import EQUAL_STEPS, PROTOCOLS, expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.plan import Experiment, Method

SHARPMAX = "{sharpmax: {gamma: 0.9}}"


def test_tables_and_cells_are_in_order(load, registry, good):
    expansion = expand(load(good), registry)
    methods = ("SRC", "TAR", "DANN", "MDMN", "DARN")
    (experiment,) = expansion.plan.experiments
    assert experiment == Experiment(
        name="good",
        dataset="amazon",
        task="classification",
        targets=("books", "dvd"),
        methods=(
            Method("SRC", reference=False, recipe="pooled", distributions=("toys 1.0",)),
            Method("TAR", reference=True, recipe="target_only", distributions=("toys 1.0",)),
            Method("DANN", reference=False, recipe="pooled + d_A, mu 0.01", distributions=("toys 1.0",)),
            Method("MDMN", reference=False, recipe="mdmn, mu 0.01", distributions=("toys 1.0",)),
            Method(
                "DARN",
                reference=False,
                recipe="adapt + d_A + sharpmax(gamma=0.9), mu 0.01",
                distributions=("toys 1.0",),
            ),
        ),
        seeds=(0, 1),
        alpha=0.05,
        notes=("Two seeds only.", EQUAL_STEPS, PROTOCOLS["held_out"]),
        baseline="SRC",
    )
    expected = [(method, target, seed) for method in methods for target in ("books", "dvd") for seed in (0, 1)]
    assert [(cell.method, cell.target, cell.seed) for cell in expansion.plan.cells] == expected
    assert list(expansion.cells) == [cell.key for cell in expansion.plan.cells]
    assert all(cell.key == key for key, cell in expansion.cells.items())


def test_a_cell_is_fully_resolved(load, registry, good):
    expansion = expand(load(good), registry)
    cell = expansion.cells[expansion.plan.cells[-1].key]
    assert cell.dataset == Ref("dataset", "amazon", 1, "toys", {"train": 2000, "test": None})
    assert re.fullmatch("[0-9a-f]{64}", cell.fingerprint)
    assert (cell.target, cell.sources, cell.seed) == ("dvd", ("books", "electronics", "kitchen"), 1)
    assert cell.backbone == Ref("backbone", "mlp", 1, "toys", {"hidden": [8, 4], "dropout": 0.5})
    assert cell.scheme == Ref("scheme", "adapt", 1, "toys", {})
    assert cell.discrepancy == Ref("discrepancy", "d_A", 1, "toys", {"sign": "text"})
    assert cell.aggregator == Ref("aggregator", "sharpmax", 1, "toys", {"gamma": 0.9})
    assert cell.mu == 0.01
    assert cell.to_json()["training"] == {
        "epochs": 2, "batch": 20, "steps": None, "epoch": "equal",
        "optimizer": "adadelta", "optimizer_params": {"lr": 1.0, "rho": 0.9, "eps": 1e-6},
    }  # fmt: skip
    assert cell.validators == (Ref("validator", "source_accuracy", 1, "toys", {}),)


def test_only_requested_sources_are_used_in_the_datasets_order(load, registry, good):
    text = good.replace("targets: [books, dvd]", "targets: [dvd, books]\nsources: [kitchen, dvd, books]")
    cells = expand(load(text), registry).cells.values()
    assert {cell.target: cell.sources for cell in cells} == {"dvd": ("books", "kitchen"), "books": ("dvd", "kitchen")}


@pytest.mark.parametrize(("dataset", "validator"), [("amazon", "source_accuracy"), ("sine", "source_risk")])
def test_the_default_validator_and_targets_are_those_of_the_task(load, registry, good, dataset, validator):
    text = good.replace("{amazon: {train: 2000}}", dataset).replace("validators: [source_accuracy]\n", "")
    expansion = expand(load(text.replace("targets: [books, dvd]\n", "")), registry)
    assert all([ref.name for ref in cell.validators] == [validator] for cell in expansion.cells.values())
    (experiment,) = expansion.plan.experiments
    assert len(experiment.targets) == {"amazon": 4, "sine": 2}[dataset]


def test_a_default_validator_that_is_not_installed_is_refused(load, registry, good):
    fewer = Registry([entry for entry in registry.entries if entry.name != "source_accuracy"])
    with pytest.raises(PluginError, match=r"^unknown validator 'source_accuracy'"):
        expand(load(good.replace("validators: [source_accuracy]\n", "")), fewer)


def test_keys_do_not_depend_on_how_the_suite_is_written(load, registry, good):
    other = (
        good.replace("name: good", "name: other\ndescription: the same in other words")
        .replace("{hidden: [8, 4], dropout: 0.5}", "{dropout: 5e-1, hidden: [0x8, 4]}")
        .replace("lr: 1.0", "eps: 0.000001, lr: 1")
        .replace(
            "DARN: {discrepancy: d_A, mu: 0.01", "Ours: {mu: 1.0e-2, scheme: adapt, discrepancy: {d_A: {sign: text}}"
        )
        .replace("SRC: {scheme: pooled}", "SRC: {aggregator: uniform, discrepancy: none, mu: -0.0, SCHEME}")
        .replace("SCHEME", "scheme: pooled, reference: true")
        .replace("{train: 2000}", "{test: null, train: 2000}")
        .replace("seeds: 2", "seeds: [0, 1]")
        .replace("alpha: 0.05", "alpha: 0.01")
    )
    assert list(expand(load(other), registry).cells) == list(expand(load(good), registry).cells)


def test_methods_with_the_same_settings_share_their_cells(load, registry, good):
    twin = good.replace("  TAR:", "  SRC2: {scheme: pooled}\n  TAR:")
    expansion = expand(load(twin), registry)
    assert len(expansion.plan.cells) == 24
    assert len(expansion.cells) == 20


def test_a_suite_with_too_many_cells_is_refused(load, registry, good):
    text = good.replace("seeds: 2", "seeds: 10000").replace("[books, dvd]", "[books]")
    more = "".join(f"  m{index}: {{}}\n" for index in range(6))
    suite = load(text.replace("  SRC:", f"{more}  SRC:"))
    with pytest.raises(SuiteError, match=r"^suite good asks for 110000 cells; at most 100000, so split it$"):
        expand(suite, registry)


def test_a_method_may_have_its_own_optimiser(load, registry, good):
    text = good.replace("SRC: {scheme: pooled}", "SRC: {scheme: pooled, optimizer: {sgd: {momentum: 0.9}}}")
    cells = expand(load(text), registry).cells.values()
    plain = [cell.to_json() for cell in cells]
    by_sgd = [cell for cell in plain if cell["training"]["optimizer"] == "sgd"]
    assert {cell["scheme"]["name"] for cell in by_sgd} == {"pooled"}
    assert by_sgd[0]["training"]["optimizer_params"] == {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0}


@pytest.mark.parametrize(
    ("old", "new", "baseline"),
    [
        ("", "", "SRC"),
        ("  SRC: {scheme: pooled}\n", "", None),
        ("  SRC: {scheme: pooled}\n", "  SRC: {scheme: pooled}\n  SRC2: {scheme: pooled}\n", None),
        ("SRC: {scheme: pooled}", "SRC: {scheme: pooled, reference: true}", None),
        ("alpha: 0.05}", "baseline: DANN}", "DANN"),
    ],
)
def test_the_only_method_that_pools_without_adaptation_is_the_baseline(load, registry, good, old, new, baseline):
    (table,) = expand(load(good.replace(old, new)), registry).plan.experiments
    assert table.baseline == baseline


def recipe_of(suite, registry, method):
    (table,) = expand(suite, registry).plan.experiments
    return next(row.recipe for row in table.methods if row.name == method)


@pytest.mark.parametrize(
    ("method", "options", "text"),
    [
        ("{}", "", "adapt"),
        ("{scheme: pooled}", "", "pooled"),
        ("{discrepancy: d_A, mu: 0.0}", "", "adapt + d_A, mu 0"),
        ("{discrepancy: {d_A: {sign: code}}, mu: 1}", "", "adapt + d_A(sign=code), mu 1"),
        ("{aggregator: sharpmax}", "", "adapt + sharpmax"),
        ("{aggregator: {sharpmax: {gamma: 1}}, discrepancy: d_A, mu: 0.5}", "", "adapt + d_A + sharpmax, mu 0.5"),
        ("{aggregator: {picky: {size: null}}}", "", "adapt + picky(size=null)"),
        ("{scheme: mdmn, mu: 0.01}", "", "mdmn, mu 0.01"),
        ("{scheme: target_only, reference: true}", "", "target_only"),
        ("{scheme: mdmn, mu: 0.01}", "split_sources: {clusters: 4}\n", "mdmn, mu 0.01, sources in 4 clusters"),
        (
            "{scheme: mdmn, mu: 0.01}",
            "split_sources: {clusters: 3, by: chance}\nlabelled_target: 50\n",
            "mdmn, mu 0.01, sources in 3 parts by chance, 50 target labels",
        ),
    ],
)
def test_a_recipe_names_scheme_discrepancy_aggregator_mu_and_options(load, registry, good, method, options, text):
    assert recipe_of(load(good.replace("SRC: {scheme: pooled}", f"SRC: {method}") + options), registry, "SRC") == text


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("{scheme: mcd}", "mcd, 6 updates a step"),
        ("{scheme: {mcd: {repeats: 1}}, optimizer: adam}", "mcd(repeats=1), adam, 3 updates a step"),
        ("{scheme: m3sda, mu: 0.1}", "m3sda, mu 0.1, 3 updates a step"),
        ("{scheme: alternate, discrepancy: d_A, mu: 1.0}", "alternate + d_A, mu 1, 6 updates a step"),
        ("{scheme: pooled, optimizer: {adam: {lr: 0.0002}}}", "pooled, adam(lr=0.0002)"),
    ],
)
def test_a_recipe_names_updates_per_step_and_the_methods_own_optimiser(tmp_path, method, text):
    path = tmp_path / "s.yaml"
    path.write_text(
        "{schema: 1, name: s, dataset: fonts, seeds: 1, backbone: mlp,"
        f" training: {{epochs: 1, batch: 20, optimizer: adadelta}}, methods: {{ONE: {method}}}}}"
    )
    installed = discover()
    assert recipe_of(load_suite(path, installed), installed, "ONE") == text
