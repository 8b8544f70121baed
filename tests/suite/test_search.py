"""From `select` and `search` in a suite to candidates and their cells, and every mistake in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.errors import SuiteError
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.expand import EQUAL_STEPS, PROTOCOLS, expand
from msda_bench.suite.load import load_suite

SELECT = Path(__file__).with_name("select.yaml").read_text(encoding="utf-8")
GRID = SELECT.replace("random", "grid").replace("{log: [0.001, 0.1]}", "[0.01, 0.1]")
DARN, GAMMA = "DARN: {discrepancy", "search: {aggregator.sharpmax.gamma: [0.1, 0.9]}, discrepancy"
LEFT_OUT = "leave_one_source_out"


def expanded(load, registry, text):
    expansion = expand(load(text), registry)
    return expansion, expansion.plan.experiments[0]


def settings(table):
    return {method.name: method.search.candidates for method in table.methods}


def test_each_method_has_its_part_of_the_space(load, registry, good):
    _, table = expanded(load, registry, good.replace(DARN, "DARN: {" + GAMMA) + SELECT)
    found = settings(table)
    lr, mu, gamma = "training.optimizer.adadelta.lr", "mu", "aggregator.sharpmax.gamma"
    assert {name: set(tried[0]) for name, tried in found.items()} == {
        "SRC": {lr},
        "TAR": {lr},
        "DANN": {lr, mu},
        "MDMN": {lr, mu},
        "DARN": {lr, mu, gamma},
    }
    assert {name: len(tried) for name, tried in found.items()} == {"SRC": 2, "TAR": 2, "DANN": 4, "MDMN": 4, "DARN": 4}
    assert found["SRC"] == ({lr: 0.3}, {lr: 1.0})


def test_every_candidate_is_a_cell_of_its_own_settings(load, registry, good):
    expansion, table = expanded(load, registry, good.replace(DARN, "DARN: {" + GAMMA) + SELECT)
    tried = settings(table)["DARN"]
    mine = [cell for cell in expansion.plan.cells if (cell.method, cell.target, cell.seed) == ("DARN", "dvd", 1)]
    assert [cell.candidate for cell in mine] == [0, 1, 2, 3]
    for planned, wanted in zip(mine, tried, strict=True):
        cell = expansion.cells[planned.key]
        assert (cell.target, cell.seed) == ("dvd", 1)
        assert cell.training.identity()["optimizer_params"] == {
            "lr": wanted["training.optimizer.adadelta.lr"],
            "rho": 0.9,
            "eps": 1e-6,
        }
        assert cell.mu == wanted["mu"]
        assert cell.aggregator.params == {"gamma": wanted["aggregator.sharpmax.gamma"]}


def test_candidates_with_equal_settings_share_a_cell(load, registry, good):
    plain = expand(load(good), registry)
    found, _ = expanded(load, registry, good + GRID)
    assert set(plain.cells) <= set(found.cells)  # lr 1.0 and mu 0.01 are in the grid


def test_the_selection_criterion_is_not_part_of_the_key(load, registry, good):
    one, _ = expanded(load, registry, good + SELECT + f"  {LEFT_OUT}: true\n")
    others = [
        expanded(load, registry, good + SELECT.replace("by: source_accuracy", by) + f"  {LEFT_OUT}: true\n")[0]
        for by in ("by: oracle", f"by: {LEFT_OUT}")
    ]
    for other in others:
        assert list(other.cells) == list(one.cells)
        assert other.plan != one.plan


def test_each_source_in_turn_is_left_out_and_then_the_target(load, registry, good):
    expansion, table = expanded(load, registry, good + SELECT.replace("by: source_accuracy", f"by: {LEFT_OUT}"))
    assert table.criteria == ("source_accuracy", LEFT_OUT, "oracle")
    mine = [
        cell
        for cell in expansion.plan.cells
        if (cell.method, cell.target, cell.seed, cell.candidate) == ("DARN", "books", 0, 2)
    ]
    assert [cell.left_out for cell in mine] == [None, "dvd", "electronics", "kitchen"]
    whole, *left = [expansion.cells[cell.key] for cell in mine]
    assert [(cell.target, cell.sources) for cell in left] == [
        ("dvd", ("electronics", "kitchen")),
        ("electronics", ("dvd", "kitchen")),
        ("kitchen", ("dvd", "electronics")),
    ]
    assert all(replace(cell, target="books", sources=whole.sources) == whole for cell in left)
    assert not any(cell.left_out for cell in expansion.plan.cells if cell.method == "TAR")


def test_rows_and_notes_name_the_selection_criterion(load, registry, good):
    _, table = expanded(load, registry, good.replace(DARN, "DARN: {" + GAMMA) + SELECT)
    recipes = {method.name: method.recipe for method in table.methods}
    assert recipes == {
        "SRC": "pooled, best of 2 (lr) by source_accuracy",
        "TAR": "target_only, best of 2 (lr) by oracle",
        "DANN": "pooled + d_A, mu *, best of 4 (lr, mu) by source_accuracy",
        "MDMN": "mdmn, mu *, best of 4 (lr, mu) by source_accuracy",
        "DARN": "adapt + d_A + sharpmax(gamma=*), mu *, best of 4 (lr, mu, gamma) by source_accuracy",
    }
    oracle = "by oracle, the score on the target's own test labels, which are not available in practice"
    assert table.notes == (
        "Two seeds only.",
        EQUAL_STEPS,
        PROTOCOLS["held_out"],
        (
            "Settings selected by source_accuracy, without target labels, for each target and seed, "
            "among 4 candidates drawn at random."
        ),
        "Fewer candidates than 4, since the search space has no more: SRC 2, TAR 2.",
        f"Trained with the target's labels, and so selected {oracle}: TAR.",
    )
    _, table = expanded(load, registry, good + GRID.replace("by: source_accuracy", "by: oracle"))
    assert table.notes[3] == f"Settings selected {oracle}, for each target and seed, among 4 candidates of a grid."
    assert all(method.recipe.endswith("by oracle") for method in table.methods)


def test_candidates_count_towards_the_limit(load, registry, good):
    text = good.replace("seeds: 2", "seeds: 2000") + SELECT.replace("source_accuracy", LEFT_OUT)
    # 2 + 3 * 4 candidates with 3 sources left out of each of 2 targets, and 2 of TAR without
    with pytest.raises(SuiteError, match=f"asks for {2000 * (14 * 8 + 2 * 2)} cells; at most 100000"):
        expand(load(text), registry)


def test_a_grid_larger_than_the_budget_is_refused(mistakes, good):
    text = good.replace(DARN, "DARN: {" + GAMMA) + GRID
    what = "is 4, but the grid of DARN has 8 candidates; list fewer values or raise it"
    assert mistakes(text) == [f"19:11: select.budget: {what}"]


def test_a_search_without_select_is_refused(mistakes, good):
    what = "searches nothing without select in the suite"
    assert mistakes(good.replace(DARN, "DARN: {" + GAMMA)) == [f"13:10: methods.DARN.search: {what}"]


def test_leaving_out_one_of_too_few_sources_is_refused(mistakes, load, good):
    text = good.replace("seeds:", "sources: [kitchen, dvd, electronics]\nseeds:")
    text = text.replace("targets: [books, dvd]", "targets: [dvd]") + SELECT.replace("source_accuracy", LEFT_OUT)
    assert mistakes(text) == ["21:7: select.by: target 'dvd' has 2 sources; to leave one out takes 3"]
    pooled = "".join(line for line in text.splitlines(keepends=True) if "MDMN" not in line and "DARN" not in line)
    load(pooled)


@pytest.mark.parametrize("name", ["oracle", "leave_one_source_out", "chance"])
def test_a_validator_with_a_reserved_name_is_refused(registry, good, tmp_path, name):
    validator = type(name, (registry.entry("validator", "source_risk").cls,), {"name": name})
    more = Registry([*registry.entries, Entry("validator", validator, "toys", "1.0")])
    path = tmp_path / "s.yaml"
    path.write_text(good.replace("[source_accuracy]", f"[{name}, source_accuracy]") + SELECT)
    with pytest.raises(SuiteError) as caught:
        load_suite(path, more)
    what = f"{name} has another meaning in select; it cannot be a validator's name"
    assert caught.value.lines == (f"{path}:14:14: validators[0]: {what}",)
