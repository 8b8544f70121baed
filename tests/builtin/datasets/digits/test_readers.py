"""The files of digits: what is read from them, and one line for every file that is damaged or holds something else."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from msda_bench_builtin.datasets.digits.part import enlarge
from msda_bench_builtin.datasets.digits.readers import read_mat, read_mnist, read_mnist_m, read_usps
from tests.data.refusal import only_line

DRAW = np.random.default_rng(0)


def idx(array: Any) -> bytes:
    array = np.asarray(array)
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def mat(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


def png(pixels: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def usps(*lines: str) -> bytes:
    return bz2.compress("".join(f"{line} \n" for line in lines).encode())


def grey(label: float, values: Any) -> str:
    return f"{label} " + " ".join(f"{i}:{value}" for i, value in enumerate(values, 1))


def archive(members: dict[str, Any]) -> bytes:
    """A tar.gz; a member of text is a link to it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        folder = tarfile.TarInfo("mnist_m")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


IMAGES, LABELS = idx(np.arange(3 * 28 * 28).reshape(3, 28, 28) % 256), idx([7, 0, 9])
X, Y = DRAW.integers(0, 256, (32, 32, 3, 4), np.uint8), np.array([[1], [10], [9], [3]], np.uint8)
DARK, HALF, LAST = grey(1, [-1.0] * 256), grey(10, [1.0] * 128 + [0.0] * 128), "3 16:1"
PIXELS = DRAW.integers(0, 256, (3, 32, 32, 3), np.uint8)
IMAGE = "mnist_m/mnist_m_train/00000001.png"
TRAIN, TEST = (f"mnist_m/mnist_m_{part}_labels.txt" for part in ("train", "test"))
MEMBERS = {
    IMAGE: png(PIXELS[0]),
    "mnist_m/mnist_m_train/00000007.png": png(PIXELS[1]),
    "mnist_m/mnist_m_test/00000001.png": png(PIXELS[2]),
    TRAIN: b"00000007.png 9\n00000001.png 0\n",
    TEST: b"00000001.png 3\n",
    "mnist_m/.DS_Store": b"passed over",
}
GOOD = {"images.gz": IMAGES, "labels.gz": LABELS, "f.mat": mat(X=X, y=Y), "f.bz2": usps(DARK, HALF, LAST)}
GOOD["f.tar.gz"] = archive(MEMBERS)
READ: dict[str, Callable[[Path], Any]] = {
    "images.gz": lambda folder: read_mnist(folder / "images.gz", folder / "labels.gz"),
    "f.mat": lambda folder: read_mat(folder / "f.mat", zero=10),
    "f.bz2": lambda folder: read_usps(folder / "f.bz2"),
    "f.tar.gz": lambda folder: read_mnist_m(folder / "f.tar.gz"),
}
READ["labels.gz"] = READ["images.gz"]


def read(folder: Path, name: str, content: bytes) -> Any:
    for other, good in GOOD.items():
        (folder / other).write_bytes(good)
    (folder / name).write_bytes(content)
    return READ[name](folder)


@pytest.mark.parametrize("packed", [lambda content: content, gzip.compress])
def test_mnist_is_read_with_and_without_gzip(tmp_path: Path, packed: Any) -> None:
    part = read(tmp_path, "images.gz", packed(IMAGES))
    assert (part.x.shape, part.x.dtype, part.y.dtype) == ((3, 3, 32, 32), np.uint8, np.int64)
    assert part.y.tolist() == [7, 0, 9]
    assert np.array_equal(part.x[:, 2], enlarge(np.frombuffer(IMAGES, np.uint8, offset=16).reshape(3, 28, 28), 32))
    assert part.x.strides[1] == 0  # the channels of a grey image share their memory


