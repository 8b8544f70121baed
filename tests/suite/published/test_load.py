from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from msda_bench.errors import StoreError, SuiteError
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.plan_json import parse_plan, plan_to_json
from msda_bench.suite.published.load import find_table, known_tables
from msda_bench.suite.published.table import Citation, PublishedCell, PublishedRow, PublishedTable

KNOWN = ", ".join(known_tables())
OWN = "one of your own is a .yaml or .csv file"
TABLE = """\
schema: 1
name: mine
citation: {authors: [A, B], title: T, venue: V 2021, url: "https://example.org"}
where: Table 3
dataset: amazon
metric: accuracy_percent
runs: 5
targets: [books, dvd]
rows:
  SRC: {books: [79, 0.5], dvd: [80.5, 0.25], average: [79.75, 0.3]}
  DARN: {books: [81.5, 0.5], dvd: [80.0, 0.25], average: [80.75, 0.3]}
  TAR: {books: [90, 1], dvd: [92, 1], average: [91, 1]}
references: [TAR]
bold: {books: [DARN], average: [SRC, DARN]}
"""


def row(method: str, *cells: tuple[float, float, bool], reference: bool = False) -> PublishedRow:
    columns = ("books", "dvd", None)
    return PublishedRow(method, reference, tuple(map(PublishedCell, columns, *zip(*cells, strict=True))))


MINE = PublishedTable(
    "mine",
    Citation(("A", "B"), "T", "V 2021", "https://example.org"),
    "Table 3",
    "amazon",
    "accuracy_percent",
    5,
    (
        row("SRC", (79.0, 0.5, False), (80.5, 0.25, False), (79.75, 0.3, True)),
        row("DARN", (81.5, 0.5, True), (80.0, 0.25, False), (80.75, 0.3, True)),
        row("TAR", (90.0, 1.0, False), (92.0, 1.0, False), (91.0, 1.0, False), reference=True),
    ),
)


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def lines(old: str, new: str) -> list[str]:
        assert TABLE.count(old) == 1
        (tmp_path / "t.yaml").write_text(TABLE.replace(old, new))
        with pytest.raises(SuiteError) as caught:
            find_table("t.yaml")
        return list(caught.value.lines)

    return lines


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "any.yaml"
    path.write_text(TABLE)
    assert find_table(str(path)) == MINE
    assert MINE.targets == ("books", "dvd")
    assert str(MINE.citation) == "A, B. T. V 2021. https://example.org"


def test_the_example_in_the_docs_is_right(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "verify.md").read_text(encoding="utf-8")
    example = re.search(r"(?m)^    schema: 1\n(    .*\n)+", text)[0]
    (tmp_path / "t.yaml").write_text(textwrap.dedent(example))
    table = find_table(str(tmp_path / "t.yaml"))
    assert (table.name, table.targets, len(table.rows)) == ("mine-2021", ("books", "dvd"), 3)


def test_a_suite_names_a_file_relative_to_its_own(tmp_path, registry, good, monkeypatch):
    (tmp_path / "suites" / "tables").mkdir(parents=True)
    (tmp_path / "suites" / "tables" / "t.yaml").write_text(TABLE)
    (tmp_path / "suites" / "s.yaml").write_text(f"{good}published: tables/t.yaml\n")
    monkeypatch.chdir(tmp_path)
    suite = load_suite(tmp_path / "suites" / "s.yaml", registry)
    plan = expand(suite, registry).plan
    assert plan.experiments[0].published == MINE
    assert parse_plan(json.dumps(plan_to_json(plan)).encode()) == plan


def test_a_suite_names_a_table_of_the_package(load, good):
    experiment = load(good.replace("amazon: {train: 2000}", "amazon: ~") + "published: darn-2020-amazon\n")
    assert experiment.experiments[0].published == find_table("darn-2020-amazon")
    assert load(good + "published: ~\n").experiments[0].published is None


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (
            "darn-2020-amazn",
            "unknown table 'darn-2020-amazn' (did you mean 'darn-2020-amazon'?); {own}",
        ),
        ("zzz", "unknown table 'zzz' (known: {known}); {own}"),
        ("7", "must be the name of a table, or a .yaml or .csv file with one, or {{table: NAME, ...}}, not 7"),
        ("darn-2020-digits", "darn-2020-digits is of dataset 'digits', not 'amazon'"),
        ("nowhere.yaml", "'nowhere.yaml' no such file"),
        ("../t.yaml", "'../t.yaml' leaves the folder of the suite; move the file into it"),
    ],
)
def test_what_a_suite_may_not_name(mistakes, good, value, what):
    assert mistakes(f"{good}published: {value}\n") == [f"17:12: published: {what.format(known=KNOWN, own=OWN)}"]


