"""What a bad table or archive of the user's own is answered with: one line."""

import importlib.util
import io
import os
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.builtin.conftest import zipped
from tests.own import HEAD, PLAIN, SITE, TABLE, X, Y, npz, refusal, suite


def texts_of_any_length():
    """Labels of NumPy's StringDType, which it saves as Python objects."""
    with warnings.catch_warnings(action="ignore"):
        return npz(y=np.where(Y, "yes", "no").astype(np.dtypes.StringDType()))


def members(x, /, **more):
    """An archive whose array `x` has these bytes, after more members."""
    with zipfile.ZipFile(io.BytesIO(npz())) as plain:
        return zipped({**more, "x.npy": x, **{name: plain.read(name) for name in ("y.npy", "site.npy")}})


def header(rows):
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f4", "fortran_order": False, "shape": (rows, 3)})
    return array.getvalue()


def flipped():
    """An archive that is not compressed, with a number of `x` changed, which its checksum shows."""
    made = bytearray(npz())
    made[made.index(X.tobytes()) + 7] ^= 0x80
    return bytes(made)


def column(name, value):
    head, *rest = PLAIN.splitlines()
    return "\n".join([f"{head},{name}", *(f"{line},{value(row)}" for row, line in enumerate(rest))])


def weight(odd):
    """A column of numbers, with something else in row 6."""
    return column("weight", lambda row: odd if row == 5 else row)


def names(count):
    return "site,disease,name\n" + "".join(f"{'ab'[row % 2]},{row % 3},n{row}\n" for row in range(count))


CLASSES = "site,disease,age\n" + "".join(f"{'ab'[row % 2]},c{row},{row}\n" for row in range(1500))
SITES = "site,disease,age\n" + "".join(f"s{row // 2},{row % 2},{row}\n" for row in range(1500))
GROUP = {"group": "patient"}
NO_LABELS = PLAIN.replace("yes", "").replace("no", "")


def with_row(text):
    """The plain table, the first row of domain b with `yes` beginning otherwise."""
    return PLAIN.replace("b,yes", text, 1)