def test_house_numbers_are_read_and_synthetic_digits_may_label_the_zero_0_or_10(tmp_path: Path) -> None:
    part = read(tmp_path, "f.mat", GOOD["f.mat"])
    assert (part.x.shape, part.x.dtype, part.y.dtype) == ((4, 3, 32, 32), np.uint8, np.int64)
    assert np.array_equal(part.x[2, 1], X[:, :, 1, 2])
    assert part.y.tolist() == [1, 0, 9, 3]
    (tmp_path / "f.mat").write_bytes(mat(X=X, y=np.array([0, 10, 9, 3], np.float64)))
    assert read_mat(tmp_path / "f.mat", zero=None).y.tolist() == [0, 0, 9, 3]


def test_usps_labels_and_greys_are_read(tmp_path: Path) -> None:
    part = read(tmp_path, "f.bz2", GOOD["f.bz2"])
    assert (part.y.tolist(), part.x.shape) == ([0, 9, 2], (3, 3, 32, 32))
    assert part.x[0].max() == 0
    assert np.unique(part.x[1, 0, :14]).tolist() == [255]
    assert np.unique(part.x[1, 0, 18:]).tolist() == [128]
    assert part.x[2, 1, 0, -1] == 255  # value 16 is the right end of the first row; those left out are 0
    assert np.unique(part.x[2, :, 3:]).tolist() == [128]


def test_images_of_mnist_m_are_in_the_order_of_the_lists(tmp_path: Path) -> None:
    train, test = read(tmp_path, "f.tar.gz", GOOD["f.tar.gz"])
    assert (train.y.tolist(), test.y.tolist(), train.x.dtype) == ([9, 0], [3], np.uint8)
    assert np.array_equal(train.x, PIXELS[[1, 0]].transpose(0, 3, 1, 2))
    assert np.array_equal(test.x, PIXELS[2:].transpose(0, 3, 1, 2))


FAULTS = [
    ("images.gz", b"\x00\x00\x0d\x03" + IMAGES[4:], "images.gz: magic number 00000d03, expected 00000803"),
    ("images.gz", b"", "images.gz: magic number missing, expected 00000803"),
    ("images.gz", IMAGES[:9], "images.gz: truncated within its 16 bytes of head"),
    ("images.gz", IMAGES[:-1], "images.gz: 2351 bytes of data, expected 2352"),
    ("images.gz", IMAGES + b"\0", "images.gz: 2353 bytes of data, expected 2352"),
    ("images.gz", gzip.compress(IMAGES)[:-20], "images.gz: not a whole gzip file"),
    ("images.gz", idx(np.zeros((3, 28, 27))), "images.gz: images of 28x27 pixels, expected 28x28"),
    ("labels.gz", idx([7, 0]), "labels.gz: 2 labels for 3 images"),
    ("labels.gz", idx([7, 10, 9]), r"labels.gz: label 10 of image 1 is not one of 0\.\.9"),
    ("f.mat", mat(y=Y), "holds no array 'X'"),
    ("f.mat", mat(X=X), "holds no array 'y'"),
    ("f.mat", mat(X=X * 1.0, y=Y), r"X is float64 \(32, 32, 3, 4\), expected uint8 \(32, 32, 3, images\)"),
    ("f.mat", mat(X=X[:28], y=Y), r"X is uint8 \(28, 32, 3, 4\)"),
    ("f.mat", mat(X=X, y=Y[:3]), r"y is uint8 \(3, 1\), expected 4 labels"),
    ("f.mat", mat(X=X, y=Y + 1), r"label 11 of image 1 is not one of 1\.\.10"),
    ("f.mat", mat(X=X, y=Y * 0), r"label 0 of image 0 is not one of 1\.\.10"),
    ("f.mat", mat(X=X, y=np.array([1, np.nan, 2, 3])), "label nan of image 1 is not one of"),
    ("f.mat", b"no MATLAB file at all" * 20, "not a whole MATLAB file"),
    *(("f.mat", GOOD["f.mat"][: int(len(GOOD["f.mat"]) * s)], "f.mat: ") for s in (0, 0.002, 0.01, 0.1, 0.5, 0.999)),
    *(
        ("f.bz2", usps(DARK, bad, HALF), "f.bz2:2: not a label and pairs `index:value`")
        for bad in ("", "1 257:.5", "1 0:.5", "1 1.5:.5", "1 7:1.5", "1 7:nan", "1 0.5", "one 1:.5", "1 2:x", "2:.5")
    ),
    *(
        ("f.bz2", usps(DARK, grey(label, [0.0] * 256)), f"label {label} of image 1 is not one of 1..10")
        for label in (0, 11, 2.5)
    ),
    ("f.bz2", GOOD["f.bz2"][:-10], "not a whole bzip2 file"),
    ("f.bz2", b"", "not a whole bzip2 file|holds no images"),
    *(
        ("f.tar.gz", archive(MEMBERS | members), what)
        for members, what in (
            ({"../escaped.png": b""}, r"member '\.\./escaped\.png' leads out of the archive"),
            ({"/absolute.png": b""}, "member '/absolute.png' leads out of the archive"),
            ({"mnist_m/link.png": "/etc/passwd"}, "member 'mnist_m/link.png' is not a plain file"),
            ({"mnist_m/large.png": bytes(100_001)}, "member 'mnist_m/large.png' is too large, 100001 bytes"),
            ({TEST: b"00000002.png 3\n"}, "mnist_m_test/00000002.png is listed but not there"),
            ({TEST: b"00000001.png\n"}, "mnist_m_test_labels.txt:1: not the name of a file and a label"),
            ({TRAIN: b"00000001.png 0\n00000007.png -1\n"}, "mnist_m_train_labels.txt:2: not the name of a file"),
            ({TRAIN: b"00000001.png 0\n00000007.png 10\n"}, r"label 10 of image 1 is not one of 0\.\.9"),
            ({IMAGE: png(PIXELS[0][:28, :28])}, "00000001.png is RGB 28x28, expected RGB 32x32"),
            ({IMAGE: MEMBERS[IMAGE][:200]}, "00000001.png is not a PNG image"),
        )
    ),
    *(
        ("f.tar.gz", archive({name: content for name, content in MEMBERS.items() if name != gone}), f"holds no {gone}")
        for gone in (TRAIN, TEST)
    ),
    ("f.tar.gz", GOOD["f.tar.gz"][:-300], "not a whole tar.gz archive"),
    ("f.tar.gz", b"text", "not a whole tar.gz archive"),
]


