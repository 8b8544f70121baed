"""Tables and arrays of the user's own: what becomes of them, and what a bad file is answered with."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msda_bench.api import DataError, Dataset, Fits, InputSpec, Task
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench.engine.model import Components
from msda_bench.plugins import discover
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.testing import checks, contract
from msda_bench_builtin.datasets import Arrays, Table

ROWS = ["site,disease,age,sex\n"]
ROWS += [
    f"{site},{'yes' if row % 2 else 'no'},{row * 1.5},{'f' if row % 3 else 'm'}\n" for site in "ab" for row in range(8)
]
PLAIN = "".join(ROWS)
TABLE = {"domain": "site", "label": "disease"}
ARRAYS = {"inputs": "x", "labels": "y", "domains": "site"}
X, Y, SITE = np.arange(48, dtype=np.float32).reshape(16, 3) % 7, np.arange(16) % 2, np.repeat([0, 1], 8)


def suite(folder: Path, dataset: str, params: Mapping[str, Any], **more: Any) -> str:
    text = {
        "schema": 1,
        "name": "mine",
        "dataset": {dataset: params},
        "targets": "all",
        "seeds": 1,
        "backbone": {"mlp": {"hidden": [4]}},
        "training": {"epochs": 1, "batch": 4, "optimizer": {"adam": {"lr": 0.01}}},
        "methods": {"SRC": {"scheme": "pooled"}},
        **more,
    }
    path = folder / "mine.yaml"
    path.write_text(json.dumps(text))
    return str(path)


def npz(*, compressed: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **({"x": X, "y": Y, "site": SITE} | arrays))
    return stream.getvalue()


def bomb() -> bytes:
    """An archive of a few hundred kB whose array unpacks to 300 MB."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array_header_1_0(
            member, {"descr": "<f4", "fortran_order": False, "shape": (75_000_000 // 3, 3)}
        )
        for _ in range(300):
            member.write(bytes(1_000_000))
    with zipfile.ZipFile(stream, "a") as archive, zipfile.ZipFile(io.BytesIO(npz())) as plain:
        for name in ("y.npy", "site.npy"):
            archive.writestr(name, plain.read(name))
    return stream.getvalue()


def longer_than_it_is() -> bytes:
    """An archive whose array's header claims a thousand times the bytes that follow."""
    stream, array = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f4", "fortran_order": False, "shape": (10**9, 3)})
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.npy", array.getvalue() + bytes(48))
        for name, values in (("y", Y), ("site", SITE)):
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, values)
    return stream.getvalue()


def with_column(name: str, value: Callable[[int], object]) -> str:
    head, *rest = PLAIN.splitlines()
    return "\n".join([f"{head},{name}", *(f"{line},{value(row)}" for row, line in enumerate(rest))])


