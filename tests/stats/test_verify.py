from __future__ import annotations

import math
from dataclasses import replace

import pytest

from msda_bench.errors import BenchError
from msda_bench.stats.verify import verify
from msda_bench.suite.published.table import Citation, PublishedCell, PublishedRow, PublishedTable

BASE = [100, 104, 108, 112, 116, 120]  # of 200: 50 to 60 percent, mean 55


def runs(more: int, spread: tuple[int, ...] = (0, 0, 0, 0, 0, 0)) -> list[int]:
    """A method that is `more` / 2 points better than the base in each run, but for `spread`."""
    return [value + more + extra for value, extra in zip(BASE, spread, strict=True)]


def published(rows: dict[str, list[float]], bold: dict[int, str] | None = None, error: float = 0.5) -> PublishedTable:
    """Rows of means at targets x and y; their average follows. Bold: letters of methods by column index."""
    lines = []
    for name, means in rows.items():
        values = [*means, sum(means) / len(means)]
        cells = [
            PublishedCell(column, mean, error, name in (bold or {}).get(index, ""))
            for index, (column, mean) in enumerate(zip(("x", "y", None), values, strict=True))
        ]
        lines.append(PublishedRow(name, name.startswith("ref"), tuple(cells)))
    citation = Citation(("A",), "T", "V", "U")
    return PublishedTable("mine", citation, "Table 1", "toy", "accuracy_percent", 20, tuple(lines))


@pytest.fixture
def held(table):
    """`held(ours, theirs)`: {method: {target: runs}} beside a table."""

    def run(ours, theirs, **more):
        made = table(ours, **more)
        plan = replace(made.plan, experiments=(replace(made.plan.experiments[0], published=theirs),))
        (found,) = verify(plan, made.records)
        return found

    return run


def test_each_cell_in_the_tables_order(held):
    ours = {"b": {"y": runs(2), "x": runs(4)}, "a": {"y": runs(0), "x": runs(0)}}
    found = held(ours, published({"a": [55.0, 54.0], "b": [57.5, 56.0]}))
    cells = {(cell.method, cell.published.column): cell for cell in found.cells}
    assert list(cells) == [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("a", None), ("b", None)]
    assert [round(cell.gap.difference, 9) for cell in found.cells] == [0, -0.5, 1, 0, 0.5, -0.25]
    error = math.sqrt(sum((value / 2 - 55) ** 2 for value in BASE) / 30)
    assert cells["a", "y"].gap.z == pytest.approx(1 / math.hypot(error, 0.5))
    assert (len(found.of_targets), len(found.averages), len(found.gaps), found.n_near) == (4, 2, 4, 4)
    assert 4 * 0.0455 < found.expected_far < 4 * 0.12


def test_what_agrees(held):
    found = held(
        {"a": {"x": runs(0), "y": runs(0)}, "b": {"x": runs(4), "y": runs(4)}},
        published({"a": [55.5, 55.5], "b": [57.0, 57.0]}, {0: "b", 1: "b", 2: "b"}),
    )
    assert found.status == "agrees"
    assert [sets.agree for sets in found.bold] == [True, True, True]
    assert (found.order.published, found.order.ours, found.order.pairs) == (("b", "a"), ("b", "a"), 1)
    assert found.order.inversions == ()
    assert all(cell.is_within for cell in found.averages)


def test_an_average_just_over_the_tolerance_differs(held):
    ours = {"a": {"x": runs(0), "y": runs(0)}}
    assert held(ours, published({"a": [55.5, 55.5]})).status == "agrees"
    assert held(ours, published({"a": [54.5, 54.5]})).status == "agrees"
    assert held(ours, published({"a": [55.51, 55.51]})).status == "differs"
    # Targets may be far off where their average is not: that is told and not judged.
    told = held(ours, published({"a": [50.0, 60.0]}))
    assert (told.status, told.n_near) == ("agrees", 0)


def test_a_reference_is_held_to_its_average_and_not_ranked(held):
    ours = {"a": {"x": runs(0), "y": runs(0)}, "ref": {"x": runs(0), "y": runs(0)}}
    found = held(ours, published({"a": [55.0, 55.0], "ref": [56.0, 56.0]}))
    assert (found.status, found.order.published, found.order.pairs) == ("differs", ("a",), 0)


def test_which_methods_are_references_is_the_tables_word(held):
    ours = {"a": {"x": runs(0), "y": runs(0)}, "refb": {"x": runs(4), "y": runs(4)}}
    theirs = published({"a": [55.0, 55.0], "refb": [57.0, 57.0]}, {2: "refb"})
    rows = tuple(replace(row, reference=False) for row in theirs.rows)
    found = held(ours, replace(theirs, rows=rows))
    assert (found.order.pairs, found.bold[0].ours) == (1, ("refb",))


def test_bold_sets_that_differ_do_not_decide(held):
    noise = (4, -4, 4, -4, 4, -4)
    found = held(
        {"a": {"x": runs(0), "y": runs(0)}, "b": {"x": runs(0, noise), "y": runs(4)}},
        published({"a": [55.0, 55.0], "b": [55.1, 57.0]}, {0: "b", 1: "ab"}),
    )
    assert [(sets.column, sets.ours, sets.agree) for sets in found.bold] == [
        ("x", ("a", "b"), False),
        ("y", ("b",), False),
    ]
    assert found.status == "agrees"


