"""The collections of published numbers that come with the package, and what a file or a suite may say of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, fields, replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.errors import SuiteError
from msda_bench.suite.expand import expand
from msda_bench.suite.plan_json import parse_plan, plan_to_json
from msda_bench.suite.published.load import find_table, known_tables
from msda_bench.suite.published.numbers import PublishedNumber, PublishedNumbers, parse_numbers

NAMES = tuple(name for name in known_tables() if not name.startswith("darn-2020"))
COLUMNS = [one.name for one in fields(PublishedNumber)]
ORIGIN = ["source", "table", "backbone", "protocol", "certainty"]
DOMAINS = {
    "pacs": {"art_painting", "cartoon", "photo", "sketch"},
    "office-31": {"amazon", "dslr", "webcam"},
    "office-caltech10": {"amazon", "caltech", "dslr", "webcam"},
    "office-home": {"art", "clipart", "product", "real_world"},
    "domainnet": {"clipart", "infograph", "painting", "quickdraw", "real", "sketch"},
    "digits-five": {"mnist", "mnist_m", "svhn", "syn", "usps"},
    "amazon-reviews": {"books", "dvd", "electronics", "kitchen"},
    "music-genres": {"buccaneer2", "destroyerengine", "f16", "factory2"},
    "music-or-speech": {"buccaneer2", "destroyerengine", "f16", "factory2"},
}


def frame(name: str) -> pd.DataFrame:
    return pd.DataFrame([asdict(one) for one in find_table(name).numbers])


def written(numbers: list[PublishedNumber]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    writer.writerows(asdict(one) for one in numbers)
    return file.getvalue().encode()


def test_every_number_is_there() -> None:
    assert sum(len(find_table(name).numbers) for name in NAMES) == 1261


@pytest.mark.parametrize("name", NAMES)
def test_each_list_is_of_the_same_targets_for_every_method(name: str) -> None:
    found = frame(name)
    of = found.groupby([*ORIGIN, "method"])["target"].agg(frozenset).reset_index()
    assert of.groupby(ORIGIN)["target"].nunique().eq(1).all()
    targets = set(found["target"]) - {"average"}
    assert targets == DOMAINS.get(name, targets)


@pytest.mark.parametrize("name", NAMES)
def test_a_mean_over_targets_is_that_of_the_numbers(name: str) -> None:
    """A wrong transcription would show here, as a source's own slip does."""
    table = frame(name).pivot_table("mean", [*ORIGIN, "method"], "target")
    if "average" in table:
        off = (table.drop(columns="average").mean(axis=1) - table["average"]).abs()
        assert {(name, key[-1]) for key in off[off > 0.101].index} <= SLIPS
        assert off.max() < 0.151


SLIPS = {("domainnet", "CMSS"), ("pacs", "source-only")}
"""As printed in SIG; of CMSS it is the other source's number for quickdraw that gives the mean."""


@pytest.mark.parametrize("name", NAMES)
def test_a_spread_says_what_it_is(name: str) -> None:
    found = frame(name)
    assert (found["spread"].isna() == found["spread_is"].isna()).all()
    assert found.loc[found["spread_is"].isin(["standard error", "standard deviation"]), "runs"].notna().all()


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
numbers = st.builds(
    PublishedNumber, text, text, text, text, st.floats(0, 100), st.none() | st.floats(0, 100),
    st.sampled_from([None, "standard error", "standard deviation", "not said"]), st.none() | st.integers(2, 1000),
    text, text, text,
)  # fmt: skip


@given(st.lists(numbers, min_size=1, max_size=5, unique_by=lambda one: one.method))
def test_a_file_is_read_as_it_was_written(rows: list[PublishedNumber]) -> None:
    assert parse_numbers(written(rows), "mine", "mine.csv") == PublishedNumbers("mine", tuple(rows))


