"""Office-Home features that the user supplies, and npz archives with every kind of fault."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from msda_bench.api import DataError
from msda_bench.data import Folders, LocalFiles
from msda_bench_builtin.datasets import OfficeHome
from tests.data.refusal import only_line


@pytest.fixture
def where(tmp_path: Path) -> Folders:
    (tmp_path / "given/office_home").mkdir(parents=True)
    return Folders(tmp_path / "given", tmp_path / "cache")


def features(rows: int, stream: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(stream)
    x = draw.random((rows, 2048), dtype=np.float32)
    x[:, 17] = 0.25  # as features of a dead unit are
    return {"x": x, "y": draw.integers(0, 65, rows)}


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def put(where: Folders, domain: str, content: bytes) -> str:
    """Writes a domain's file and gives its sha256."""
    assert where.given is not None
    (where.given / f"office_home/{domain}.npz").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def sums(where: Folders) -> Any:
    domains = OfficeHome().domains
    return {domain: put(where, domain, npz(**features(12, place))) for place, domain in enumerate(domains)}


def test_office_home_keeps_the_contract_of_datasets(where: Folders, sums: Any, keeps_contract: Any) -> None:
    keeps_contract(OfficeHome(train=10, sha256=sums), LocalFiles(where))


@pytest.mark.parametrize("how", ["domain", "pooled"])
def test_features_are_standardised_by_training_examples_on_request(where: Folders, sums: Any, how: Any) -> None:
    data, plain = OfficeHome(sha256=sums, standardise=how), OfficeHome(sha256=sums)
    inputs = {domain: data.load(domain, LocalFiles(where)).x + at for at, domain in enumerate(data.domains)}
    mapped = data.fit({name: x[:9] for name, x in inputs.items()})
    fitted = {name: np.asarray(mapped(name, x[:9])) for name, x in inputs.items()}
    assert how == "pooled" or not fitted["art"][:, 17].any()
    for x in fitted.values() if how == "domain" else [np.concatenate(list(fitted.values()))]:
        np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(np.delete(x, 17, 1).std(0), 1, atol=1e-4)
    assert plain.fit(inputs)("art", inputs["art"]) is inputs["art"]
    assert "standardise" not in plain.identity()
    assert [any("standardised" in note for note in one.notes) for one in (data, plain)] == [True, False]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64])
def test_integer_labels_of_any_dtype_and_one_column_are_accepted(where: Folders, dtype: Any) -> None:
    given = features(9)
    digest = put(where, "product", npz(x=given["x"].astype(np.float64), y=given["y"].astype(dtype)[:, None]))
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


def members(content: bytes) -> bytes:
    """An archive whose members hold this."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.npy", content)
        archive.writestr("y.npy", content)
    return stream.getvalue()


HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
HUGE = b"\x93NUMPY\x01\x00" + len(HEADER).to_bytes(2, "little") + HEADER
WRONG = [
    (npz(x=X), "no array 'y'; it has x"),
    (npz(), "no array 'x'; it has none"),
    (npz(x=X[:, :512], y=Y), "x is float32 of shape (5, 512); it must be floats of shape (n, 2048)"),
    (npz(x=X[0], y=Y), "x is float32 of shape (2048,); it must be"),
    (npz(x=X.astype(np.int8), y=Y), "x is int8 of shape (5, 2048); it must be"),
    (npz(x=changed(X, (3, 7), np.nan), y=Y), "x is not finite in row 3; make the file again"),
    (npz(x=changed(X, (2, 0), 1e300), y=Y), "x is not finite in row 2; make the file again"),
    (npz(x=X, y=Y.astype(float)), "y is float64 of shape (5,); it must be whole numbers of shape (n,)"),
    (npz(x=X, y=np.zeros((5, 2), int)), "y is int64 of shape (5, 2); it must be"),
    (npz(x=X, y=np.int64(3)), "y is int64 of shape (); it must be"),
    (npz(x=X, y=Y[:4]), "x holds 5 examples and y 4 labels; make the file again"),
    (npz(x=X, y=changed(Y, 1, -1)), "y is -1 in row 1; it must be in 0..64"),
    (npz(x=X, y=changed(Y, 4, 65)), "y is 65 in row 4; it must be in 0..64"),
    (npz(x=X, y=np.array([None] * 5)), "array 'y' holds Python objects, which are never read"),
    (b"", "is empty"),
    *((content, "is no npz archive; write it with numpy.savez") for content in (b"PK", b"hello", HUGE)),
    (members(HUGE), "cannot be read ("),
    (members(b"text"), "cannot be read (EOF: reading magic string"),
]


@pytest.mark.parametrize(("content", "what"), WRONG)
def test_faults_are_reported_in_one_line(where: Folders, content: bytes, what: str) -> None:
    data = OfficeHome(sha256={"art": put(where, "art", content)})
    line = only_line(data.load, "art", LocalFiles(where))
    assert line.startswith(f"{where.given}/office_home/art.npz: {what}")


def test_a_file_is_read_only_with_its_checksum(where: Folders) -> None:
    digest, files = put(where, "art", npz(**GOOD)), LocalFiles(where)
    with pytest.raises(DataError, match=f"art.npz: not read, since no checksum was given; it has sha256 {digest};"):
        OfficeHome().load("art", files)
    with pytest.raises(DataError, match=r"art.npz: wrong checksum: sha256 .* expected abababababab"):
        OfficeHome(sha256={"art": "ab" * 32}).load("art", files)
    with pytest.raises(DataError, match=r"office_home/clipart.npz: not in .*give its sha256 in the suite"):
        OfficeHome(sha256={"art": digest}).load("clipart", files)
    for wrong in ({"sketch": "ab" * 32}, {"art": "ab"}, {"art": "AB" * 32}, {"art": "ab" * 32 + "\n"}):
        with pytest.raises(ValidationError):
            OfficeHome(sha256=wrong)  # type: ignore[arg-type]
