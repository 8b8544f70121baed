from __future__ import annotations

import dataclasses
import hashlib

import pytest

from msda_bench.api import ByHand, File, Sdist, Url
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
def test_faults_of_a_file_are_described(tmp_path, make_file, content, expected):
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


def test_presence_checks_only_the_size(tmp_path, make_file):
    path = tmp_path / "f"
    assert not present(path, make_file(b"right"))
    path.write_bytes(b"wrong")
    assert present(path, make_file(b"right"))
    assert not present(path, make_file(b"longer"))


def test_alternative_files_with_a_known_checksum_are_accepted(tmp_path, make_file):
    other = (hashlib.sha256(b"squeezed").hexdigest(), 8)
    file = dataclasses.replace(make_file(b"right"), same=(other,))
    path = tmp_path / "f"
    for content, expected in [(b"right", None), (b"squeezed", None), (b"squeezes", "wrong checksum: sha256 375f")]:
        path.write_bytes(content)
        found = fault(path, file)
        assert found == expected or (expected and found and found.startswith(expected))
        assert present(path, file)
    path.write_bytes(b"rig")
    assert fault(path, file) == "truncated: 3 bytes, expected 5"
    assert not present(path, file)


def test_an_md5_is_used_if_no_sha256_was_published(tmp_path):
    file = File("f", None, None, ByHand("nobody"), md5=hashlib.md5(b"right", usedforsecurity=False).hexdigest())
    path = tmp_path / "f"
    path.write_bytes(b"right")
    assert fault(path, file) is None
    path.write_bytes(b"wrong")
    assert present(path, file)
    assert (fault(path, file) or "").startswith("wrong checksum: md5 2bda2998d9b0..., expected 7c4f29407893...")


@pytest.mark.parametrize(("origin", "md5"), [(Url(("https://example.org/f",)), None), (Sdist("toy", "1.0"), "0" * 32)])
def test_a_file_without_a_checksum_is_refused(origin, md5):
    with pytest.raises(ValueError, match="f: a file needs a sha256"):
        File("f", None, 1, origin, md5=md5)


def test_a_file_without_a_checksum_is_refused_with_its_actual_one(tmp_path):
    file = File("f", None, None, ByHand("yours"))
    assert file.checksum is None
    assert fault(tmp_path / "f", file) == "missing"
    (tmp_path / "f").write_bytes(b"any")
    assert present(tmp_path / "f", file)
    found = hashlib.sha256(b"any").hexdigest()
    assert fault(tmp_path / "f", file) == f"not read, since no checksum was given; it has sha256 {found}"


def test_a_sha256_is_checked_although_the_md5_is_right(tmp_path):
    file = File(
        "f",
        hashlib.sha256(b"right").hexdigest(),
        5,
        ByHand(""),
        md5=hashlib.md5(b"wrong", usedforsecurity=False).hexdigest(),
    )
    (tmp_path / "f").write_bytes(b"wrong")
    assert (fault(tmp_path / "f", file) or "").startswith("wrong checksum: sha256")


def test_a_sha256_prefix_is_used_if_no_more_was_published(tmp_path):
    path = tmp_path / "net-01234567.pth"
    path.write_bytes(b"weights")
    digits = hashlib.sha256(b"weights").hexdigest()
    assert fault(path, File("net.pth", digits[:8], None, Url(()))) is None
    wrong = fault(path, File("net.pth", digits[1:9], None, Url(())))
    assert wrong == f"wrong checksum: sha256 {digits[:12]}..., expected {digits[1:9]}..."
    with pytest.raises(ValueError, match=r"net\.pth: its sha256 has 7 digits; 8 are needed"):
        File("net.pth", digits[:7], None, Url(()))
    with pytest.raises(ValueError, match="63 digits; 64 are needed"):  # pip asks for all of them
        File("net.pth", digits[:63], None, Sdist("net", "1.0"))
