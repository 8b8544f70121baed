from __future__ import annotations

import pytest

from msda_bench.plugins import discover
from msda_bench.suite.expand import recipe
from msda_bench.suite.facts import Facts
from msda_bench.suite.load import load_suite


def described(suite, method):
    (experiment,) = suite.experiments
    return recipe(Facts.of(dict(experiment)), experiment.methods[method])


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("{}", "adapt"),
        ("{scheme: pooled}", "pooled"),
        ("{discrepancy: d_A, mu: 0.0}", "adapt + d_A, mu 0"),
        ("{discrepancy: {d_A: {sign: code}}, mu: 1}", "adapt + d_A(sign=code), mu 1"),
        ("{aggregator: sharpmax}", "adapt + sharpmax"),
        ("{aggregator: {sharpmax: {gamma: 1}}, discrepancy: d_A, mu: 0.5}", "adapt + d_A + sharpmax, mu 0.5"),
        ("{aggregator: {picky: {size: null}}}", "adapt + picky(size=null)"),
        ("{scheme: mdmn, mu: 0.01}", "mdmn, mu 0.01"),
        ("{scheme: target_only, reference: true}", "target_only"),
    ],
)
def test_a_recipe_names_scheme_discrepancy_aggregator_and_mu(load, good, method, text):
    suite = load(good.replace("SRC: {scheme: pooled}", f"SRC: {method}"))
    assert described(suite, "SRC") == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("split_sources: {clusters: 4}\n", "mdmn, mu 0.01, sources in 4 clusters"),
        (
            "split_sources: {clusters: 3, by: chance}\nlabelled_target: 50\n",
            "mdmn, mu 0.01, sources in 3 parts by chance, 50 target labels",
        ),
    ],
)
def test_a_recipe_names_split_sources_and_target_labels(load, good, options, text):
    assert described(load(good + options), "MDMN") == text


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
    suite = load_suite(path, discover())
    assert described(suite, "ONE") == text
