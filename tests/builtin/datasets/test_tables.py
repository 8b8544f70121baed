"""Tables and arrays of the user's own: what becomes of them, and of a target without any labels."""

import csv
import datetime as dt
import decimal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.api import DataError, InputSpec, Task
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench.engine.model import Components
from msda_bench.plugins import discover
from msda_bench_builtin.datasets import Arrays, Table
from tests.builtin.suites import loaded
from tests.own import PLAIN, SITE, TABLE, X, Y, npz, results, suite


def table(folder, content, name="t.csv", **params):
    (folder / name).write_text(content)
    return Table(file=str(folder / name), domain="site", **{"label": "ill"} | params)


def fitted_rows(data, train):
    """All rows of each domain as a network gets them, if so many first ones are trained on; the target comes last."""
    held = {name: data.load(name, LocalFiles()) for name in train}
    learned = data.fit({name: held[name].x[:rows] for name, rows in train.items()})
    return {name: learned(name, rows.x) for name, rows in held.items()}


def validated(folder, capsys, **params):
    """What `validate` says of a suite of the table."""
    data = {"file": "t.csv", "domain": "site", "label": "ill", **params}
    assert main(["validate", suite(folder, "table", data)]) == 0
    return capsys.readouterr().out


def test_columns_become_numbers_and_validate_says_which(tmp_path, capsys):
    data = table(
        tmp_path,
        "site,ill,age,code,sex,empty,year\n"
        "a,0,1.0,1,f,,2000\na,1,,2.0,m,,2000\na,0,3,1,f,?,2000\na,1,5,1.0,f,,2000\n"
        "b,1,100,2,?,,2000\nb,0,300,3,x,NA,2000\n",
        categories=("code",),
    )
    out = validated(tmp_path, capsys, categories=["code"])
    assert "domains: a (4), b (2)" in out
    assert "numbers with missing values (median, and a column that says so): age" in out
    assert "code (3), sex (4)" in out
    assert "left out: empty (empty), year (the same in all rows)" in out
    assert data.input.shape == (2 + 4 + 5,)
    x = fitted_rows(data, {"a": 4, "b": 1})
    # Of the source, whose ages are 1, 3 (the median), 3 and 5, with a variance of 2.
    np.testing.assert_allclose(x["a"][:, 0], (np.array([1, 3, 3, 5]) - 3) / np.sqrt(2), atol=1e-5)
    assert x["a"][:, 1].tolist() == [0, 1, 0, 0]
    # 1 and 1.0 are one category; the last column is for those that no training row has, here 3 and x.
    assert x["a"][:, 2:6].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert x["b"][:, 2:6].tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert x["b"][:, 6:].tolist() == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]


def test_filled_gaps_look_like_any_other_value(tmp_path, capsys):
    lines = ["a,0,1,f", "a,1,,", "a,0,3,f", "a,1,5,m", "b,1,,", "b,0,9,"]
    data = table(tmp_path, "\n".join(["site,ill,age,sex", *lines]), gaps="fill", standardise="none")
    x = fitted_rows(data, {"a": 4, "b": 1})
    # The age, whether it is missing; f, m, missing, any other.
    assert x["a"].tolist() == [[1, 0, 1, 0, 0, 0], [3, 0, 1, 0, 0, 0], [3, 0, 1, 0, 0, 0], [5, 0, 0, 1, 0, 0]]
    assert x["b"].tolist() == [[3, 0, 1, 0, 0, 0], [9, 0, 1, 0, 0, 0]]
    assert "numbers with missing values (median): age" in validated(tmp_path, capsys, gaps="fill")


