"""Amazon reviews: the real files, and svmlight files that are read or named with their line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench_builtin.datasets import Amazon
from msda_bench_builtin.datasets.amazon import read_svmlight
from tests.data.refusal import only_line


def test_train_file_comes_before_test_file(crafted, tmp_path):
    (tmp_path / "dvd_test.svmlight").write_bytes(b"-1 2:3\n")
    (tmp_path / "dvd_train.svmlight").write_bytes(b"1 0:1 4999:2\n-1\n")
    data = Amazon().load("dvd", crafted)
    assert data.y.tolist() == [1, 0, 0]
    assert data.x.toarray()[:, [0, 2, 4999]].tolist() == [[1, 0, 2], [0, 0, 0], [0, 3, 0]]


COLUMNS = 50


def read(folder: Path, content: bytes):
    path = folder / "f.svmlight"
    path.write_bytes(content)
    return read_svmlight(path, COLUMNS)


def test_a_small_file_is_read(tmp_path):
    counts, labels = read(tmp_path, b"1 0:6 7:12 49:1\n-1 3:2\n+1 \n-1\n1 0:1\n")
    assert labels.tolist() == [1, -1, 1, -1, 1]
    assert counts.shape == (5, COLUMNS)
    assert counts.dtype == np.float32
    assert counts.indices.tolist() == [0, 7, 49, 3, 0]
    assert counts.data.tolist() == [6, 12, 1, 2, 1]
    assert counts.indptr.tolist() == [0, 3, 4, 4, 4, 5]


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        (b"2 0:1", "label '2' is neither 1 nor -1"),
        (b"", "label '' is neither"),
        (b"+-1 0:1", "label '+-1' is neither"),
        (b"1 50:1", "index 50 is not below 50"),
        (b"1 4:1 9999999999:1", "'9999999999:1' is not `index:count` in whole numbers"),
        (b"1 4:1 4:1", "index 4 does not rise after 4"),
        (b"1 4:x", "'4:x' is not `index:count`"),
        (b"1 4:1.5", "'4:1.5' is not"),
        (b"1 4:-1", "'4:-1' is not"),
        (b"1 4", "'4' is not"),
        (b"1 4:1\r", "'4:1\\r' is not"),
        (b"1 4:\xff", "'4:\ufffd' is not"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path, line, mistake):
    text = only_line(read, tmp_path, b"1 0:1\n-1 1:1\n" + line + b"\n1 0:1\nalso wrong\n")
    assert text.startswith(f"{tmp_path / 'f.svmlight'}:3: {mistake}")
    assert text.endswith("; fetch the file again")


@pytest.mark.parametrize("content", [b"", b"1 0:1\n-1 0:", b"1 0:1"])
def test_a_truncated_file_is_named(tmp_path, content):
    with pytest.raises(DataError, match=r"f\.svmlight: empty or truncated"):
        read(tmp_path, content)
