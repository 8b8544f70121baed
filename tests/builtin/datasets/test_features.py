"""Office-Home's features, as published and of the user's own: checked, read, and every fault named."""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from msda_bench.api import DataError, File
from msda_bench.data import Folders, LocalFiles
from msda_bench.functional import standardiser
from msda_bench_builtin.datasets import OfficeHome, OfficeHomeFeatures
from tests.builtin.datasets.conftest import zipped
from tests.data.refusal import only_line

DRAW = np.random.default_rng(7)
HOME = {"Art": 66, "Clipart": 22, "Product": 23, "RealWorld": 24}
TABLE = "OfficeHomeResnet50.csv"


def office_home(rows: dict[str, int] = HOME, kinds: int = 65) -> tuple[bytes, Any]:
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
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Places an archive where the dataset looks for it, and sets the dataset's checksum and sizes to it."""

    def write(content: bytes) -> tuple[OfficeHomeFeatures, LocalFiles]:
        kind = OfficeHomeFeatures
        (known,) = kind.files
        mine = File(known.path, hashlib.sha256(content).hexdigest(), None, known.origin)
        monkeypatch.setattr(kind, "files", (mine,))
        monkeypatch.setattr(kind, "published", dict(zip(kind().domains, HOME.values(), strict=True)))
        (tmp_path / known.path).parent.mkdir(exist_ok=True)
        (tmp_path / known.path).write_bytes(content)
        return kind(train=20), LocalFiles(Folders(None, tmp_path), kind.name)

    return write


def test_published_features_keep_the_contract_and_equal_the_archive(put: Any, keeps_contract: Any) -> None:
    content, features = office_home()
    data, files = put(content)
    keeps_contract(data, files)
    for domain, expected in zip(data.domains, features.values(), strict=True):
        found = data.load(domain, files)
        assert (found.x.dtype, found.y.dtype) == (np.float32, np.int64)
        mine, theirs = (np.asarray(sorted(map(tuple, rows)), np.float32) for rows in (found.x, expected))
        assert np.array_equal(mine, theirs)
        places = {row.tobytes(): place % 65 for place, row in enumerate(expected)}
        assert found.y.tolist() == [places[row.tobytes()] for row in np.asarray(found.x)]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"no zip", "cannot be read: File is not a zip file"),
        (zipped({"other.csv": b"1"}), f"it holds no {TABLE} of at most 1024 MiB"),
        (zipped({TABLE: b"0,1,2\n1,x,Art\n"}), "cannot be read: line 2 has 3 fields, expected 2050"),
        (zipped({TABLE: b""}), "holds {'art': 0, "),
        (zipped({TABLE: b"\n" + b"x," * 2048 + b"a,b\n"}), "cannot be read: could not convert"),
        (office_home(kinds=64)[0], "of 64 classes, expected {'art': 66, .*} and 65"),
        (office_home(HOME | {"Art": 65})[0], "holds {'art': 65, 'clip.*expected {'art': 66, "),
    ],
)
def test_another_archive_is_reported_in_one_line(put: Any, content: bytes, what: str) -> None:
    data, files = put(content)
    line = only_line(data.load, data.domains[0], files)
    assert re.search(what, line)
    assert line.endswith("; replace the file")


