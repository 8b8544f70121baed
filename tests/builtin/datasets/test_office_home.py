"""Office-Home features from files that the user supplies."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from msda_bench.api import DataError
from msda_bench.data import Folders, LocalFiles
from msda_bench.testing import checks, contract
from msda_bench_builtin.datasets import OfficeHome
from tests.builtin.suites import SUITES, loaded
from tests.data.refusal import only_line


@pytest.fixture
def where(tmp_path: Path) -> Folders:
    (tmp_path / "given/office_home").mkdir(parents=True)
    return Folders(tmp_path / "given", tmp_path / "cache")


def put(where: Folders, domain: str, **arrays: Any) -> str:
    """Writes a domain's file and gives its sha256."""
    assert where.given is not None
    path = where.given / f"office_home/{domain}.npz"
    np.savez(path, **arrays)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def features(rows: int, stream: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(stream)
    return {"x": draw.random((rows, 2048), dtype=np.float32), "y": draw.integers(0, 65, rows)}


def line_of(where: Folders, **arrays: Any) -> str:
    digest = put(where, "art", **arrays)
    line = only_line(OfficeHome(sha256={"art": digest}).load, "art", LocalFiles(where))
    start = f"{where.given}/office_home/art.npz: "
    assert line.startswith(start)
    return line.removeprefix(start)


def test_office_home_keeps_the_contract_of_datasets(where: Folders) -> None:
    sums = {domain: put(where, domain, **features(12, place)) for place, domain in enumerate(OfficeHome().domains)}
    kit: Any = contract(OfficeHome(train=10, sha256=sums))  # type: ignore[arg-type]
    type(kit).files = LocalFiles(where)
    for check in checks("dataset"):
        getattr(kit, check)()


@pytest.mark.parametrize("how", ["domain", "pooled"])
def test_features_are_standardised_by_training_examples_on_request(where: Folders, how: Any) -> None:
    sums = {domain: put(where, domain, **features(12, place)) for place, domain in enumerate(OfficeHome().domains)}
    data = OfficeHome(sha256=sums, standardise=how)  # type: ignore[arg-type]
    inputs = {domain: data.load(domain, LocalFiles(where)).x * (1 + at) for at, domain in enumerate(data.domains)}
    mapped = data.fit({name: x[:9] for name, x in inputs.items()})
    found = {name: np.asarray(mapped(name, x[:9])) for name, x in inputs.items()}
    for x in found.values() if how == "domain" else [np.concatenate(list(found.values()))]:
        np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(x.std(0), 1, atol=1e-4)
    plain = OfficeHome(sha256=sums)  # type: ignore[arg-type]
    assert plain.fit(inputs)("art", inputs["art"]) is inputs["art"]
    assert "standardise" not in plain.identity()
    assert any("standardised" in note for note in data.notes)
    assert not any("standardised" in note for note in plain.notes)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
def test_integer_labels_of_any_dtype_and_one_column_are_accepted(where: Folders, dtype: Any) -> None:
    given = features(9)
    digest = put(where, "product", x=given["x"].astype(np.float64), y=given["y"].astype(dtype)[:, None])
    data = OfficeHome(sha256={"product": digest}).load("product", LocalFiles(where))
    assert np.array_equal(data.x, given["x"])
    assert data.x.dtype == np.float32
    assert data.y.dtype == np.int64
    assert np.array_equal(data.y, given["y"])


GOOD = features(5)
NAN, HUGE, LOW, HIGH = GOOD["x"].copy(), GOOD["x"].astype(np.float64), GOOD["y"].copy(), GOOD["y"].copy()
NAN[3, 7], HUGE[2, 0], LOW[1], HIGH[4] = np.nan, 1e300, -1, 65


@pytest.mark.parametrize(
    ("arrays", "reported"),
    [
        ({"x": GOOD["x"]}, "has no array y; it holds x"),
        (GOOD | {"x": GOOD["x"][:, :512]}, "x is float32 of shape (5, 512); it must be floats of shape (n, 2048)"),
        (GOOD | {"x": GOOD["x"][0]}, "x is float32 of shape (2048,); it must be"),
        (GOOD | {"x": GOOD["x"].astype(np.int8)}, "x is int8 of shape (5, 2048); it must be"),
        (GOOD | {"x": NAN}, "x is not finite in row 3; make the file again"),
        (GOOD | {"x": HUGE}, "x is not finite in row 2; make the file again"),
        (GOOD | {"y": GOOD["y"].astype(float)}, "y is float64 of shape (5,); it must be whole numbers of shape (n,)"),
        (GOOD | {"y": np.zeros((5, 2), int)}, "y is int64 of shape (5, 2); it must be"),
        (GOOD | {"y": np.int64(3)}, "y is int64 of shape (); it must be"),
        (GOOD | {"y": GOOD["y"][:4]}, "x holds 5 examples and y 4 labels; make the file again"),
        (GOOD | {"y": LOW}, "y is -1 in row 1; it must be in 0..64"),
        (GOOD | {"y": HIGH}, "y is 65 in row 4; it must be in 0..64"),
        (GOOD | {"y": np.array([None] * 5)}, "cannot be read (Object arrays cannot be loaded"),
    ],
)
def test_faults_are_reported_in_one_line(where: Folders, arrays: dict[str, Any], reported: str) -> None:
    assert line_of(where, **arrays).startswith(reported)


def test_a_file_is_read_only_with_its_checksum(where: Folders) -> None:
    digest = put(where, "art", **GOOD)
    with pytest.raises(DataError, match=f"art.npz: not read, since no checksum was given; it has sha256 {digest};"):
        OfficeHome().load("art", LocalFiles(where))
    with pytest.raises(DataError, match=r"art.npz: wrong checksum: sha256 .* expected abababababab"):
        OfficeHome(sha256={"art": "ab" * 32}).load("art", LocalFiles(where))
    with pytest.raises(DataError, match=r"office_home/clipart.npz: not in .*give its sha256 in the suite"):
        OfficeHome(sha256={"art": digest}).load("clipart", LocalFiles(where))


@pytest.mark.parametrize("wrong", [{"sketch": "ab" * 32}, {"art": "ab"}, {"art": "AB" * 32}, {"art": "ab" * 32 + "\n"}])
def test_checksums_are_checked(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        OfficeHome(sha256=wrong)  # type: ignore[arg-type]


def test_the_suite_is_valid(tmp_path: Path) -> None:
    _, plain = loaded("office-home-own-features")
    assert {cell.dataset.name for cell in plain.cells.values()} == {"office_home"}
    assert {cell.scheme.name for cell in plain.cells.values()} == {"pooled", "adapt", "mdmn", "m3sda", "target_only"}
    pinned = tmp_path / "pinned.yaml"
    text = (SUITES / "office-home-own-features.yaml").read_text(encoding="utf-8")
    assert text.count("sha256: {}") == 1
    pinned.write_text(text.replace("sha256: {}", f"sha256: {{art: {'ab' * 32}}}"), encoding="utf-8")
    _, found = loaded(pinned)
    assert len(found.cells) == len(plain.cells)
    assert not found.cells.keys() & plain.cells.keys()
