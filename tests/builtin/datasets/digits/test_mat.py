from __future__ import annotations

import io
import re

import numpy as np
import pytest
from scipy.io import savemat

from msda_bench_builtin.datasets.digits.mat import read_mat
from tests.data.refusal import only_line

X = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), np.uint8)
Y = np.array([[1], [10], [9], [3]], np.uint8)


def mat(**arrays) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


@pytest.fixture
def put(tmp_path):
    def write(content: bytes):
        path = tmp_path / "train_32x32.mat"
        path.write_bytes(content)
        return path

    return write


def test_images_and_labels_of_house_numbers_are_read(put):
    part = read_mat(put(mat(X=X, y=Y)), zero=10)
    assert part.x.shape == (4, 3, 32, 32)
    assert part.x.dtype == np.uint8
    assert np.array_equal(part.x[2, 1], X[:, :, 1, 2])
    assert part.y.tolist() == [1, 0, 9, 3]
    assert part.y.dtype == np.int64


def test_synthetic_digits_may_label_the_zero_0_or_10(put):
    labels = np.array([0, 10, 9, 3], np.float64)
    assert read_mat(put(mat(X=X, y=labels)), zero=None).y.tolist() == [0, 0, 9, 3]


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"y": Y}, "holds no array 'X'"),
        ({"X": X}, "holds no array 'y'"),
        ({"X": X.astype(float), "y": Y}, r"X is float64 \(32, 32, 3, 4\), expected uint8 \(32, 32, 3, images\)"),
        ({"X": X[:28], "y": Y}, r"X is uint8 \(28, 32, 3, 4\)"),
        ({"X": X[..., 0], "y": Y}, r"X is uint8 \(32, 32, 3\)"),
        ({"X": X, "y": Y[:3]}, r"y is uint8 \(3, 1\), expected 4 labels"),
        ({"X": X, "y": "four"}, r"y is .*, expected 4 labels"),
        ({"X": X, "y": Y + 1}, "label 11 of image 1 is not one of 1..10"),
        ({"X": X, "y": Y * 0}, "label 0 of image 0 is not one of 1..10"),
        ({"X": X, "y": Y - 0.5}, "label 0.5 of image 0 is not one of 1..10"),
        ({"X": X, "y": np.array([1, np.nan, 2, 3])}, "label nan of image 1 is not one of 1..10"),
    ],
)
def test_missing_content_is_reported_in_one_line(put, arrays, what):
    line = only_line(read_mat, put(mat(**arrays)), zero=10)
    assert re.search(what, line)
    assert line.endswith("replace the file")


@pytest.mark.parametrize("share", [0.0, 0.002, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_reported_in_one_line(put, share):
    content = mat(X=X, y=Y)
    path = put(content[: int(share * len(content))])
    assert only_line(read_mat, path, zero=10).startswith(f"{path}: ")


@pytest.mark.parametrize("content", [b"no MATLAB file at all" * 20, b"\x89HDF\r\n\x1a\n" + bytes(600)])
def test_another_format_is_reported_in_one_line(put, content):
    assert "not a whole MATLAB file" in only_line(read_mat, put(content), zero=10)