def saved(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


@pytest.fixture
def where(tmp_path: Path) -> Folders:
    (tmp_path / "given/office_home").mkdir(parents=True)
    return Folders(tmp_path / "given", tmp_path / "cache")


def features(rows: int, stream: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(stream)
    x = draw.random((rows, 2048), dtype=np.float32)
    return {"x": x, "y": draw.integers(0, 65, rows)}


def placed(where: Folders, domain: str, content: bytes) -> str:
    """Writes a domain's file and gives its sha256."""
    assert where.given is not None
    (where.given / f"office_home/{domain}.npz").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def sums(where: Folders) -> Any:
    domains = OfficeHome().domains
    return {domain: placed(where, domain, saved(**features(12, place))) for place, domain in enumerate(domains)}


def test_office_home_keeps_the_contract_of_datasets(where: Folders, sums: Any, keeps_contract: Any) -> None:
    keeps_contract(OfficeHome(train=10, sha256=sums), LocalFiles(where))


@pytest.mark.parametrize("how", ["domain", "pooled"])
def test_features_are_standardised_by_training_examples_on_request(where: Folders, sums: Any, how: Any) -> None:
    data, plain = OfficeHome(sha256=sums, standardise=how), OfficeHome(sha256=sums)
    inputs = {domain: data.load(domain, LocalFiles(where)).x for domain in data.domains}
    found, expected = data.fit(inputs), standardiser(inputs, how)
    assert np.array_equal(found("art", inputs["art"]), expected("art", inputs["art"]))
    assert plain.fit(inputs)("art", inputs["art"]) is inputs["art"]
    assert "standardise" not in plain.identity()
    assert [any("standardised" in note for note in one.notes) for one in (data, plain)] == [True, False]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64])
def test_integer_labels_of_any_dtype_and_one_column_are_accepted(where: Folders, dtype: Any) -> None:
    given = features(9)
    digest = placed(where, "product", saved(x=given["x"].astype(np.float64), y=given["y"].astype(dtype)[:, None]))
    data = OfficeHome(sha256={"product": digest}).load("product", LocalFiles(where))
    assert np.array_equal(data.x, given["x"])
    assert (data.x.dtype, data.y.dtype) == (np.float32, np.int64)
    assert np.array_equal(data.y, given["y"])


GOOD = features(5)
X, Y = GOOD["x"], GOOD["y"]


def changed(array: Any, place: Any, value: float) -> Any:
    array = array.astype(np.float64) if value > 99 else array.copy()
    array[place] = value
    return array


FAULTS = [
    (saved(x=X), "no array 'y'; it has x"),
    (saved(), "no array 'x'; it has none"),
    (saved(x=X[:, :512], y=Y), "x is float32 of shape (5, 512); it must be floats of shape (n, 2048)"),
    (saved(x=X[0], y=Y), "x is float32 of shape (2048,); it must be"),
    (saved(x=X.astype(np.int8), y=Y), "x is int8 of shape (5, 2048); it must be"),
    (saved(x=changed(X, (3, 7), np.nan), y=Y), "x is not finite in row 3; make the file again"),
    (saved(x=changed(X, (2, 0), 1e300), y=Y), "x is not finite in row 2; make the file again"),
    (saved(x=X, y=Y.astype(float)), "y is float64 of shape (5,); it must be whole numbers of shape (n,)"),
    (saved(x=X, y=np.zeros((5, 2), int)), "y is int64 of shape (5, 2); it must be"),
    (saved(x=X, y=np.int64(3)), "y is int64 of shape (); it must be"),
    (saved(x=X, y=Y[:4]), "x holds 5 examples and y 4 labels; make the file again"),
    (saved(x=X, y=changed(Y, 1, -1)), "y is -1 in row 1; it must be in 0..64"),
    (saved(x=X, y=changed(Y, 4, 65)), "y is 65 in row 4; it must be in 0..64"),
]


@pytest.mark.parametrize(("content", "what"), FAULTS)
def test_faults_are_reported_in_one_line(where: Folders, content: bytes, what: str) -> None:
    data = OfficeHome(sha256={"art": placed(where, "art", content)})
    line = only_line(data.load, "art", LocalFiles(where))
    assert line.startswith(f"{where.given}/office_home/art.npz: {what}")


def test_a_file_is_read_only_with_its_checksum(where: Folders) -> None:
    placed(where, "art", saved(**GOOD))
    with pytest.raises(DataError, match=r"art.npz: not read, since no checksum was given; it has sha256 .*;"):
        OfficeHome().load("art", LocalFiles(where))
    for wrong in ({"sketch": "ab" * 32}, {"art": "ab"}, {"art": "AB" * 32}, {"art": "ab" * 32 + "\n"}):
        with pytest.raises(ValidationError):
            OfficeHome(sha256=wrong)  # type: ignore[arg-type]
