"""Office-Home's features, as published and of the user's own: checked, read, and every fault named."""

import hashlib
import io
import re

import numpy as np
import pytest
from pydantic import ValidationError

from msda_bench.api import File
from msda_bench.data import LocalFiles
from msda_bench.functional import standardiser
from msda_bench_builtin.datasets import OfficeHome, OfficeHomeFeatures
from tests.builtin.conftest import zipped
from tests.data.conftest import only_line

DRAW = np.random.default_rng(7)
HOME = {"Art": 66, "Clipart": 22, "Product": 23, "RealWorld": 24}
TABLE = "OfficeHomeResnet50.csv"


def office_home(rows=HOME, kinds=65):
    """A zip with the table of shuffled rows, and the features by domain."""
    features = {name: DRAW.standard_normal((count, 2048)).astype(np.float32) for name, count in rows.items()}
    lines = []
    for name, of_domain in features.items():
        for place, row in enumerate(of_domain):
            kind = f"Kind_{place % kinds:02}" if name != "Clipart" else f"KIND {place % kinds:02}"
            lines.append(",".join([*(repr(float(value)) for value in row), f'"{kind}"', name]))
    shuffled = (lines[place] for place in DRAW.permutation(len(lines)))
    table = "\n".join([",".join(map(str, range(2050))), *shuffled]) + "\n"
    return zipped({TABLE: table.encode()}), features


@pytest.fixture
def put(where, monkeypatch):
    """Places an archive where the dataset looks for it, and sets the dataset's checksum and sizes to it."""

    def write(content):
        kind = OfficeHomeFeatures
        (known,) = kind.files
        mine = File(known.path, hashlib.sha256(content).hexdigest(), None, known.origin)
        monkeypatch.setattr(kind, "files", (mine,))
        monkeypatch.setattr(kind, "published", dict(zip(kind().domains, HOME.values(), strict=True)))
        placed(where, known.path, content)
        return kind(train=20), LocalFiles(where, kind.name)

    return write


def placed(where, name, content):
    """Writes a file and gives its sha256."""
    (where.given / name).parent.mkdir(exist_ok=True)
    (where.given / name).write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def test_published_features_keep_the_contract_and_equal_the_archive(put, keeps_contract):
    content, features = office_home()
    data, files = put(content)
    keeps_contract(data, files)
    for domain, expected in zip(data.domains, features.values(), strict=True):
        found = data.load(domain, files)
        mine, theirs = (np.asarray(sorted(map(tuple, rows)), np.float32) for rows in (found.x, expected))
        assert np.array_equal(mine, theirs)
        places = {row.tobytes(): place % 65 for place, row in enumerate(expected)}
        assert found.y.tolist() == [places[row.tobytes()] for row in np.asarray(found.x)]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"no zip", "cannot be read: File is not a zip file"),
        (zipped({"other.csv": b"1"}), f"it holds no {TABLE}"),
        (zipped({TABLE: b"0,1,2\n1,x,Art\n"}), "cannot be read: line 2 has 3 fields, expected 2050"),
        (zipped({TABLE: b""}), "holds {'art': 0, "),
        (zipped({TABLE: b"\n" + b"x," * 2048 + b"a,b\n"}), "cannot be read: could not convert"),
        (office_home(kinds=64)[0], "of 64 classes, expected {'art': 66, .*} and 65"),
        (office_home(HOME | {"Art": 65})[0], "holds {'art': 65, 'clip.*expected {'art': 66, "),
    ],
)
def test_another_archive_is_reported_in_one_line(put, content, what):
    data, files = put(content)
    assert re.search(f"{what}.*; replace the file$", only_line(data.load, data.domains[0], files))