CSV = [
    (PLAIN, {"domain": "hospital"}, "no column 'hospital' for `domain`; it has site, disease, age, sex"),
    (
        with_row("NA,yes"),
        {},
        "row 10 has no domain (column 'site'), where 'NA' stands for a missing value; `--missing=''",
    ),
    (with_row("b,None"), {}, "(domain 'b') has none, where 'None' stands for a missing value; `--missing=''"),
    (PLAIN, {"label": "diseas"}, "no column 'diseas' for `label`; did you mean 'disease'?"),
    (PLAIN, {"group": "patient"}, "no column 'patient' for `group`"),
    (PLAIN, {"text": "note"}, "no column 'note' for `text`"),
    (PLAIN, {"inputs": ["ages"]}, "no column 'ages' for `inputs`; did you mean 'age'?"),
    (PLAIN, {"drop": ["weight"]}, "no column 'weight' for `drop`"),
    (PLAIN, {"inputs": ["age", "disease"]}, "is the label, so it cannot be one of the `inputs`"),
    (PLAIN, {"text": "disease"}, "is the label, so it cannot be the `text`"),
    (PLAIN, {"label": "site"}, "is both domain and label"),
    (PLAIN, {"inputs": ["age"], "drop": ["sex"]}, "`inputs` and `drop` are both given"),
    (PLAIN, {"drop": ["age", "sex"]}, "no column is left to learn from"),
    (PLAIN.replace("\nb,", "\na,"), {}, "has one domain, 'a'"),
    (PLAIN, {"leave_out": ["b"]}, "has one domain, 'a'"),
    (PLAIN, {"leave_out": ["c"]}, "`leave_out` names 'c'; the domains are a, b"),
    (with_row(",yes"), {}, "row 10 has no domain (column 'site')"),
    (PLAIN.replace("yes", "no"), {}, "is 'no' in all rows; there is nothing to predict"),
    (PLAIN.replace("b,yes", "b,no"), {}, "domain 'b' has one class alone, 'no'"),
    (with_row("b,NaN"), {}, "1 rows have no label (column 'disease'): row 10 (domain 'b')"),
    (PLAIN.replace("b,yes", "b,").replace("b,no", "b,"), {}, "domain 'b' has no labels at all"),
    (NO_LABELS, {"unlabelled": "drop"}, "has no row with a label"),
    (PLAIN, {"task": "regression"}, "holds 'no', which is no finite number"),
    (CLASSES, {}, "has 1500 different values, and at most 1000 can be classes"),
    (SITES, {}, "has 750 different values, and at most 500 can be domains"),
    (names(100_000), {}, "column 'name' has 100000 different texts; `drop` it"),
    (names(200), {}, "column 'name' has 200 different texts; `drop` it"),
    (weight("heavy"), {}, "'heavy' in row 6; correct it"),
    (weight("1e300"), {}, "'1e300' in row 6, which is too"),
    (weight("-inf"), {}, "'-inf' in row 6, which is"),
    (column("age", int), {}, "two columns are called 'age'"),
    (column("", int), {}, "column 5 has no name"),
    (with_row("b,1,yes"), {}, "line 11 has 5 fields, but there are 4 columns"),
    (PLAIN.replace("b,yes,", "b,", 1), {}, "line 11 has 3 fields, but there are 4 columns"),
    (with_row('b,"yes'), {}, "cannot be read: unexpected end of data"),
    ("# made by R\n" + PLAIN, {}, "begins with a comment, '# made by R'; remove"),
    (PLAIN.replace(",", "/"), {}, "no column 'site' for `domain`; it has site/disease/age/sex"),
    (HEAD, {}, "has no rows below its header"),
    ("", {}, "is empty"),
    ("\n\n\n", {}, "has no rows below its header"),
    (with_row("b,j\u00e4").encode("latin-1"), {}, "line 11 is no UTF-8 text"),
    (PLAIN.encode("utf-16-le"), {}, "line 1 has a zero byte, which no UTF-8 text has"),
    (PLAIN + "b,yes,1,f\n" * 2000 + "b,\0,1,f\n", {}, "line 2018 has a zero byte"),
    (npz(), {}, "is a zip archive; unpack it"),
    (b"\x1f\x8b\x08\0\0", {}, "is compressed (gzip); name it .csv.gz"),
    (pickle.dumps({"a": 1}), {}, "is a pickle, which is never read"),
    (b"PAR1....PAR1", {}, "is a Parquet file; name it .parquet"),
    (column("patient", lambda row: f"p{row // 8}"), GROUP, "of one group"),
    (column("patient", lambda row: "" if row == 9 else row), GROUP, "row 10 has no"),
    (PLAIN, {"lable": "disease"}, "lable"),
    (PLAIN, {"stratify": "class"}, "stratify: must be true, false or shares, not 'class'"),
    (PLAIN, {"train": {"default": 2, "a": 100}}, "domain 'a' has 8 examples to train on, fewer than train.a = 100"),
]
NPZ = [
    (npz(), {"inputs": "features"}, "no array 'features'; it has x, y, site"),
    (npz(), {"labels": "x"}, "array 'x' cannot be two of"),
    (PLAIN.encode(), {}, "is no npz archive; write it with numpy.savez"),
    (pickle.dumps([1]), {}, "is no npz archive"),
    (b"", {}, "is empty"),
    (npz()[:400], {}, "is no npz archive"),
    (npz(x=np.array([{}] * 16, dtype=object)), {}, "array 'x' holds Python objects, which are never read"),
    (texts_of_any_length(), {}, "array 'y' holds Python objects, which are never read; save numbers, or texts by as"),
    (npz(x=np.full((16, 3), "a")), {}, "array 'x' holds <U1 of shape (16, 3); inputs are numbers"),
    (npz(x=np.arange(16.0)), {}, "array 'x' holds float64 of shape (16,); inputs are numbers (n, ...)"),
    (npz(x=X[:0], y=Y[:0], site=SITE[:0]), {}, "has no row with a label"),
    (npz(y=Y[:9]), {}, "array 'y' holds int64 of shape (9,); whole numbers or texts of shape (16,)"),
    (npz(y=np.where(SITE, np.nan, Y)), {}, "8 rows have no label (array 'y'): domain '1' has no labels at"),
    (npz(x=np.where(X > 5, np.nan, X)), {}, "rows of array 'x', first row 2, have missing values (NaN)"),
    (npz(x=X.astype(np.float64) * 1e300), {}, "holds a number that is not finite in float32"),
    (npz(site=np.repeat([b"a", b"\xff"], 8)), {}, "array 'site' holds bytes that are no UTF-8"),
    (members(header(6_250_000) + bytes(75_000_000)), {}, "too many; write it with numpy.savez, uncompressed"),
    (members(b"text"), {}, "cannot be read: EOF: reading magic string"),
    (members(header(16) + bytes(192), x=b"text"), {}, "cannot be read: 'x' is no array of numpy"),
    (members(header(10**9) + bytes(48)), {}, "array 'x' has 48 bytes, its header says 12000000000"),
    (flipped(), {}, "cannot be read: Bad CRC-32 for file 'x.npy'; write it with numpy.savez"),
]
PLACES = [
    ("mine.csv", lambda path: None, "cannot be read: No such file or directory"),
    ("mine.csv", Path.mkdir, "is a folder without a table; name a file"),
    ("mine.csv", lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
    ("mine.csv", os.mkfifo, "is no regular file; name a file"),
    (f"{'m' * 300}.csv", lambda path: None, "cannot be read: File name too long"),
    ("mine.txt", lambda path: path.write_text(PLAIN), "a table is a .csv, .tsv or .parquet file, not .txt"),
    ("mine.csv.gz", lambda path: path.write_bytes(b"\x1f\x8b\x08"), "mine.csv.gz: cannot be read: "),
    ("mine.xlsx", lambda path: path.write_bytes(b"PK"), "is a workbook; save the sheet with the rows as CSV"),
    ("", lambda path: None, "dataset table: needs `file`, the path of your file"),
]
if importlib.util.find_spec("pyarrow") is None:
    PLACES.append(("mine.parquet", lambda path: path.write_bytes(b"PAR1"), "Parquet files need pyarrow"))


def parquet(change=bytes, rows=16, **columns):
    """A file of two sites, with more columns that pyarrow makes, its bytes changed."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as written

    more = {name: make(pa) for name, make in columns.items()}
    stream = io.BytesIO()
    plain = {"site": np.arange(rows) * 2 // max(rows, 1), "disease": np.arange(rows) % 2}
    written.write_table(pa.table({**plain, **more}), stream)
    return change(stream.getvalue())


PARQUET = [
    (PLAIN.encode, "is no readable Parquet file: Parquet magic bytes not found"),
    (lambda: b"PAR1", "is no readable Parquet file"),
    (lambda: parquet(lambda file: file[: len(file) // 2]), "is no readable Parquet file"),
    (lambda: parquet(lambda file: file[:-8] + b"\xff\xff\xff\x7f" + file[-4:]), "is no readable Parquet file"),
    (lambda: parquet(lambda file: file[:4] + bytes(40) + file[44:]), "is no readable Parquet file"),
    (lambda: parquet(lambda file: file[:-4] + b"PARE"), "is no readable Parquet file"),
    (lambda: parquet(rows=0), "has no rows"),
    (
        lambda: parquet(rows=1 << 20, **{f"c{place}": lambda pa: pa.nulls(1 << 20) for place in range(127)}),
        "unpacks to",
    ),
    (lambda: parquet(visits=lambda pa: pa.array([[1, 2]] * 16)), "'visits' holds list<element: int64>, not one value"),
    (lambda: parquet(at=lambda pa: pa.array([{"x": 1}] * 16)), "'at' holds struct<x: int64>, not one value"),
    (lambda: parquet(raw=lambda pa: pa.array([b"\xff"] * 16)), "'raw' holds bytes that are no UTF-8 text"),
    (lambda: parquet(age=lambda pa: pa.array([float("inf")] * 16)), "no column is left to learn from"),
    (lambda: parquet(age=lambda pa: pa.array([*range(15), float("inf")])), "'age' has 'inf' in row 16"),
    (lambda: parquet(**{"": lambda pa: pa.array(range(16))}), "column 3 has no name"),
]


@pytest.mark.parametrize(
    ("dataset", "content", "params", "says"),
    [pytest.param("table", *case, id=case[2]) for case in CSV]
    + [pytest.param("arrays", *case, id=case[2]) for case in NPZ],
)
def test_bad_content_is_one_line(dataset, content, params, says, tmp_path, capsys):
    name, names = (
        ("mine.csv", TABLE) if dataset == "table" else ("mine.npz", {"inputs": "x", "labels": "y", "domains": "site"})
    )
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert says in refusal(capsys, suite(tmp_path, dataset, {"file": name, **names, **params}))


@pytest.mark.parametrize(("make", "says"), PARQUET)
def test_a_bad_parquet_file_is_one_line(make, says, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    (tmp_path / "mine.parquet").write_bytes(make())
    assert says in refusal(capsys, suite(tmp_path, "table", {"file": "mine.parquet", **TABLE}))


@pytest.mark.parametrize(("name", "make", "says"), PLACES)
def test_a_file_that_is_none_is_one_line(name, make, says, tmp_path, capsys):
    make(tmp_path / name)
    assert says in refusal(capsys, suite(tmp_path, "table", {"file": name, **TABLE}))