CSV: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "no such domain": (
        PLAIN,
        {"domain": "hospital"},
        "no column 'hospital' for `domain`; it has site, disease, age, sex",
    ),
    "no such label": (PLAIN, {"label": "diseas"}, "no column 'diseas' for `label`; did you mean 'disease'?"),
    "no such group": (PLAIN, {"group": "patient"}, "no column 'patient' for `group`"),
    "no such text": (PLAIN, {"text": "note"}, "no column 'note' for `text`"),
    "no such input": (PLAIN, {"inputs": ["ages"]}, "no column 'ages' for `inputs`; did you mean 'age'?"),
    "no such dropped": (PLAIN, {"drop": ["weight"]}, "no column 'weight' for `drop`"),
    "label as an input": (PLAIN, {"inputs": ["age", "disease"]}, "is the label, so it cannot be one of the `inputs`"),
    "label as text": (PLAIN, {"text": "disease"}, "is the label, so it cannot be the `text`"),
    "label is domain": (PLAIN, {"label": "site"}, "is both domain and label"),
    "inputs and drop": (PLAIN, {"inputs": ["age"], "drop": ["sex"]}, "`inputs` and `drop` are both given"),
    "nothing left": (PLAIN, {"drop": ["age", "sex"]}, "no column is left to learn from"),
    "one domain": (PLAIN.replace("\nb,", "\na,"), {}, "has one domain, 'a'"),
    "domain left out": (PLAIN, {"leave_out": ["b"]}, "has one domain, 'a'"),
    "unknown left out": (PLAIN, {"leave_out": ["c"]}, "`leave_out` names 'c'; the domains are a, b"),
    "no domain in a row": (PLAIN.replace("b,yes", ",yes", 1), {}, "row 10 has no domain (column 'site')"),
    "one class": (PLAIN.replace("yes", "no"), {}, "is 'no' in all rows; there is nothing to predict"),
    "one class in a source": (PLAIN.replace("b,yes", "b,no"), {}, "domain 'b' has one class alone, 'no'"),
    "NaN label": (
        PLAIN.replace("b,yes", "b,NaN", 1),
        {},
        "1 rows have no label (column 'disease'): row 10 (domain 'b')",
    ),
    "target without labels": (
        PLAIN.replace("b,yes", "b,").replace("b,no", "b,"),
        {},
        "domain 'b' has no labels at all",
    ),
    "all labels missing": (
        PLAIN.replace("yes", "").replace("no", ""),
        {"unlabelled": "drop"},
        "has no row with a label",
    ),
    "text in a regression": (PLAIN, {"task": "regression"}, "holds 'no', which is no finite number"),
    "too many classes": (
        "site,disease,age\n" + "".join(f"{'ab'[row % 2]},c{row},{row}\n" for row in range(1500)),
        {},
        "has 1500 different values, and at most 1000 can be classes",
    ),
    "too many domains": (
        "site,disease,age\n" + "".join(f"s{row // 2},{row % 2},{row}\n" for row in range(1500)),
        {},
        "has 750 different values, and at most 500 can be domains",
    ),
    "a million categories": (
        "site,disease,name\n" + "".join(f"{'ab'[row % 2]},{row % 3},n{row}\n" for row in range(1_000_000)),
        {},
        "column 'name' has 1000000 different texts; `drop` it",
    ),
    "mixed types": (
        with_column("weight", lambda row: "heavy" if row == 5 else row),
        {},
        "'heavy' in row 6; correct it",
    ),
    "huge number": (
        with_column("weight", lambda row: "1e300" if row == 5 else row),
        {},
        "'1e300' in row 6, which is too",
    ),
    "infinite number": (
        with_column("weight", lambda row: "-inf" if row == 5 else row),
        {},
        "'-inf' in row 6, which is",
    ),
    "one column called twice": (with_column("age", int), {}, "two columns are called 'age'"),
    "a column without name": (with_column("", int), {}, "column 5 has no name"),
    "too wide a line": (PLAIN.replace("b,yes", "b,1,yes", 1), {}, "line 11 has 5 fields, but there are 4 columns"),
    "too narrow a line": (PLAIN.replace("b,yes,", "b,", 1), {}, "line 11 has 3 fields, but there are 4 columns"),
    "a quote that does not end": (PLAIN.replace("b,yes", 'b,"yes', 1), {}, "cannot be read: unexpected end of data"),
    "semicolons": (PLAIN.replace(",", ";"), {}, "no column 'site' for `domain`; it has site;disease;age;sex"),
    "no rows": (ROWS[0], {}, "has no rows below its header"),
    "empty": ("", {}, "is empty"),
    "blank lines alone": ("\n\n\n", {}, "has no rows below its header"),
    "Latin-1": (PLAIN.replace("b,yes", "b,j\u00e4", 1).encode("latin-1"), {}, "line 11 is no UTF-8 text"),
    "UTF-16": (PLAIN.encode("utf-16"), {}, "is no text in UTF-8 (it has zero bytes; UTF-16?)"),
    "NUL": (PLAIN.replace("b,yes", "b,\0", 1), {}, "zero bytes"),
    "a late NUL": (PLAIN + "b,yes,1,f\n" * 2000 + "b,\0,1,f\n", {}, "line 2018 has a zero byte"),
    "a zip archive": (npz(), {}, "is a zip archive; unpack it"),
    "gzip": (b"\x1f\x8b\x08\0\0", {}, "is compressed (gzip); unpack it"),
    "a pickle": (pickle.dumps({"a": 1}), {}, "is a pickle, which is never read"),
    "parquet by its bytes": (b"PAR1....PAR1", {}, "is a Parquet file; name it .parquet"),
    "groups that cannot be split": (
        with_column("patient", lambda row: f"p{row // 8}"),
        {"group": "patient"},
        "of one group",
    ),
    "a row without group": (
        with_column("patient", lambda row: "" if row == 9 else row),
        {"group": "patient"},
        "row 10 has no",
    ),
    "an id as a category": (
        "site,disease,name\n" + "".join(f"{'ab'[row % 2]},{row % 3},n{row}\n" for row in range(200)),
        {},
        "column 'name' has 200 different texts; `drop` it",
    ),
    "a misspelt parameter": (PLAIN, {"lable": "disease"}, "lable"),
    "too large a train": (
        PLAIN,
        {"train": {"default": 2, "a": 100}},
        "domain 'a' has 8 examples to train on, fewer than train.a = 100",
    ),
}
NPZ: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "no such array": (npz(), {"inputs": "features"}, "no array 'features'; it has x, y, site"),
    "one array twice": (npz(), {"labels": "x"}, "array 'x' cannot be two of"),
    "a table": (PLAIN.encode(), {}, "is no npz archive; write it with numpy.savez"),
    "a pickle as npz": (pickle.dumps([1]), {}, "is no npz archive"),
    "an empty archive file": (b"", {}, "is empty"),
    "half an archive": (npz()[:400], {}, "is no npz archive"),
    "objects": (npz(x=np.array([{}] * 16, dtype=object)), {}, "array 'x' holds Python objects, which are never read"),
    "texts as inputs": (npz(x=np.full((16, 3), "a")), {}, "array 'x' holds <U1 of shape (16, 3); inputs are numbers"),
    "flat inputs": (npz(x=np.arange(16.0)), {}, "array 'x' holds float64 of shape (16,); inputs are numbers (n, ...)"),
    "no rows at all": (npz(x=X[:0], y=Y[:0], site=SITE[:0]), {}, "of shape (0, 3); inputs are numbers"),
    "too few labels": (npz(y=Y[:9]), {}, "array 'y' holds int64 of shape (9,); whole numbers or texts of shape (16,)"),
    "NaN labels": (
        npz(y=np.where(SITE, np.nan, Y)),
        {},
        "8 rows have no label (array 'y'): domain '1' has no labels at",
    ),
    "NaN inputs": (npz(x=np.where(X > 5, np.nan, X)), {}, "row 2 of array 'x' holds a number that is not finite"),
    "huge inputs": (npz(x=X.astype(np.float64) * 1e300), {}, "holds a number that is not finite in float32"),
    "bytes that are no text": (
        npz(site=np.repeat([b"a", b"\xff"], 8)),
        {},
        "array 'site' holds bytes that are no UTF-8",
    ),
    "a zip bomb": (bomb(), {}, "bytes, too many; write it with numpy.savez, uncompressed"),
    "a header that lies": (longer_than_it_is(), {}, "array 'x' has 48 bytes, its header says 12000000000"),
}
PLACES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "no such file": ("mine.csv", lambda path: None, "cannot be read: No such file or directory"),
    "a folder": ("mine.csv", Path.mkdir, "is a folder; name a file"),
    "a loop of links": ("mine.csv", lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
    "a pipe": ("mine.csv", os.mkfifo, "is no regular file; name a file"),
    "a long name": (f"{'m' * 300}.csv", lambda path: None, "cannot be read: File name too long"),
    "another ending": ("mine.xlsx", lambda path: path.write_bytes(b"PK"), "a .csv, .tsv or .parquet file, not .xlsx"),
    "no file": ("", lambda path: None, "dataset table: needs `file`, the path of your file"),
}