def test_accuracies_are_not_held_to_a_regression(tmp_path, mistakes, good):
    (tmp_path / "t.yaml").write_text(TABLE.replace("dataset: amazon", "dataset: sine"))
    text = good.replace("{amazon: {train: 2000}}", "sine").replace("[books, dvd]", "all")
    text = text.replace("validators: [source_accuracy]", "validators: [source_risk]")
    assert mistakes(f"{text}published: t.yaml\n") == [
        "17:12: published: mine is of accuracy_percent; sine is regression"
    ]


def test_mistakes_in_the_file_are_reported_at_the_suites_key(tmp_path, load, good):
    (tmp_path / "t.yaml").write_text(TABLE.replace("runs: 5", "runs: 1").replace("where: ", "were: "))
    with pytest.raises(SuiteError) as caught:
        load(f"{good}published: t.yaml\n")
    (file, suite) = (tmp_path / "t.yaml", tmp_path / "s.yaml")
    assert caught.value.lines[0].startswith(f"{suite}:17:12: published: {file}:")
    assert [line.partition(f"published: {file}:")[2] for line in caught.value.lines] == [
        "1:1: where: is missing",
        "4:1: were: unknown key (did you mean 'where'?)",
        "7:7: runs: must be at least 2, not 1",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("schema: 1", "schema: 2", "1:9: schema: must be at most 1, not 2"),
        ("venue: V 2021, ", "", "3:1: citation.venue: is missing"),
        ("title: T", "titel: T, title: T", "3:29: citation.titel: unknown key (did you mean 'title'?)"),
        ("[books, dvd]", "[books, dvd, dvd]", "8:23: targets[2]: 'dvd' is named twice; remove it"),
        (
            "[books, dvd]",
            "[books, dvd, average]",
            "8:23: targets[2]: 'average' is the column of means, which every row has; remove it",
        ),
        ("SRC: {books: [79, 0.5], ", "SRC: {", "10:3: rows.SRC: has no 'books'"),
        ("SRC: {", "SRC: {dvdd: [1, 1], ", "10:9: rows.SRC.dvdd: is not a column (did you mean 'dvd'?)"),
        ("[79, 0.5]", "[179, 0.5]", "10:17: rows.SRC.books[0]: must be between 0 and 100 percent, not 179"),
        ("[79, 0.5]", "[79, 0.0]", "10:21: rows.SRC.books[1]: must be a standard error above 0, not 0"),
        ("[79, 0.5]", "[79]", "10:16: rows.SRC.books: must have at least 2 items, not 1"),
        ("[79, 0.5]", "[79, x]", "10:21: rows.SRC.books[1]: must be a number, not 'x'"),
        ("references: [TAR]", "references: [TRA]", "13:14: references[0]: 'TRA' is not in rows (did you mean 'TAR'?)"),
        ("books: [DARN]", "book: [DARN]", "14:8: bold.book: is not a column (did you mean 'books'?)"),
        ("books: [DARN]", "books: [darn]", "14:16: bold.books[0]: 'darn' is not in rows (known: SRC, DARN)"),
        (
            "books: [DARN]",
            "books: [TAR]",
            "14:16: bold.books[0]: 'TAR' is a reference, which is not ranked (known: SRC, DARN)",
        ),
        ("runs: 5", "runs: 5\nruns: 6", "8:1: runs: duplicate key, first on line 7"),
    ],
)
def test_what_a_file_may_not_say(wrong, old, new, line):
    found = wrong(old, new)
    assert found[0].startswith("t.yaml:")
    assert line in [text.removeprefix("t.yaml:") for text in found]


def test_a_table_in_a_plan_must_be_one(load, registry, good):
    plain = plan_to_json(expand(load(good + "published: darn-2020-amazon\n"), registry).plan)
    plain["experiments"][0]["published"]["rows"][2]["cells"].pop()
    with pytest.raises(StoreError, match="the published table of good has no rows, or rows of different columns"):
        parse_plan(json.dumps(plain).encode())
    plain["experiments"][0]["published"]["rows"] = []
    with pytest.raises(StoreError, match="the published table of good has no rows, or rows of different columns"):
        parse_plan(json.dumps(plain).encode())
