from __future__ import annotations

import pytest

from msda_bench.plugins import discover
from msda_bench.suite.cell import Splitting
from msda_bench.suite.load import load_suite
from msda_bench.suite.method import SourceOptions, describe, recipe


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
def test_recipe(load, good, method, text):
    suite = load(good.replace("SRC: {scheme: pooled}", f"SRC: {method}"))
    assert recipe(suite.experiments[0].methods["SRC"], SourceOptions()) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (SourceOptions(Splitting(4)), "mdmn, mu 0.01, sources in 4 clusters"),
        (SourceOptions(Splitting(3, "chance"), 50), "mdmn, mu 0.01, sources in 3 parts by chance, 50 target labels"),
    ],
)
def test_what_is_done_to_the_sources(load, good, options, text):
    assert recipe(load(good).experiments[0].methods["MDMN"], options) == text


def test_lists_are_written_out(load, good):
    assert describe(load(good).experiments[0].backbone) == "mlp(hidden=[8, 4], dropout=0.5)"


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
def test_it_says_how_often_a_step_updates_and_by_which_optimiser_of_its_own(tmp_path, method, text):
    path = tmp_path / "s.yaml"
    path.write_text(
        "{schema: 1, name: s, dataset: fonts, seeds: 1, backbone: mlp,"
        f" training: {{epochs: 1, batch: 20, optimizer: adadelta}}, methods: {{ONE: {method}}}}}"
    )
    suite = load_suite(path, discover())
    assert recipe(suite.experiments[0].methods["ONE"], SourceOptions()) == text
