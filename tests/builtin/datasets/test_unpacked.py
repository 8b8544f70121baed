"""Archives with bombs, unsafe paths or false sizes are refused; nothing is written to disk."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zipfile
import zlib

import numpy as np
import pytest
from scipy.io import savemat

from msda_bench_builtin.datasets import npz, opinions
from msda_bench_builtin.datasets.digits import idx, mat, mnist_m, usps
from msda_bench_builtin.datasets.unpacked import CHUNK, Limited, TooLargeError, read_limited, tar_gz
from tests.data.refusal import only_line

REFUSED = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error)


def tar(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return buffer.getvalue()


def member(name: str, size: int) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.size = size
    return found


def test_reading_stops_at_the_limit():
    data = bytes(range(100))
    assert read_limited(io.BytesIO(data), 100) == data
    with pytest.raises(TooLargeError, match="unpacks to more than 99 bytes"):
        read_limited(io.BytesIO(data), 99)
    stream = Limited(io.BytesIO(data), 99)
    assert stream.read(60) == data[:60]
    assert stream.seek(-50, io.SEEK_CUR) == 10
    with pytest.raises(TooLargeError):
        stream.seek(100)
    with pytest.raises(TooLargeError, match="a part claims"):
        stream.read(CHUNK + 1)


@pytest.mark.parametrize("most", [1 << 20, (1 << 20) - 1])
def test_a_decompression_bomb_is_abandoned_at_the_limit(monkeypatch, tmp_path, most):
    path = tmp_path / "f"
    for module, call in ((idx, lambda: idx.read_idx(path, 1)), (usps, lambda: usps.read_usps(path))):
        monkeypatch.setattr(module, "_MOST", most)
        path.write_bytes((gzip if module is idx else bz2).compress(bytes(1 << 20)))
        reported = f"unpacks to more than {most} bytes" in only_line(call)
        assert reported == (most < 1 << 20)


def test_a_tar_archive_of_very_many_bytes_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "f.tar.gz"
    path.write_bytes(tar(*(member(f"{n}.txt", 100_000) for n in range(20))))
    monkeypatch.setattr(mnist_m, "_MOST", 1_000_000)
    monkeypatch.setattr(opinions, "_MOST", 1_000_000)
    assert "unpacks to more than 1000000 bytes; replace the file" in only_line(mnist_m.read_mnist_m, path)
    assert "unpacks to more than 1000000 bytes" in only_line(opinions._members, path)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_name_of_huge_declared_size_is_not_read(tmp_path, kind):
    head = member("long", 1 << 33)
    head.type = kind
    path = tmp_path / "f.tar.gz"
    path.write_bytes(gzip.compress(head.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 16)))
    assert "a part claims" in only_line(mnist_m.read_mnist_m, path)
    assert "a part claims" in only_line(opinions._members, path)


def test_a_damaged_tar_archive_is_read_or_refused(tmp_path):
    path = tmp_path / "f.tar.gz"
    whole = gzip.decompress(tar(member("a.txt", 5), member("x" * 150, 700)))
    for place in range(0, 3000, 11):
        path.write_bytes(gzip.compress(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :], 1))
        try:
            with tar_gz(path, 1 << 20) as archive:
                assert len([each.name for each in archive]) <= 2
        except REFUSED:
            pass


def test_an_npz_archive_that_explodes_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "f.npz"
    np.savez_compressed(path, x=np.zeros(200_000), y=np.zeros(1))
    monkeypatch.setattr(npz, "_MOST", 1_000_000)
    assert "it unpacks to 1600" in only_line(npz.read_npz, path, ("x", "y"))


def test_a_member_that_holds_more_than_its_archive_claims_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "f.npz"
    array = io.BytesIO()
    np.save(array, np.zeros(100_000))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", array.getvalue())
    size = len(array.getvalue()).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (200).to_bytes(4, "little")))
    assert "cannot be read" in only_line(npz.read_npz, path, ("x",))


def test_matlab_arrays_of_huge_declared_size_are_refused(monkeypatch, tmp_path):
    path = tmp_path / "f.mat"
    savemat(path, {"X": np.zeros((32, 32, 3, 9), np.uint8), "y": np.ones((9, 1))}, do_compression=True)
    assert len(mat.read_mat(path, zero=10).y) == 9
    monkeypatch.setattr(mat, "_MOST", 32 * 32 * 3 * 9)
    assert "it claims 27720 bytes, more than 27648; replace the file" in only_line(mat.read_mat, path, zero=10)