@pytest.mark.parametrize(
    ("how", "wanted"), [("sources", [76.0, 78.0]), ("domain", [-1.0, 1.0]), ("none", [1000385.0, 1000395.0])]
)
def test_numbers_are_standardised_over_the_rows_that_are_asked_for(how, wanted, tmp_path):
    rows = [("a", 1_000_000, 0), ("a", 1_000_010, 1), ("b", 1_000_385, 0), ("b", 1_000_395, 1)]
    text = "site,ill,x\n" + "".join(f"{site},{ill},{x}\n" for site, x, ill in rows)
    x = fitted_rows(table(tmp_path, text, standardise=how), {"a": 2, "b": 2})
    np.testing.assert_allclose(x["b"][:, 0], wanted, rtol=1e-5)
    np.savez(tmp_path / "t.npz", x=np.array([[row[1]] for row in rows]), y=[0, 1, 0, 1], domain=[0, 0, 1, 1])
    x = fitted_rows(Arrays(file=str(tmp_path / "t.npz"), standardise=how), {"0": 2, "1": 2})
    np.testing.assert_allclose(x["1"][:, 0], wanted, rtol=1e-5)


def test_text_becomes_words_of_the_training_rows_beside_the_other_columns_and_is_given_as_written(tmp_path):
    lines = ["a,0,1,Good day", "a,1,2,bad day", "b,0,3,good night", "c,1,4,", "b,1,4,awful awful night", "c,0,4,x"]
    text = "\n".join(["site,ill,x,note", *lines])
    data = table(tmp_path, text, text="note", words=3, ngrams=1, standardise="none")
    assert data.input == InputSpec((4,), sparse=True, texts=True, beside=1)
    x = fitted_rows(data, {"a": 2, "b": 1})
    # Words of two training rows at least: day and good; the third column stays empty.
    assert x["a"].toarray().tolist() == [[1, 1, 1, 0], [2, 1, 0, 0]]
    assert x["b"].toarray().tolist() == [[3, 0, 1, 0], [4, 0, 0, 0]]
    alone = replace(data, inputs=("note",))
    assert alone.input == InputSpec((3,), sparse=True, texts=True)
    texts = [list(alone.load(domain, LocalFiles()).texts) for domain in "abc"]
    assert texts == [["Good day", "bad day"], ["good night", "awful awful night"], ["", "x"]]