@pytest.mark.parametrize(("name", "content", "what"), FAULTS, ids=[f"{name} {what}" for name, _, what in FAULTS])
def test_faults_are_one_line_that_names_the_file_and_nothing_is_written(
    tmp_path: Path, name: str, content: bytes, what: str
) -> None:
    line = only_line(read, tmp_path, name, content)
    assert re.search(what, line)
    assert line.startswith(f"{tmp_path / name}:")
    assert line.endswith("replace the file")
    assert {path.name for path in tmp_path.rglob("*")} == set(GOOD)


@pytest.mark.parametrize("side", [16, 28])
def test_enlarged_images_have_exact_sums_so_that_every_machine_rounds_alike(side: int) -> None:
    images = np.random.default_rng(1).integers(0, 256, (5, side, side), np.uint8)
    at = np.clip((np.arange(32) + 0.5) * side / 32 - 0.5, 0, side - 1)
    sixteenths = np.rint(16 * np.maximum(1 - abs(at[:, None] - np.arange(side)), 0)).astype(np.int64)
    assert (sixteenths.sum(1) == 16).all()
    exact = sixteenths @ images.astype(np.int64) @ sixteenths.T
    assert np.array_equal(enlarge(images, 32), np.rint(exact / 256).astype(np.uint8))
    for small, large in zip(images, enlarge(images, 32), strict=True):
        pillows = np.asarray(Image.fromarray(small).resize((32, 32), Image.Resampling.BILINEAR))
        assert abs(large.astype(int) - pillows).max() <= 1
    levels = np.broadcast_to((np.arange(5000) % 251).astype(np.uint8)[:, None, None], (5000, 4, 4))
    assert np.array_equal(enlarge(levels, 5)[:, :4, :4], levels)  # in chunks, which keep their order
