from __future__ import annotations

import pytest

from msda_bench.data.check import fault, present


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"right", None),
        (b"rig", "truncated: 3 bytes, expected 5"),
        (b"right on", "too long: 8 bytes, expected 5"),
        (b"wrong", "wrong checksum: sha256 8810ad581e59..., expected "),
    ],
)
def test_what_is_wrong_is_said(tmp_path, make_file, content, expected):
    path = tmp_path / "f"
    path.write_bytes(content)
    found = fault(path, make_file(b"right"))
    assert found == expected or (expected and found and found.startswith(expected))


def test_absence_and_folders_are_faults(tmp_path, make_file):
    assert fault(tmp_path / "none", make_file(b"x")) == "missing"
    (tmp_path / "plain").write_bytes(b"x")
    assert fault(tmp_path / "plain/below", make_file(b"x")) == "missing"
    size = tmp_path.stat().st_size
    assert (fault(tmp_path, make_file(b"x" * size)) or "").startswith("not readable")


def test_presence_looks_at_the_size_alone(tmp_path, make_file):
    path = tmp_path / "f"
    assert not present(path, make_file(b"right"))
    path.write_bytes(b"wrong")
    assert present(path, make_file(b"right"))
    assert not present(path, make_file(b"longer"))
