from __future__ import annotations

import bz2

import numpy as np
import pytest

from msda_bench_builtin.datasets.digits.usps import read_usps
from tests.data.refusal import only_line


def line(label: int, values) -> str:
    return f"{label} " + " ".join(f"{i}:{value}" for i, value in enumerate(values, 1))


GOOD = [line(1, [-1.0] * 256), line(10, [1.0] * 128 + [0.0] * 128), "3 16:1"]


@pytest.fixture
def put(tmp_path):
    def write(*lines: str):
        path = tmp_path / "usps.bz2"
        path.write_bytes(bz2.compress("".join(f"{text} \n" for text in lines).encode()))
        return path

    return write


def test_labels_and_greys_are_read(put):
    part = read_usps(put(*GOOD))
    assert part.y.tolist() == [0, 9, 2]
    assert part.x.shape == (3, 3, 32, 32)
    assert part.x[0].max() == 0
    assert np.unique(part.x[1, 0, :14]).tolist() == [255]
    assert np.unique(part.x[1, 0, 18:]).tolist() == [128]
    assert part.x[2, 1, 0, -1] == 255  # value 16 is the right end of the first row; those left out are 0
    assert np.unique(part.x[2, :, 3:]).tolist() == [128]


@pytest.mark.parametrize(
    "bad", ["", "1 257:0.5", "1 0:0.5", "1 1.5:0.5", "1 7:1.5", "1 7:nan", "1 0.5", "one 1:0.5", "1 2:x", "2:0.5"]
)
def test_a_bad_line_is_named(put, bad):
    assert "usps.bz2:2: not a label and pairs `index:value`" in only_line(read_usps, put(GOOD[0], bad, GOOD[1]))


@pytest.mark.parametrize("label", [0, 11, 2.5])
def test_a_label_out_of_range_is_named(put, label):
    found = only_line(read_usps, put(GOOD[0], line(label, [0.0] * 256)))
    assert f"usps.bz2: label {label} of image 1 is not one of 1..10" in found


def test_a_truncated_or_empty_file_is_named(put):
    path = put(*GOOD)
    whole = path.read_bytes()
    for content in (whole[:-10], b"no bzip2", b""):
        path.write_bytes(content)
        found = only_line(read_usps, path)
        assert "usps.bz2: not a whole bzip2 file" in found or "usps.bz2: holds no images" in found