def test_few_seeds_tell_no_bold(held):
    ours = {"a": {"x": [100, 101], "y": [100, 102]}, "b": {"x": [110, 111], "y": [110, 112]}}
    found = held(ours, published({"a": [50.0, 50.0], "b": [55.0, 55.0]}, {0: "b"}))
    assert [(sets.ours, sets.agree) for sets in found.bold] == [(None, None)]


def test_an_inversion_within_noise(held):
    noise = (8, -8, 8, -8, 8, -6)  # a mean of 1/6 point better
    found = held(
        {"a": {"x": runs(0), "y": runs(0)}, "b": {"x": runs(0, noise), "y": runs(0, noise)}},
        published({"a": [55.2, 55.2], "b": [55.0, 55.0]}),
    )
    (turned,) = found.order.inversions
    assert (turned.first, turned.second) == ("a", "b")
    assert turned.published == pytest.approx(0.2)
    assert turned.ours == pytest.approx(-1 / 6)
    differences = [-value / 2 for value in noise]
    own = sum((value + 1 / 6) ** 2 for value in differences) / 30
    assert turned.gap.z == pytest.approx((-1 / 6 - 0.2) / math.sqrt(own + 2 * 0.25))
    assert (found.order.contradictions, found.status) == ((), "agrees")


def test_an_inversion_beyond_noise_differs_though_the_averages_are_within(held):
    found = held(
        {"a": {"x": runs(0), "y": runs(0)}, "b": {"x": runs(1), "y": runs(1)}},
        published({"a": [55.4, 55.4], "b": [55.1, 55.1]}, error=0.01),
    )
    assert all(cell.is_within for cell in found.averages)
    assert [(turned.first, turned.second) for turned in found.order.contradictions] == [("a", "b")]
    assert found.status == "differs"


def test_equal_published_means_are_in_no_order(held):
    ours = {"a": {"x": runs(0), "y": runs(0)}, "b": {"x": runs(0), "y": runs(0)}}
    assert held(ours, published({"a": [55.0, 55.0], "b": [55.0, 55.0]})).order.pairs == 0


def test_a_run_that_is_not_ok_makes_it_incomplete(held):
    ours = {"a": {"x": [*runs(0)[:5], "failed: no"], "y": runs(0)}, "b": {"x": runs(4), "y": [*runs(4)[:5], None]}}
    found = held(ours, published({"a": [55.0, 55.0], "b": [57.0, 57.0]}))
    assert (found.status, found.n_not_ok) == ("incomplete", 2)
    assert [cell.entry.summary.n for cell in found.cells] == [5, 6, 6, 5, 5, 5]
    assert found.order.pairs == 1


def test_what_only_one_side_has_is_told(held):
    ours = {
        "a": {"x": runs(0), "y": runs(0), "z": runs(50)},
        "new": {"x": runs(60), "y": runs(60), "z": runs(60)},
    }
    found = held(ours, published({"a": [55.0, 55.0], "old": [50.0, 50.0]}, {0: "a"}))
    assert (found.extra_methods, found.extra_targets) == (("new",), ("z",))
    assert (found.absent_methods, found.absent_targets, found.status) == (("old",), (), "incomplete")
    averages = {cell.method: cell for cell in found.averages}
    assert averages["a"].entry.summary.mean == 55  # over the targets of the table alone
    assert averages["old"].entry is None
    assert averages["old"].gap is None
    assert found.bold[0].ours is None  # one cannot tell which is best without all of them
    assert found.n_not_ok == 0


def test_an_extra_method_takes_no_bold_from_the_others(held):
    ours = {name: {"x": runs(more), "y": runs(more)} for name, more in (("a", 0), ("b", 4), ("new", 60))}
    found = held(ours, published({"a": [55.0, 55.0], "b": [57.0, 57.0]}, {0: "b"}))
    assert (found.bold[0].agree, found.status) == (True, "agrees")


def test_without_a_published_target_averages_are_not_compared(held):
    found = held({"a": {"x": runs(0)}, "b": {"x": runs(1)}}, published({"a": [55.0, 40.0], "b": [54.0, 41.0]}))
    assert (found.absent_targets, found.status) == (("y",), "incomplete")
    assert [cell.gap for cell in found.averages] == [None, None]
    assert found.order.pairs == 0
    assert len(found.gaps) == 2


def test_nothing_in_common(held):
    found = held({"A": {"X": runs(0)}}, published({"a": [55.0, 40.0]}, {0: "a"}))
    assert (found.status, found.gaps, found.n_not_ok) == ("incomplete", (), 0)


def test_squared_errors_are_not_held_to_percentages(held):
    with pytest.raises(BenchError, match="table: table mine is of accuracy_percent, the runs are of mse"):
        held({"a": {"x": [0.5, 0.4], "y": [0.1, 0.2]}}, published({"a": [55.0, 55.0]}), task="regression")


def test_an_experiment_without_a_table_is_passed_over(table):
    made = table({"a": {"x": runs(0)}})
    assert verify(made.plan, made.records) == ()