ONE = PublishedNumber("ResNet-18", "all", "SRC", "x", 50.0, 1.0, "standard error", 3, "A paper", "Table 1", "high")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([replace(ONE, mean=100.5)], "row 1: mean: must be at most 100, not '100.5'"),
        ([replace(ONE, mean=float("nan"))], "row 1: mean: "),
        ([replace(ONE, source="")], "row 1: source: must be "),
        ([replace(ONE, certainty="")], "row 1: certainty: must be "),
        ([replace(ONE, spread_is="sd")], "row 1: spread_is: must be 'standard error', "),
        ([ONE, replace(ONE, mean=51.0)], "row 2: repeats 'SRC' at 'x'; remove one"),
        ([], "must have rows of the columns backbone, protocol, method, "),
    ],
)
def test_what_a_file_may_not_say(tmp_path, rows, line) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(written(rows))
    with pytest.raises(SuiteError) as caught:
        find_table(str(path))
    assert caught.value.lines[0].startswith(f"{path}: {line}")


def test_a_file_of_other_columns_or_no_text(tmp_path) -> None:
    path = tmp_path / "mine.csv"
    for data in (b"a,b\n1,2\n", written([ONE]).replace(b"high", b"high,more"), b"\xff\xfe"):
        path.write_bytes(data)
        with pytest.raises(SuiteError, match=r"mine\.csv: (must have rows of the columns|cannot be read as a table)"):
            find_table(str(path))


CHOICE = """published:
  table: amazon-reviews
  backbone: MLP 1000-500-100-2
  methods: {SRC: [source-combined, single-best]}
"""


def test_a_plan_keeps_the_numbers_of_its_methods(load, registry, good) -> None:
    plan = expand(load(good + CHOICE), registry).plan
    kept = plan.experiments[0].published
    assert isinstance(kept, PublishedNumbers)
    assert {one.method for one in kept.numbers} == {"source-combined", "single-best"}
    assert (kept.backbones, kept.protocols, kept.names("SRC")) == (
        ("MLP 1000-500-100-2",), (), ("source-combined", "single-best"),
    )  # fmt: skip
    assert parse_plan(json.dumps(plan_to_json(plan)).encode()) == plan


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("amazon-reviews", "amazon-review", "18:10: published.table: unknown table 'amazon-review' (did you mean"),
        ("amazon-reviews", "darn-2020-amazon", "18:3: published: darn-2020-amazon is one table; write only its name"),
        (
            "amazon-reviews",
            "pacs",
            "19:13: published.backbone: 'MLP 1000-500-100-2' is not a backbone of pacs (known: ",
        ),
        ("SRC:", "SCR:", "20:13: published.methods.SCR: 'SCR' is not a method (did you mean 'SRC'?)"),
        (
            "single-best",
            "best",
            "20:18: published.methods.SRC: 'best' is not a method of amazon-reviews (known: source-c",
        ),
        ("backbone:", "network:", "19:3: published.network: unknown key of published (known: table, backbone, "),
        ("  backbone: MLP 1000-500-100-2\n  methods: {SRC: [source-combined, single-best]}", "", ""),
    ],
)
def test_what_a_suite_may_not_choose(mistakes, load, good, old, new, line) -> None:
    text = good + CHOICE.replace(old, new)
    if not line:
        assert load(text).experiments[0].published.backbones == ()
    else:
        assert mistakes(text)[0].startswith(line), mistakes(text)


def test_numbers_of_other_domains(mistakes, good) -> None:
    assert mistakes(f"{good}published: pacs\n") == [
        "17:12: published: pacs has no number of a domain of amazon (it has art_painting, cartoon, photo, sketch)"
    ]


def test_a_file_that_a_spreadsheet_wrote_may_begin_with_a_mark_of_its_encoding() -> None:
    row = PublishedNumber("mlp", "held out", "a", "t", 50.0, None, None, None, "paper", "Table 1", "high")
    assert parse_numbers(b"\xef\xbb\xbf" + written([row]), "own", "own.csv").numbers == (row,)