def saved(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def features(rows, stream=0):
    draw = np.random.default_rng(stream)
    x = draw.random((rows, 2048), dtype=np.float32)
    return {"x": x, "y": draw.integers(0, 65, rows)}


def own(where, domain, **arrays):
    return placed(where, f"office_home/{domain}.npz", saved(**arrays))


@pytest.mark.parametrize("how", ["none", "domain", "pooled"])
def test_own_features_keep_the_contract_and_are_standardised_by_training_examples_on_request(
    where, keeps_contract, how
):
    domains, files = OfficeHome().domains, LocalFiles(where)
    sums = {domain: own(where, domain, **features(12, place)) for place, domain in enumerate(domains)}
    data = OfficeHome(train=10, sha256=sums, standardise=how)
    keeps_contract(data, files)
    inputs = {domain: data.load(domain, files).x for domain in domains}
    found = data.fit(inputs)("art", inputs["art"])
    assert np.array_equal(found, inputs["art"] if how == "none" else standardiser(inputs, how)("art", inputs["art"]))
    standardised = any("standardised" in note for note in data.notes)
    assert ("standardise" in data.identity()) == standardised == (how != "none")


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64])
def test_integer_labels_of_any_dtype_and_one_column_are_accepted(where, dtype):
    given = features(9)
    digest = own(where, "product", x=given["x"].astype(np.float64), y=given["y"].astype(dtype)[:, None])
    data = OfficeHome(sha256={"product": digest}).load("product", LocalFiles(where))
    assert np.array_equal(data.x, given["x"])
    assert (data.x.dtype, data.y.dtype) == (np.float32, np.int64)
    assert np.array_equal(data.y, given["y"])


GOOD = features(5)
X, Y = GOOD["x"], GOOD["y"]


def changed(array, place, value):
    array = array.astype(np.float64) if value > 99 else array.copy()
    array[place] = value
    return array


FAULTS = [
    ({"x": X}, "no array 'y'; it has x"),
    ({}, "no array 'x'; it has none"),
    ({"x": X[:, :512], "y": Y}, "x is float32 of shape (5, 512); it must be floats of shape (n, 2048)"),
    ({"x": X[0], "y": Y}, "x is float32 of shape (2048,); it must be"),
    ({"x": X.astype(np.int8), "y": Y}, "x is int8 of shape (5, 2048); it must be"),
    ({"x": changed(X, (3, 7), np.nan), "y": Y}, "x is not finite in row 3; make the file again"),
    ({"x": changed(X, (2, 0), 1e300), "y": Y}, "x is not finite in row 2; make the file again"),
    ({"x": X, "y": Y.astype(float)}, "y is float64 of shape (5,); it must be whole numbers of shape (n,)"),
    ({"x": X, "y": np.zeros((5, 2), int)}, "y is int64 of shape (5, 2); it must be"),
    ({"x": X, "y": np.int64(3)}, "y is int64 of shape (); it must be"),
    ({"x": X, "y": Y[:4]}, "x holds 5 examples and y 4 labels; make the file again"),
    ({"x": X, "y": changed(Y, 1, -1)}, "y is -1 in row 1; it must be in 0..64"),
    ({"x": X, "y": changed(Y, 4, 65)}, "y is 65 in row 4; it must be in 0..64"),
]


@pytest.mark.parametrize(("arrays", "what"), FAULTS)
def test_faults_are_reported_in_one_line(where, arrays, what):
    data = OfficeHome(sha256={"art": own(where, "art", **arrays)})
    line = only_line(data.load, "art", LocalFiles(where))
    assert line.startswith(f"{where.given}/office_home/art.npz: {what}")


def test_a_file_is_read_only_with_its_checksum(where):
    own(where, "art", **GOOD)
    line = only_line(OfficeHome().load, "art", LocalFiles(where))
    assert "art.npz: not read, since no checksum was given; it has sha256 " in line
    for wrong in ({"sketch": "ab" * 32}, {"art": "ab"}, {"art": "AB" * 32}, {"art": "ab" * 32 + "\n"}):
        with pytest.raises(ValidationError):
            OfficeHome(sha256=wrong)
