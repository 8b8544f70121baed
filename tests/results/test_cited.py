"""Our runs compared with numbers from several publications."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd
import pytest

from msda_bench.cli.main import main
from msda_bench.errors import BenchError
from msda_bench.results.cited import CITED_COLUMNS, Cited
from msda_bench.results.serialize import csv_text, json_text
from msda_bench.results.tables import render
from msda_bench.results.verify import verifications, verify
from msda_bench.results.verify_text import verdict, verify_json, verify_notes, verify_problems, verify_tables
from msda_bench.store import Store
from msda_bench.suite.published.numbers import PublishedNumber, PublishedNumbers
from tests.results.conftest import planned

BASE = [100, 104, 108, 112, 116, 120]  # of 200: 50 to 60 percent, mean 55, standard error 1.53
OURS = {name: {target: [value + more for value in BASE] for target in "xy"} for name, more in (("SRC", 0), ("DARN", 6))}
SOURCES = {
    "old": ("A. Author, Old Paper 2020", "Table 1", "ResNet-18", "all of the target", "high"),
    "new": ("B. Author, New Paper 2023", "Table 4", "ResNet-18", "all of the target", "medium: copied, not rerun"),
    "dg": ("C. Author, Other Task", "by dataset", "ResNet-50", "no target data\x1b[31m", "high"),
}
Held = Callable[..., Cited]


def numbers(source: str, method: str, means: dict[str, float], *spread: object) -> list[PublishedNumber]:
    origin, where, backbone, protocol, certainty = SOURCES[source]
    more = spread or (None, None, None)
    return [
        PublishedNumber(backbone, protocol, method, target, mean, *more, origin, where, certainty)  # type: ignore[arg-type]
        for target, mean in means.items()
    ]


def table(*parts: list[PublishedNumber], backbones: tuple[str, ...] = ("ResNet-18",)) -> PublishedNumbers:
    found = tuple(one for part in parts for one in part)
    return PublishedNumbers("mine", found, backbones, ("all of the target",), {"SRC": ("source-only", "ERM")})


@pytest.fixture
def held(table: Callable[..., pd.DataFrame]) -> Held:
    def run(theirs: PublishedNumbers, ours: object = OURS, **options: object) -> Cited:
        (found,) = verifications(table(ours, published=theirs, **options))
        assert isinstance(found, Cited)
        return found

    return run


TWO = table(
    numbers("old", "source-only", {"x": 54.8, "y": 57.0, "average": 55.9}),
    numbers("new", "source-only", {"x": 55.4, "y": 50.0, "average": 52.7}, 0.3, "standard error", 3),
    numbers("new", "DARN", {"x": 70.0, "y": 58.0, "average": 64.0}, 1.2, "standard deviation", 5),
    numbers("dg", "ERM", {"x": 90.0, "y": 90.0}, 0.5, "not said", None),
)


def test_each_source_is_a_row_and_only_comparable_ones_have_a_difference(held: Held) -> None:
    found = held(TWO)
    assert tuple(found.cells) == CITED_COLUMNS
    rows = found.cells.set_index(["target", "method", "source_table"])
    assert list(rows.index) == [
        (target, method, where)
        for target in ("x", "y", "average")
        for method, wheres in (("SRC", ("Table 1", "Table 4", "by dataset")), ("DARN", ("Table 4",)))
        for where in wheres
        if (target, where) != ("average", "by dataset")
    ]
    other = rows.loc[("x", "SRC", "by dataset")]
    assert (other["mean"], bool(other["comparable"])) == (55.0, False)
    assert other[["difference", "standardised_difference", "within_2_se"]].isna().all()
    alone, both, deviation = rows.loc[("x", "SRC", "Table 1")], rows.loc[("x", "SRC", "Table 4")], rows.iloc[3]
    own = alone["standard_error"]
    assert alone["standardised_difference"] == pytest.approx(0.2 / own)
    assert alone["degrees_of_freedom"] == pytest.approx(5)
    assert both["standardised_difference"] == pytest.approx(-0.4 / (own**2 + 0.3**2) ** 0.5)
    assert deviation["standardised_difference"] == pytest.approx(-12 / (own**2 + 1.2**2 / 5) ** 0.5)


def test_our_mean_is_within_if_it_is_between_the_published_numbers_or_near_one(held: Held) -> None:
    found = held(TWO)
    within = found.ranges.set_index(["target", "method"])["within"]
    assert within.to_dict() == {
        ("x", "SRC"): True, ("x", "DARN"): False, ("y", "SRC"): True, ("y", "DARN"): True,
        ("average", "SRC"): True, ("average", "DARN"): False,
    }  # fmt: skip
    assert found.status == "differs"
    assert list(zip(found.disagreements["target"], found.disagreements["method"], strict=True)) == [
        ("x", "SRC"), ("y", "SRC"), ("average", "SRC"),
    ]  # fmt: skip


def test_without_averages_the_targets_are_compared(held: Held) -> None:
    assert held(table(numbers("old", "source-only", {"x": 55.1, "y": 55.0}))).status == "agrees"
    assert held(table(numbers("old", "source-only", {"x": 55.1, "y": 70.0}))).status == "differs"


def test_a_mean_over_other_targets_is_skipped(held: Held) -> None:
    found = held(table(numbers("old", "DARN", {"x": 58.0, "y": 58.0, "z": 1.0, "average": 39.0})))
    assert (set(found.cells["target"]), found.status) == ({"x", "y"}, "agrees")


def test_another_network_is_never_compared(held: Held) -> None:
    found = held(table(numbers("old", "DARN", {"x": 10.0, "y": 20.0, "average": 15.0}), backbones=("ResNet-50",)))
    assert (found.status, len(found.ranges)) == ("not comparable", 0)
    assert verify_json(found.runs, [found])["agrees"] is None
    assert found.cells["difference"].isna().all()
    assert "Not comparable: another network." in verify_notes(found)[0]
    assert verdict(found) == (
        "table: not comparable: none of 3 published numbers is of the suite's network and protocol"
    )
    found = held(PublishedNumbers("mine", found.table.numbers))
    assert "Not comparable: the suite does not name comparable networks" in verify_notes(found)[0]


def test_one_run_shows_little(held: Held) -> None:
    ours = {"DARN": {"x": [110], "y": [110]}}
    theirs = table(numbers("old", "DARN", {"x": 56.0, "y": 54.0, "average": 55.2}))
    found = held(theirs, ours)
    assert found.judged["within"].isna().all()
    assert found.status == "incomplete"
    assert "DARN at average -0.20, too few runs" in verdict(found)


def test_a_run_that_is_not_ok_makes_it_incomplete(held: Held) -> None:
    ours = OURS | {"DARN": {"x": [*BASE[:5], None], "y": BASE}}
    assert held(TWO, ours).status == "incomplete"
    assert "incomplete (1 of 24 runs are not ok): " in verdict(held(TWO, ours))


def test_methods_without_a_published_number_are_skipped(held: Held) -> None:
    ours = {name: dict.fromkeys("xyz", BASE) for name in ("DARN", "NEW")}
    found = held(table(numbers("old", "DARN", {"x": 55.0, "y": 55.0})), ours)
    assert found.absent == {"methods": ["NEW"], "targets": ["z"]}
    assert verify_problems(found)[-2:] == [
        "note: methods without a published number, skipped: NEW",
        "note: targets without a published number, skipped: z",
    ]
    found = held(table(numbers("old", "OTHER", {"x": 55.0})), ours)
    assert (found.status, len(found.cells), list(verify_tables(found))) == ("not comparable", 0, [])
    json_text(verify_json(found.runs, [found]))


def test_a_chosen_table_keeps_the_suites_description_of_its_numbers(table) -> None:
    runs = table(OURS, published=TWO)
    with pytest.raises(BenchError, match="these runs: has no results on any of the targets, the subject of table pacs"):
        verify(runs, "pacs")
    (found,) = verifications(table({"SRC": {"photo": BASE}}, published=TWO), "pacs")
    assert set(found.cells["published_method"]) == {"source-only", "ERM"}
    assert found.table.backbones == ("ResNet-18",)


def shown(found: Cited) -> str:
    tables = "".join(f"{one.title}\n\n{render(one)}\n\n" for one in verify_tables(found))
    notes = "\n".join([*verify_notes(found), *verify_problems(found)])
    return f"{tables}{notes}\nverdict: {verdict(found)}\n"


@pytest.mark.parametrize("name", ["cited.txt", "cited.csv", "cited.json"])
def test_output_matches_the_golden_files(held: Held, golden, name: str) -> None:
    found = held(TWO)
    document = verify_json(found.runs, [found])
    document["experiments"][0]["rows"] = "those of verify.csv"
    texts = {"cited.txt": shown(found), "cited.csv": csv_text(found.cells), "cited.json": json_text(document) + "\n"}
    golden(name, texts[name])


def test_the_command_prints_both_sources_and_their_certainty(tmp_path, capsys) -> None:
    experiment, cells, records = planned(OURS, published=TWO)
    store = Store.create(tmp_path / "results")
    for record in records.values():
        store.publish(record)
    from msda_bench.suite.plan import Plan

    store.write_plan(Plan("suite", (experiment,), tuple(cells)))
    assert main(["verify", str(store.folder)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "[1] A. Author, Old Paper 2020, Table 1. Network: ResNet-18." in out
    assert "Certainty: medium: copied, not rerun." in out
    assert "Sources disagree on SRC at y: 57 [1] and 50 [2]; ours 55.00: within." in out
    assert "\x1b" not in out
    rows = pd.read_csv(store.folder / "verify.csv")
    assert tuple(rows) == CITED_COLUMNS
    assert main(["verify", str(store.folder), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [one["certainty"] for one in document["experiments"][0]["sources"]] == [
        "high", "medium: copied, not rerun", "high",
    ]  # fmt: skip
