"""From `split_sources` and `labelled_target` in a suite to cells, and every mistake in them."""

from __future__ import annotations

import pytest

from msda_bench.suite.expand import EQUAL_STEPS, PROTOCOLS, expand
from msda_bench.suite.mistakes import PLAIN_WORDS
from msda_bench.suite.protocol import Splitting

DARN, MDMN, TAR = "DARN: {discrepancy", "MDMN: {scheme", "TAR: {scheme: target_only"
SPLIT, LABELS = "split_sources: {clusters: 4}\n", "labelled_target: 50\n"


def cells_of(load, registry, text):
    """One cell of each method, and the table with their rows."""
    expansion = expand(load(text), registry)
    cells = {planned.method: expansion.cells[planned.key] for planned in expansion.plan.cells}
    return cells, expansion.plan.experiments[0]


def test_sources_are_split_only_for_methods_that_separate_them(load, registry, good):
    cells, table = cells_of(load, registry, good + SPLIT)
    whole, _ = cells_of(load, registry, good)
    assert {name for name, cell in cells.items() if cell.split_sources} == {"MDMN", "DARN"}
    assert cells["DARN"].split_sources == Splitting(clusters=4)
    assert {name for name in cells if cells[name].key == whole[name].key} == {"SRC", "DANN", "TAR"}
    assert table.methods[3].recipe == "mdmn, mu 0.01, sources in 4 clusters"
    assert table.methods[0].recipe == "pooled"


def test_a_methods_option_overrides_its_suites(load, registry, good):
    text = good.replace(DARN, "Fine: {split_sources: {clusters: 8, by: chance}}\n  " + DARN)
    text = text.replace(MDMN, "MDMN: {split_sources: {clusters: 1}, scheme")
    cells, _ = cells_of(load, registry, text + SPLIT)
    splits = {name: cells[name].split_sources for name in ("Fine", "MDMN", "DARN")}
    assert splits == {"Fine": Splitting(clusters=8, by="chance"), "MDMN": None, "DARN": Splitting(clusters=4)}


def test_one_cluster_does_not_split_a_source(load, registry, good):
    one, _ = cells_of(load, registry, f"{good}split_sources: {{clusters: 1}}\nlabelled_target: 0\n")
    none, _ = cells_of(load, registry, good)
    assert {name: cell.key for name, cell in one.items()} == {name: cell.key for name, cell in none.items()}


def test_all_methods_but_the_oracle_get_target_labels_and_report_them(load, registry, good):
    cells, table = cells_of(load, registry, good + LABELS)
    labels = {name: cell.labelled_target for name, cell in cells.items()}
    assert labels == {"SRC": 50, "TAR": 0, "DANN": 50, "MDMN": 50, "DARN": 50}
    reported = "Trained with 50 labelled examples of the target: SRC, DANN, MDMN, DARN."
    assert table.notes == ("Two seeds only.", EQUAL_STEPS, PROTOCOLS["held_out"], reported)
    assert table.methods[0].recipe == "pooled, 50 target labels"


def test_a_method_with_more_labels_is_a_reference(load, registry, good, mistakes):
    text = good.replace(DARN, "More: {labelled_target: 9}\n  " + DARN)
    what = "is 9, but methods ranked with it see 0 target labels; add reference: true"
    assert mistakes(text) == [f"13:27: methods.More.labelled_target: {what}"]
    cells, table = cells_of(load, registry, text.replace("target: 9", "target: 9, reference: true"))
    assert (cells["More"].labelled_target, cells["DARN"].labelled_target) == (9, 0)
    assert table.notes[-1] == "Trained with 9 labelled examples of the target: More."
    fewer = text.replace("target: 9", "target: 0") + LABELS
    what = "is 0, but methods ranked with it see 50 target labels; add reference: true"
    assert mistakes(fewer) == [f"13:27: methods.More.labelled_target: {what}"]


def test_a_domain_named_like_a_part_is_refused(mistakes, good, load, monkeypatch):
    dataset = type(load(good).experiments[0].dataset.component)
    monkeypatch.setattr(dataset, "domains", ("books", "dvd", "kitchen", "dvd/3", "kitchen/labelled"))
    what = "which would also be the name of a part of another"
    assert mistakes(good + SPLIT + LABELS) == [
        f"3:10: dataset: has a domain 'dvd/3', {what}",
        f"3:10: dataset: has a domain 'kitchen/labelled', {what}",
    ]
    load(good)


@pytest.mark.parametrize("option", [SPLIT, LABELS])
def test_one_source_is_enough_where_it_becomes_several(load, good, option):
    assert load(good.replace("seeds:", "sources: [kitchen]\nseeds:") + option)


LEAVE_OUT = "leave_out_sources: true\n"


def test_sources_are_left_out_one_after_another(load, registry, good):
    """Of four domains, books and dvd are targets, so each of them is a source only of the other."""
    expansion = expand(load(good + LEAVE_OUT), registry)
    found = {
        (planned.experiment, planned.target): expansion.cells[planned.key].sources
        for planned in expansion.plan.cells
        if planned.method == "DARN"
    }
    assert found == {
        ("good", "books"): ("dvd", "electronics", "kitchen"),
        ("good", "dvd"): ("books", "electronics", "kitchen"),
        ("good-without-books", "dvd"): ("electronics", "kitchen"),
        ("good-without-dvd", "books"): ("electronics", "kitchen"),
        ("good-without-electronics", "books"): ("dvd", "kitchen"),
        ("good-without-electronics", "dvd"): ("books", "kitchen"),
        ("good-without-kitchen", "books"): ("dvd", "electronics"),
        ("good-without-kitchen", "dvd"): ("books", "electronics"),
    }
    alone = expand(load(good), registry)
    assert [cell.key for cell in expansion.plan.cells if cell.experiment == "good"] == list(alone.cells)


def test_leaving_sources_out_has_requirements(good, mistakes):
    two = good.replace("targets: [books, dvd]", "targets: [books]\nsources: [dvd, kitchen]") + LEAVE_OUT
    assert mistakes(two) == ["18:20: leave_out_sources: target 'books' has 2 sources; to leave one out takes 3"]
    long = good.replace("name: good", f"name: {'g' * 50}") + LEAVE_OUT
    assert {line.split("; ")[1] for line in mistakes(long)} == {f"it may be {PLAIN_WORDS}"}
    select = "select: {how: grid, budget: 1, by: oracle, space: {training.epochs: [1]}}\n"
    what = "cannot stand beside select, which would choose other settings without each source"
    assert mistakes(good + LEAVE_OUT + select) == [f"17:1: leave_out_sources: {what}"]
