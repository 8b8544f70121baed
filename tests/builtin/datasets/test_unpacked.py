"""Archives with bombs, unsafe names or false sizes are refused; nothing is written to disk."""

import bz2
import gzip
import io
import tarfile
import zlib

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench_builtin.datasets import opinions
from msda_bench_builtin.datasets.digits import readers
from msda_bench_builtin.datasets.tables.arrays import read_arrays
from msda_bench_builtin.datasets.unpacked import CHUNK, Limited, tar_gz
from tests.builtin.conftest import mat, tarred, zipped
from tests.data.conftest import only_line

REFUSED = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error)


def test_reading_stops_at_the_limit():
    data = bytes(range(100))
    assert Limited(io.BytesIO(data), 100).read() == data
    with pytest.raises(OSError, match="unpacks to more than 99 bytes"):
        Limited(io.BytesIO(data), 99).read()
    stream = Limited(io.BytesIO(data), 99)
    assert stream.read(60) == data[:60]
    assert stream.seek(-50, io.SEEK_CUR) == 10
    with pytest.raises(OSError, match="unpacks to"):
        stream.seek(100)
    with pytest.raises(OSError, match="a part claims"):
        stream.read(CHUNK + 1)


MORE = "unpacks to more than"
MANY = tarred({f"{place}.txt": bytes(100_000) for place in range(20)})
DIGITS = {"X": np.zeros((32, 32, 3, 9), np.uint8), "y": np.ones((9, 1))}


def read_digits(path):
    return readers.read_mat(path, zero=10)


@pytest.mark.parametrize(
    ("limit", "content", "call", "most", "what"),
    [
        ("digits.readers._MOST", gzip.compress(bytes(1 << 20)), lambda path: readers.read_idx(path, 1), 1 << 20, MORE),
        ("digits.readers._MOST", bz2.compress(bytes(1 << 20)), readers.read_usps, 1 << 20, MORE),
        ("digits.readers._MOST_TAR", MANY, readers.read_mnist_m, 2_100_000, MORE),
        ("opinions._MOST", MANY, opinions._members, 2_100_000, MORE),
        ("digits.readers._MOST_MAT", mat(**DIGITS), read_digits, 27720, "it claims 27720 bytes"),
    ],
    ids=["idx", "usps", "mnist_m", "opinions", "mat"],
)
def test_a_decompression_bomb_is_abandoned_at_the_limit(monkeypatch, tmp_path, limit, content, call, most, what):
    path = tmp_path / "f"
    path.write_bytes(content)
    place = f"msda_bench_builtin.datasets.{limit}"
    monkeypatch.setattr(place, most // 2 if call in {readers.read_mnist_m, opinions._members} else most - 1)
    assert what in only_line(call, path)
    monkeypatch.setattr(place, most)
    try:
        call(path)
    except DataError as error:
        assert what not in str(error)  # noqa: PT017 - what it unpacked may be no such file


def test_a_damaged_tar_archive_is_read_or_refused(tmp_path):
    path = tmp_path / "f.tar.gz"
    whole = gzip.decompress(tarred({f"{'x' * 150}{place}": bytes(size) for place, size in enumerate((5, 700))}))
    for place in range(0, 3000, 23):
        path.write_bytes(gzip.compress(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :], 1))
        try:
            with tar_gz(path, 1 << 20) as archive:
                assert len([member.name for member in archive]) <= 2
        except REFUSED:
            pass


def test_a_member_that_holds_more_than_its_archive_claims_is_not_read_to_its_end(tmp_path):
    path, array = tmp_path / "f.npz", io.BytesIO()
    np.save(array, np.zeros(100_000))
    size = array.tell().to_bytes(4, "little")
    path.write_bytes(zipped({"x.npy": array.getvalue()}).replace(size, (200).to_bytes(4, "little")))
    assert "cannot be read" in only_line(read_arrays, path, ("x",))
