from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from msda_bench_builtin.datasets.digits.idx import read_idx, read_mnist
from tests.data.refusal import only_line


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


IMAGES = idx(np.arange(3 * 28 * 28).reshape(3, 28, 28) % 256)
LABELS = idx(np.array([7, 0, 9]))


@pytest.fixture
def put(tmp_path):
    def write(images: bytes = IMAGES, labels: bytes = LABELS):
        paths = tmp_path / "images.gz", tmp_path / "labels.gz"
        for path, content in zip(paths, (images, labels), strict=True):
            path.write_bytes(content)
        return paths

    return write


@pytest.mark.parametrize("packed", [lambda content: content, gzip.compress])
def test_files_are_read_with_and_without_gzip(put, packed):
    part = read_mnist(*put(packed(IMAGES), packed(LABELS)))
    assert part.x.shape == (3, 3, 32, 32)
    assert part.x.dtype == np.uint8
    assert part.y.tolist() == [7, 0, 9]
    assert part.y.dtype == np.int64
    assert np.array_equal(part.x[:, 0], part.x[:, 2])
    assert part.x.strides[1] == 0  # the channels of a grey image share their memory


def test_the_array_equals_the_files_content(put):
    images, _ = put()
    assert np.array_equal(read_idx(images, 3).ravel(), np.arange(3 * 28 * 28) % 256)


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({"images": b"\x00\x00\x0d\x03" + IMAGES[4:]}, "images.gz: magic number 00000d03, expected 00000803"),
        ({"images": LABELS}, "images.gz: magic number 00000801, expected 00000803"),
        ({"images": b""}, "images.gz: magic number missing, expected 00000803"),
        ({"images": IMAGES[:9]}, "images.gz: truncated within its 16 bytes of head"),
        ({"images": IMAGES[:-1]}, "images.gz: 2351 bytes of data, expected 2352"),
        ({"images": IMAGES + b"\0"}, "images.gz: 2353 bytes of data, expected 2352"),
        ({"images": gzip.compress(IMAGES)[:-20]}, "images.gz: not a whole gzip file"),
        ({"images": b"\x1f\x8b" + IMAGES}, "images.gz: not a whole gzip file"),
        ({"images": idx(np.zeros((3, 28, 27)))}, "images.gz: images of 28x27 pixels, expected 28x28"),
        ({"labels": idx(np.array([7, 0]))}, "labels.gz: 2 labels for 3 images"),
        ({"labels": idx(np.array([7, 10, 9]))}, "labels.gz: label 10 of image 1 is not one of 0..9"),
    ],
)
def test_faults_are_reported_in_one_line_with_the_file(put, files, what):
    line = only_line(read_mnist, *put(**files))
    assert what in line
    assert line.endswith("replace the file")