def test_what_a_table_predicts_and_leaves_out(tmp_path):
    lines = [f"{site},{row / 7},{row},{row // 2}" for site in "abc" for row in range(24)]
    text = "\n".join(["site,y,x,patient", *lines, "d,,1,9"]).replace(",", "\t")
    real = table(tmp_path, text, "t.tsv", label="y", group="patient", unlabelled="drop", leave_out=("c",))
    assert (real.task.kind, real.domains, real.input.shape) == ("regression", ("a", "b"), (1,))
    assert real.shared_groups
    rows = real.load("b", LocalFiles())
    np.testing.assert_allclose(rows.y, np.arange(24, dtype=np.float32) / 7)
    assert rows.groups.tolist() == [str(row // 2) for row in range(24)]
    classes = replace(real, label="patient", group=None, drop=("y",), leave_out=("c", "d"))
    assert classes.task == Task("classification", 12)


def cells(home, text):
    home.mkdir(exist_ok=True)
    (home / "t.csv").write_text(text)
    return loaded(Path(suite(home, "table", {"file": "t.csv", **TABLE})))[1].cells


def test_keys_follow_the_bytes_of_the_file_and_not_its_place(tmp_path):
    first, other = cells(tmp_path / "one", PLAIN), cells(tmp_path / "two", PLAIN)
    assert list(first) == list(other)
    (cell, *_), registry = first.values(), discover()
    assert Components.of(cell, registry).dataset.domains == ("a", "b")
    assert not set(cells(tmp_path / "one", PLAIN + "b,yes,3,f\n")) & set(first)
    with pytest.raises(DataError, match="has changed since this run was planned"):
        Components.of(cell, registry)


def test_a_run_reads_the_file_beside_its_suite_and_keeps_no_path(tmp_path, capsys, monkeypatch):
    home = tmp_path / "deep" / "er"
    home.mkdir(parents=True)
    (home / "mine.csv").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    assert main(["run", suite(home, "table", {"file": "mine.csv", **TABLE}), "--executor", "inline"]) == 0
    assert "table: mine.csv, sha256" in " ".join(capsys.readouterr().out.split())
    stored = b"".join(path.read_bytes() for path in (tmp_path / "results").rglob("*.json*"))
    assert b"deep/er" not in stored


@pytest.mark.parametrize("order", [np.arange(16), np.arange(16).reshape(2, 8).T.ravel()], ids=["sorted", "mixed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_read_in_the_order_of_the_file(order, dtype, tmp_path):
    groups = np.arange(16).astype(str)[order]
    made = npz(x=X[order].astype(dtype), y=Y[order], site=SITE[order], groups=groups)
    (tmp_path / "t.npz").write_bytes(made)
    data = Arrays(file=str(tmp_path / "t.npz"), domain="site", groups="groups")
    assert (data.domains, data.task, data.input.shape) == (("0", "1"), Task("classification", 2), (3,))
    for domain, mine in (("0", slice(8)), ("1", slice(8, 16))):
        rows = data.load(domain, LocalFiles())
        assert isinstance(rows.x, np.ndarray)
        assert rows.x.dtype == np.float32
        np.testing.assert_array_equal(rows.x, X[mine])
        assert rows.y.tolist() == Y[mine].tolist()


def test_a_parquet_file_is_read_as_the_same_csv_file_is(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    sex = ["f", "m", None, "f"] * 4
    days = [dt.datetime(2026, 11, 1 + row // 4, tzinfo=dt.UTC) for row in range(16)]
    columns = {
        "site": pa.array(["a"] * 8 + ["b"] * 8).dictionary_encode(),
        "disease": pa.array([row % 2 for row in range(16)], pa.int8()),
        "age": pa.array([None, float("nan"), *range(14)], pa.float64()),
        "large": pa.array([None] + [2**53 + row for row in range(15)], pa.int64()),
        "half": pa.array(np.arange(16, dtype=np.float16) / 2),
        "sex": pa.array(sex),
        "code": pa.array(["u", None, "v", "u"] * 4).dictionary_encode(),
        "smoker": pa.array([True, None] * 8),
        "day": pa.array(days, pa.timestamp("ns", tz="UTC")),
        "price": pa.array([decimal.Decimal(row).scaleb(-2) for row in range(16)]),
        "nothing": pa.nulls(16),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=5)
    with (tmp_path / "t.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*(values.to_pylist() for values in columns.values()), strict=True))
    made, plain = (Table(file=str(tmp_path / name), domain="site", label="disease") for name in ("t.parquet", "t.csv"))
    assert made.describe() == plain.describe()
    for domain in ("a", "b"):
        of_it, same = made.load(domain, LocalFiles()), plain.load(domain, LocalFiles())
        np.testing.assert_array_equal(np.asarray(of_it.x), np.asarray(same.x))
        assert of_it.y.tolist() == same.y.tolist()


def test_equal_numbers_are_one_class_but_long_identifiers_stay_apart(tmp_path):
    """From 2**53 on neighbours are the same number in float64, so `describe` would find one class."""
    for labels, classes in (("1 1.0 2 2e0", 2), (f"{2**53} {2**53 + 1}", 2), (f"{10**17 + 1} {10**17 + 2} 7 8", 4)):
        rows = "".join(f"{site},{label},{age}\n" for site in "ab" for label in labels.split() for age in range(2))
        data = table(tmp_path, "site,ill,age\n" + rows)
        assert data.task == Task("classification", classes)
        assert len(set(data.load("a", LocalFiles()).y.tolist())) == classes


def test_they_keep_the_contract(tmp_path, keeps_contract):
    (tmp_path / "t.npz").write_bytes(npz())
    plain = table(tmp_path, PLAIN, label="disease")
    for data in (plain, replace(plain, text="sex"), Arrays(file=str(tmp_path / "t.npz"), domain="site")):
        keeps_contract(data, LocalFiles())


ROWS = 80
UNLABELLED = {"file": "t.csv", "domain": "site", "label": "ill", "unlabelled": "target", "protocol": "transductive"}
SHIFT = {"domain": "target", "shares": [0.5, 0.5]}
SELECT = {"how": "grid", "budget": 2, "by": "bnm", "space": {"training.optimizer.adam.lr": [0.001, 0.01]}}
METHODS = {
    "SRC": {"scheme": "pooled"},
    "BNM": {"scheme": {"regularised": {"by": "bnm", "weight": 0.1}}},
    "forest": {"scheme": {"random_forest": {"n_estimators": 20}}},
}


def made(folder, dataset=UNLABELLED, **changes):
    """A suite of four sites, of which d has no label, and a one row without."""
    rng = np.random.default_rng(0)
    lines = ["site,ill,age,dose"]
    for site in "abcd":
        for row in range(ROWS):
            ill = row % 3 > 0
            label = "" if site == "d" or (site, row) == ("a", 5) else "yes" if ill else "no"
            lines.append(f"{site},{label},{rng.normal() + 2 * ill:.3f},{rng.normal():.3f}")
    (folder / "t.csv").write_text("\n".join(lines))
    more = {"targets": ["d"], "validators": ["source_accuracy", "bnm"], "select": SELECT, "methods": METHODS}
    return suite(folder, "table", dataset, **more | changes)


@pytest.mark.slow
def test_it_trains_validators_choose_and_no_score_is_claimed(tmp_path, capsys):
    training = {"epochs": 2, "steps": 5, "batch": 8, "optimizer": {"adam": {"lr": 0.01}}}
    path = made(tmp_path, seeds=6, keep=["predictions"], training=training, compare={"pairs": "baseline"})
    out = str(tmp_path / "out" / "mine")
    assert main(["validate", path]) == 0
    assert "without labels, targets only: d" in capsys.readouterr().out
    runs = results(path)
    said = " ".join(capsys.readouterr().out.split())
    assert "How good a method is at d, and which is best, cannot be known: there are no labels." in said
    assert "best mean" not in said
    assert (runs["status"] == "ok").all()
    assert runs["score"].isna().all()
    assert runs["validator:bnm"].notna().all()
    for command in ("leaderboard", "compare", "sources", "store verify --strict", "report"):
        assert main([*command.split(), out]) == 0, command
    assert "cannot be known: there are no labels" in Path(out, "report.html").read_text()
    # Every row gets an answer of the candidate that the criterion chose.
    answers = mb.load_predictions(out)
    assert (answers["label"] == -1).all()
    for _, of_run in answers.groupby(["method", "seed"], observed=True):
        assert sorted(of_run["row"]) == list(range(ROWS))
    forest = answers[(answers["method"] == "forest") & (answers["seed"] == 0)].sort_values("row")
    assert (forest["predicted"].to_numpy() == (np.arange(ROWS) % 3 > 0)).mean() > 0.7  # 1 is the class yes


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"targets": "all"}, "targets: 'd' has no labels to be tested on"),
        ({"methods": {"TAR": {"scheme": "target_only", "reference": True}}}, "target_only needs labels of target 'd'"),
        ({"labelled_target": 5}, "labelled_target: needs labels of target 'd', which has none"),
        ({"select": SELECT | {"by": "oracle"}}, "select.by: oracle needs labels of target 'd'"),
        ({"dataset": UNLABELLED | {"label_shift": SHIFT}}, "label_shift.domain: needs labels of target 'd'"),
        ({"dataset": UNLABELLED | {"unlabelled": "refuse"}}, "81 rows have no label"),
    ],
)
def test_what_needs_its_labels_is_refused_in_one_line(tmp_path, changes, says, capsys):
    assert main(["validate", made(tmp_path, **changes)]) == 2
    assert says in capsys.readouterr().err