def refusal(capsys: pytest.CaptureFixture[str], path: str) -> str:
    assert main(["validate", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line


@pytest.mark.parametrize("what", CSV)
def test_a_bad_table_is_one_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, params, says = CSV[what]
    (tmp_path / "mine.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    assert says in refusal(capsys, suite(tmp_path, "table", {"file": "mine.csv", **TABLE, **params}))


@pytest.mark.parametrize("what", NPZ)
def test_a_bad_archive_is_one_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, params, says = NPZ[what]
    (tmp_path / "mine.npz").write_bytes(content)
    assert says in refusal(capsys, suite(tmp_path, "arrays", {"file": "mine.npz", **ARRAYS, **params}))


@pytest.mark.parametrize("what", PLACES)
def test_a_file_that_is_none_is_one_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, make, says = PLACES[what]
    make(tmp_path / name)
    assert says in refusal(capsys, suite(tmp_path, "table", {"file": name, **TABLE}))


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_pyarrow_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"PAR1")
    assert "Parquet files need pyarrow" in refusal(capsys, suite(tmp_path, "table", {"file": "mine.parquet", **TABLE}))


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def fitted_rows(data: Dataset, train: Mapping[str, int]) -> dict[str, Any]:
    """All rows of each domain as a network gets them, if so many first ones are trained on; the target comes last."""
    loaded = {name: data.load(name, LocalFiles()) for name in train}
    assert isinstance(data, Fits)
    learned = data.fit({name: loaded[name].x[:rows] for name, rows in train.items()})
    return {name: learned(name, rows.x) for name, rows in loaded.items()}


def test_columns_become_numbers_and_validate_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(
        tmp_path / "t.csv",
        "site,ill,age,code,sex,empty,year\n"
        "a,0,1.0,1,f,,2000\na,1,,2.0,m,,2000\na,0,3,1,f,?,2000\na,1,5,1.0,f,,2000\n"
        "b,1,100,2,?,,2000\nb,0,300,3,x,NA,2000\n",
    )
    params = {"domain": "site", "label": "ill", "categories": ["code"]}
    assert main(["validate", suite(tmp_path, "table", {"file": "t.csv", **params})]) == 0
    out = capsys.readouterr().out
    assert "domains: a (4), b (2)" in out
    assert "numbers with missing values (median, and a column that says so): age" in out
    assert "code (3), sex (4)" in out
    assert "left out: empty (empty), year (the same in all rows)" in out
    data = Table(file=file, domain="site", label="ill", categories=("code",))
    assert data.input.shape == (2 + 4 + 5,)
    x = fitted_rows(data, {"a": 4, "b": 1})
    # Of the source, whose ages are 1, 3 (the median), 3 and 5, with a variance of 2.
    np.testing.assert_allclose(x["a"][:, 0], (np.array([1, 3, 3, 5]) - 3) / np.sqrt(2), atol=1e-5)
    assert x["a"][:, 1].tolist() == [0, 1, 0, 0]
    # 1 and 1.0 are one category; the last column is for those that no training row has, here 3 and x.
    assert x["a"][:, 2:6].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert x["b"][:, 2:6].tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert x["b"][:, 6:].tolist() == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("how", "wanted"), [("sources", [76.0, 78.0]), ("domain", [-1.0, 1.0]), ("none", [1000385.0, 1000395.0])]
)
def test_numbers_are_standardised_over_the_rows_that_are_asked_for(
    how: Any, wanted: list[float], tmp_path: Path
) -> None:
    rows = [("a", 1_000_000, 0), ("a", 1_000_010, 1), ("b", 1_000_385, 0), ("b", 1_000_395, 1)]
    file = written(tmp_path / "t.csv", "site,ill,x\n" + "".join(f"{site},{ill},{x}\n" for site, x, ill in rows))
    x = fitted_rows(Table(file=file, domain="site", label="ill", standardise=how), {"a": 2, "b": 2})
    np.testing.assert_allclose(x["b"][:, 0], wanted, rtol=1e-5)
    np.savez(tmp_path / "t.npz", x=np.array([[row[1]] for row in rows]), y=[0, 1, 0, 1], domain=[0, 0, 1, 1])
    x = fitted_rows(Arrays(file=str(tmp_path / "t.npz"), standardise=how), {"0": 2, "1": 2})
    np.testing.assert_allclose(x["1"][:, 0], wanted, rtol=1e-5)


def test_text_becomes_words_of_the_training_rows_beside_the_other_columns(tmp_path: Path) -> None:
    lines = ["a,0,1,good day", "a,1,2,bad day", "b,0,3,good night", "b,1,4,awful awful night"]
    file = written(tmp_path / "t.csv", "site,ill,x,note\n" + "\n".join(lines))
    data = Table(file=file, domain="site", label="ill", text="note", words=3, ngrams=1, standardise="none")
    assert data.input == InputSpec((4,), sparse=True)
    x = fitted_rows(data, {"a": 2, "b": 1})
    # Words of two training rows at least: day and good; the third column stays empty.
    assert x["a"].toarray().tolist() == [[1, 1, 1, 0], [2, 1, 0, 0]]
    assert x["b"].toarray().tolist() == [[3, 0, 1, 0], [4, 0, 0, 0]]
    assert data.load("b", LocalFiles()).texts is None


def test_text_without_other_columns_is_given_as_written_too(tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", "site,ill,x,note\na,0,1,Good day\nb,0,3,\na,1,2,bad\nb,1,4,Good day\n")
    data = Table(file=file, domain="site", label="ill", text="note", inputs=("note",), words=3)
    assert data.input == InputSpec((3,), sparse=True, texts=True)
    texts = [data.load(domain, LocalFiles()).texts for domain in "ab"]
    assert [list(part) for part in texts if part is not None] == [["Good day", "bad"], ["", "Good day"]]


def test_what_a_table_predicts_and_leaves_out(tmp_path: Path) -> None:
    lines = [f"{site},{row / 7},{row},{row // 2}" for site in "abc" for row in range(24)]
    file = written(tmp_path / "t.tsv", "\n".join(["site,y,x,patient", *lines, "d,,1,9"]).replace(",", "\t"))
    real = Table(file=file, domain="site", label="y", group="patient", unlabelled="drop", leave_out=("c",))
    assert (real.task.kind, real.domains, real.input.shape) == ("regression", ("a", "b"), (1,))
    assert real.shared_groups
    rows = real.load("b", LocalFiles())
    np.testing.assert_allclose(rows.y, np.arange(24, dtype=np.float32) / 7)
    assert rows.groups is not None
    assert rows.groups.tolist() == [str(row // 2) for row in range(24)]
    classes = replace(real, label="patient", group=None, drop=("y",), leave_out=("c", "d"))
    assert classes.task == Task("classification", 12)


def test_keys_follow_the_bytes_of_the_file_and_not_its_place(tmp_path: Path) -> None:
    def keys(folder: str, text: str) -> list[str]:
        home = tmp_path / folder
        (home / "data").mkdir(parents=True, exist_ok=True)
        (home / "data" / "t.csv").write_text(text)
        registry = discover()
        path = Path(suite(home, "table", {"file": "data/t.csv", **TABLE}))
        return list(expand(load_suite(path, registry), registry).cells)

    first = keys("one", PLAIN)
    assert keys("two", PLAIN) == first
    assert not set(keys("one", PLAIN + "b,yes,3,f\n")) & set(first)


def test_a_file_that_changes_after_the_plan_is_not_trained_on(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(PLAIN)
    registry = discover()
    (cell, *_) = expand(
        load_suite(suite(tmp_path, "table", {"file": "t.csv", **TABLE}), registry), registry
    ).cells.values()
    assert Components.of(cell, registry).dataset.domains == ("a", "b")
    (tmp_path / "t.csv").write_text(PLAIN + "b,yes,3,f\n")
    with pytest.raises(DataError, match="has changed since this run was planned"):
        Components.of(cell, registry)


def test_a_run_reads_the_file_beside_its_suite_and_keeps_no_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "deep" / "er"
    home.mkdir(parents=True)
    (home / "mine.csv").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    assert main(["run", suite(home, "table", {"file": "mine.csv", **TABLE}), "--executor", "inline"]) == 0
    assert "table: mine.csv, sha256" in " ".join(capsys.readouterr().out.split())
    stored = b"".join(path.read_bytes() for path in (tmp_path / "results").rglob("*.json*"))
    assert b"deep/er" not in stored


def test_arrays_that_are_not_compressed_stay_in_the_file(tmp_path: Path) -> None:
    for compressed in (False, True):
        (tmp_path / "t.npz").write_bytes(npz(compressed=compressed, groups=np.arange(16).astype(str)))
        data = Arrays(file=str(tmp_path / "t.npz"), domain="site", groups="groups")
        assert (data.domains, data.task, data.input.shape) == (("0", "1"), Task("classification", 2), (3,))
        rows = data.load("1", LocalFiles())
        assert isinstance(rows.x, np.ndarray)
        owner: Any = rows.x
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        assert isinstance(owner, memoryview) == (not compressed)
        np.testing.assert_array_equal(rows.x, X[8:])
        assert rows.y.tolist() == Y[8:].tolist()


@pytest.mark.parametrize("check", checks("dataset"))
@pytest.mark.parametrize("which", ["table", "text", "arrays"])
def test_they_keep_the_contract(which: str, check: str, tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(npz())
    plain = Table(file=written(tmp_path / "t.csv", PLAIN), domain="site", label="disease")
    data = {
        "table": plain,
        "text": replace(plain, text="sex"),
        "arrays": Arrays(file=str(tmp_path / "t.npz"), domain="site"),
    }
    getattr(contract(data[which]), check)()
