"""Our runs compared with a published table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t, ttest_ind_from_stats

from msda_bench.errors import BenchError
from msda_bench.results.frame import load_results
from msda_bench.results.serialize import csv_text, json_text
from msda_bench.results.standardised import FAR, standardised
from msda_bench.results.tables import render
from msda_bench.results.verify import COLUMNS, Verification, verifications, verify
from msda_bench.results.verify_text import (
    unverified,
    verdict,
    verify_json,
    verify_notes,
    verify_problems,
    verify_tables,
)
from msda_bench.suite.published.table import Citation, PublishedCell, PublishedRow, PublishedTable

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
BASE = [100, 104, 108, 112, 116, 120]  # of 200: 50 to 60 percent, mean 55
Held = Callable[..., Verification]


def points(more: int, spread: tuple[int, ...] = (0, 0, 0, 0, 0, 0)) -> list[int]:
    """A method that is `more` / 2 points better than the base in each run, apart from `spread`."""
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
    citation = Citation(("A. Author",), "A paper of two tables", "Proceedings 2020", "https://example.org/1")
    return PublishedTable("mine", citation, "Table 1", "toy", "accuracy_percent", 20, tuple(lines))


@pytest.fixture
def held(table) -> Held:
    """`held(ours, theirs)`: compares {method: {target: runs}} with a table."""

    def run(ours, theirs: PublishedTable, **options: object) -> Verification:
        (found,) = verifications(table(ours, published=theirs, **options))
        return found

    return run


def test_the_committed_file_is_equal_byte_for_byte() -> None:
    folder = ROOT / "results" / "paper-amazon"
    runs = load_results(folder)
    assert csv_text(verify(runs)) == (folder / "verify.csv").read_bytes().decode()
    assert verify(runs, "darn-2020-amazon").equals(verify(runs))


def test_each_cell_in_the_tables_order(held: Held) -> None:
    ours = {"b": {"y": points(2), "x": points(4)}, "a": {"y": points(0), "x": points(0)}}
    found = held(ours, published({"a": [55.0, 54.0], "b": [57.5, 56.0]}))
    cells = found.cells
    assert tuple(cells) == COLUMNS
    places = list(zip(cells["target"], cells["method"], strict=True))
    assert places == [(target, method) for target in ("x", "y", "average") for method in "ab"]
    assert cells["difference"].round(9).tolist() == [0, -0.5, 1, 0, 0.5, -0.25]
    error = math.sqrt(sum((value / 2 - 55) ** 2 for value in BASE) / 30)
    assert cells["standardised_difference"][2] == pytest.approx(1 / math.hypot(error, 0.5))
    assert 4 * 0.0455 < found.expected_far < 4 * 0.12
    assert (found.status, found.of_targets["within_2_se"].all()) == ("agrees", True)


numbers = st.lists(st.integers(0, 1000), min_size=2, max_size=30)


@settings(deadline=None)
@given(numbers, st.floats(0, 1000), st.floats(0.01, 100), st.integers(2, 50))
def test_the_standardised_difference_equals_welchs_t(values: list[int], mean: float, error: float, runs: int) -> None:
    ours = pd.Series(values, dtype=float)
    columns = ([ours.mean() - mean], [len(ours)], [ours.sem()], [error])
    found = standardised(*map(pd.Series, columns), runs)
    deviations = (ours.std(), error * math.sqrt(runs))
    oracle = ttest_ind_from_stats(ours.mean(), deviations[0], len(ours), mean, deviations[1], runs, equal_var=False)
    z, df = found["standardised_difference"][0], found["degrees_of_freedom"][0]
    assert z == pytest.approx(oracle.statistic, abs=1e-9)
    assert 2 * t.sf(abs(z), df) == pytest.approx(oracle.pvalue, abs=1e-9)
    assert found["within_2_se"][0] == (abs(z) <= FAR)


def test_one_run_is_compared_with_the_spread_of_the_published_runs(held: Held) -> None:
    found = held({"a": {"x": [118, None], "y": [110, None]}}, published({"a": [55.0, 55.0]}))
    first = found.cells.iloc[0]
    assert first["standardised_difference"] == pytest.approx(4 / (0.5 * math.sqrt(21)))  # sd 0.5 sqrt(20), and 0.5
    assert (first["degrees_of_freedom"], first["n_ok"], first["n_planned"]) == (19, 1, 2)
    assert "standard deviation where n is 1" in " ".join(verify_notes(found))


def test_agreement_with_published_numbers(held: Held) -> None:
    found = held(
        {"a": {"x": points(0), "y": points(0)}, "b": {"x": points(4), "y": points(4)}},
        published({"a": [55.5, 55.5], "b": [57.0, 57.0]}, {0: "b", 1: "b", 2: "b"}),
    )
    assert (found.status, [bold.agree for bold in found.bold]) == ("agrees", [True, True, True])
    assert (found.order("published_mean"), found.order("mean"), len(found.pairs)) == (["b", "a"], ["b", "a"], 1)
    assert found.inversions.empty


def test_an_average_just_over_the_tolerance_differs(held: Held) -> None:
    ours = {"a": {"x": points(0), "y": points(0)}}
    assert [held(ours, published({"a": [x, x]})).status for x in (54.5, 55.5, 55.51)] == ["agrees", "agrees", "differs"]
    # Single targets may be far off if their average is not: this is shown but not judged.
    far = held(ours, published({"a": [50.0, 60.0]}))
    assert (far.status, far.of_targets["within_2_se"].any()) == ("agrees", False)


def test_the_table_decides_which_methods_are_references(held: Held) -> None:
    ours = {"a": {"x": points(0), "y": points(0)}, "refb": {"x": points(4), "y": points(4)}}
    theirs = published({"a": [55.0, 55.0], "refb": [57.6, 57.6]}, {2: "refb"})
    found = held(ours, theirs)
    assert (found.status, found.order("mean"), len(found.pairs)) == ("differs", ["a"], 0)
    found = held(ours, replace(theirs, rows=tuple(replace(row, reference=False) for row in theirs.rows)))
    assert (len(found.pairs), found.bold[0].ours) == (1, ("refb",))


def test_bold_sets_that_differ_do_not_decide(held: Held) -> None:
    noise = (4, -4, 4, -4, 4, -4)
    found = held(
        {"a": {"x": points(0), "y": points(0)}, "b": {"x": points(0, noise), "y": points(4)}},
        published({"a": [55.0, 55.0], "b": [55.1, 57.0]}, {0: "b", 1: "ab"}),
    )
    assert [tuple(bold) for bold in found.bold] == [("x", ("b",), ("a", "b")), ("y", ("a", "b"), ("b",))]
    assert (found.status, [bold.agree for bold in found.bold]) == ("agrees", [False, False])


def test_few_seeds_give_no_bold_set(held: Held) -> None:
    ours = {"a": {"x": [100, 101], "y": [100, 102]}, "b": {"x": [110, 111], "y": [110, 112]}}
    found = held(ours, published({"a": [50.0, 50.0], "b": [55.0, 55.0]}, {0: "b"}))
    assert [(bold.ours, bold.agree) for bold in found.bold] == [(None, None)]


def test_an_inversion_within_noise_agrees(held: Held) -> None:
    noise = (8, -8, 8, -8, 8, -6)  # a mean of 1/6 point better
    found = held(
        {"a": {"x": points(0), "y": points(0)}, "b": {"x": points(0, noise), "y": points(0, noise)}},
        published({"a": [55.2, 55.2], "b": [55.0, 55.0]}),
    )
    (turned,) = found.inversions.to_dict("records")
    assert (turned["first"], turned["second"]) == ("a", "b")
    assert (turned["published"], turned["ours"]) == (pytest.approx(0.2), pytest.approx(-1 / 6))
    own = sum((value / 2 - 1 / 6) ** 2 for value in noise) / 30
    assert turned["standardised_difference"] == pytest.approx((-1 / 6 - 0.2) / math.sqrt(own + 2 * 0.25))
    assert (turned["within_2_se"], found.status) == (True, "agrees")
    assert "order of methods agrees in 0 of 1 pairs (1 turned within noise)" in verdict(found)


def test_an_inversion_beyond_noise_differs_though_the_averages_are_within(held: Held) -> None:
    found = held(
        {"a": {"x": points(0), "y": points(0)}, "b": {"x": points(1), "y": points(1)}},
        published({"a": [55.4, 55.4], "b": [55.1, 55.1]}, error=0.01),
    )
    assert found.averages["within"].all()
    assert (found.inversions["within_2_se"].tolist(), found.status) == ([False], "differs")


def test_equal_published_means_have_no_order(held: Held) -> None:
    ours = {"a": {"x": points(0), "y": points(0)}, "b": {"x": points(0), "y": points(0)}}
    assert held(ours, published({"a": [55.0, 55.0], "b": [55.0, 55.0]})).pairs.empty


def test_a_run_that_is_not_ok_makes_it_incomplete(held: Held) -> None:
    a, b = points(0), points(4)
    ours = {"a": {"x": [*a[:5], "failed: no"], "y": a}, "b": {"x": b, "y": [*b[:5], None]}}
    found = held(ours, published({"a": [55.0, 55.0], "b": [57.0, 57.0]}))
    assert (found.status, found.n_not_ok, len(found.pairs)) == ("incomplete", 2, 1)
    assert found.cells["n_ok"].tolist() == [5, 6, 6, 5, 5, 5]
    assert "incomplete (2 of 24 runs are not ok): averages" in verdict(found)


def test_parts_of_only_one_folder_are_named(held: Held) -> None:
    ours = {name: {target: points(more) for target in "xyz"} for name, more in (("a", 0), ("b", 4), ("new", 60))}
    found = held(ours, published({"a": [55.0, 55.0], "b": [57.0, 57.0], "old": [50.0, 50.0]}, {0: "b"}))
    assert found.extra == {"methods": ["new"], "targets": ["z"]}
    assert (found.absent, found.status) == ({"methods": ["old"], "targets": []}, "incomplete")
    averages = found.averages.set_index("method")
    assert averages.loc["a", "mean"] == 55  # only over the targets of the table
    assert averages.loc["old", ["mean", "difference", "bold_paper", "within_2_se"]].isna().all()
    assert found.bold[0].ours is None  # the best method is unknown unless all have runs
    assert found.n_not_ok == 0
    found = held(ours, published({"a": [55.0, 55.0], "b": [57.0, 57.0]}, {0: "b"}))
    assert (found.bold[0].agree, found.status) == (True, "agrees")  # an extra method does not change the bold set


def test_without_a_published_target_averages_are_not_compared(held: Held) -> None:
    ours = {"a": {"x": points(0)}, "b": {"x": points(1)}}
    found = held(ours, published({"a": [55.0, 40.0], "b": [54.0, 41.0]}))
    assert (found.absent["targets"], found.status, len(found.pairs)) == (["y"], "incomplete", 0)
    assert found.averages["difference"].isna().all()
    assert found.of_targets["difference"].notna().sum() == 2
    assert "order of methods cannot be compared" in verdict(found)
    assert "incomplete (not in the suite: target y): averages" in verdict(found)


def test_folders_without_common_methods_are_reported(held: Held) -> None:
    found = held({"A": {"X": points(0)}}, published({"a": [55.0, 40.0]}, {0: "a"}))
    assert (found.status, found.n_not_ok, found.cells["mean"].notna().any()) == ("incomplete", 0, False)
    assert "0 of 2 cells within 2 standard errors; too few runs to compare bold sets" in verdict(found)
    assert verify_notes(found)


def test_an_unverifiable_folder_is_one_line(held: Held, table) -> None:
    theirs = published({"a": [55.0, 55.0]})
    with pytest.raises(BenchError, match="table: table mine is of accuracy_percent, the runs are of mse"):
        held({"a": {"x": [0.5, 0.4], "y": [0.1, 0.2]}}, theirs, task="regression")
    with pytest.raises(BenchError, match="these runs: its suite names no published table; give one with --table"):
        verify(table({"a": {"x": points(0)}}))
    with pytest.raises(BenchError, match="these runs: has no results on amazon, the subject of table darn-2020-amazon"):
        verify(table({"a": {"x": points(0)}}), "darn-2020-amazon")


def test_a_table_without_bold_marks_can_be_verified(held: Held) -> None:
    assert "; the table has no bold; " in verdict(held({"a": {"x": [1], "y": [1]}}, published({"a": [50.0, 50.0]})))


@pytest.fixture
def much_missing(held: Held) -> Verification:
    """Different bold sets and methods, missing and diverged runs, and names with terminal control sequences."""
    level = {"SRC": 158, "DANN": 159, "DARN": 163, "NEW": 195, "ref": 170}

    def run(name: str, target: str, seed: int) -> int | str | None:
        if (name, target, seed) == ("SRC", "x", 2):
            return "diverged: loss is \x1b[31mnan\nin epoch 3"
        if name == "DANN" and seed > 0:
            return None
        return level[name] + (7 * seed + 3 * len(name) + (target == "y")) % 4 + (target == "y")

    targets = ("x", "y", "z\x1b[31m")
    ours = {name: {target: [run(name, target, seed) for seed in range(8)] for target in targets} for name in level}
    means = {"SRC": [79.8, 80.5], "DANN": [79.0, 80.4], "DARN": [81.6, 81.3], "ref": [86.0, 84.0], "OLD": [70.0, 71.0]}
    theirs = published(means, {0: "DARN", 1: "SRC DARN", 2: "DARN"}, 0.3)
    return held(ours, theirs, notes=("Toy \x1b]0;own\x07data.",))


def shown(found: Verification) -> str:
    tables = "".join(f"{table.title}\n\n{render(table)}\n\n" for table in verify_tables(found))
    notes = "\n".join([*verify_notes(found), *verify_problems(found)])
    return f"{tables}{notes}\nverdict: {verdict(found)}\n"


@pytest.mark.parametrize("name", ["verify.txt", "verify.csv", "verify.json"])
def test_output_matches_the_golden_files(much_missing: Verification, name: str) -> None:
    found = much_missing
    document = verify_json(found.runs, [found])
    document["experiments"][0]["rows"] = "those of verify.csv"
    texts = {"verify.txt": shown, "verify.csv": lambda found: csv_text(found.cells)}
    text = texts[name](found) if name in texts else json_text(document) + "\n"
    path = GOLDEN / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        pytest.fail(f"{path} was missing and is written now: read it, and keep it if it is right")
    assert text == path.read_bytes().decode()


def test_json_has_the_rows_of_the_frame(much_missing: Verification) -> None:
    (experiment,) = json.loads(json_text(verify_json(much_missing.runs, [much_missing])))["experiments"]
    assert csv_text(pd.DataFrame(experiment["rows"])[["mean", "method"]]) == csv_text(
        much_missing.cells[["mean", "method"]]
    )
    assert all(tuple(row) == COLUMNS for row in experiment["rows"])
    assert experiment["verdict"] == verdict(much_missing)
    assert unverified(much_missing.runs, []) == ["table"]
