from __future__ import annotations

import io
import re
import tarfile

import numpy as np
import pytest
from PIL import Image

from msda_bench_builtin.datasets.digits.mnist_m import read_mnist_m
from tests.data.refusal import only_line

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)


def png(pixels) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


GOOD = {
    "mnist_m/mnist_m_train/00000001.png": png(PIXELS[0]),
    "mnist_m/mnist_m_train/00000007.png": png(PIXELS[1]),
    "mnist_m/mnist_m_test/00000001.png": png(PIXELS[2]),
    "mnist_m/mnist_m_train_labels.txt": b"00000007.png 9\n00000001.png 0\n",
    "mnist_m/mnist_m_test_labels.txt": b"00000001.png 3\n",
    "mnist_m/.DS_Store": b"passed over",
}
IMAGE, TRAIN, TEST = "mnist_m/mnist_m_train/00000001.png", *list(GOOD)[3:5]


@pytest.fixture
def put(tmp_path):
    """Writes an archive; a member without bytes is a link to the text in its place."""

    def write(members: dict[str, bytes | str]):
        path = tmp_path / "mnist_m.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
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
        return path

    return write


def test_images_are_in_the_order_of_the_lists(put):
    train, test = read_mnist_m(put(GOOD))
    assert train.y.tolist() == [9, 0]
    assert test.y.tolist() == [3]
    assert np.array_equal(train.x, PIXELS[[1, 0]].transpose(0, 3, 1, 2))
    assert np.array_equal(test.x, PIXELS[2:].transpose(0, 3, 1, 2))
    assert train.x.dtype == np.uint8


@pytest.mark.parametrize(
    ("members", "what"),
    [
        ({"../escaped.png": b""}, r"member '\.\./escaped\.png' leads out of the archive"),
        ({"mnist_m/../../escaped.txt": b""}, "leads out of the archive"),
        ({"/absolute.png": b""}, "member '/absolute.png' leads out of the archive"),
        ({"mnist_m/link.png": "/etc/passwd"}, "member 'mnist_m/link.png' is not a plain file"),
        ({"mnist_m/mnist_m_train": "/etc"}, "member 'mnist_m/mnist_m_train' is not a plain file"),
        ({"mnist_m/large.png": bytes(100_001)}, "member 'mnist_m/large.png' is too large, 100001 bytes"),
        ({TEST: b"00000002.png 3\n"}, "mnist_m_test/00000002.png is listed but not there"),
        ({TEST: b"00000001.png\n"}, "mnist_m_test_labels.txt:1: not the name of a file and a label"),
        ({TRAIN: b"00000001.png 0\n00000007.png -1\n"}, "mnist_m_train_labels.txt:2: not the name of a file"),
        ({TRAIN: b"00000001.png 0\n00000007.png 10\n"}, r"label 10 of image 1 is not one of 0\.\.9"),
        ({TRAIN: b"00000001.png 99999999999999999999\n"}, r"of image 0 is not one of 0\.\.9"),
        ({IMAGE: png(PIXELS[0][:28, :28])}, "00000001.png is RGB 28x28, expected RGB 32x32"),
        ({IMAGE: png(PIXELS[0][..., 0])}, "00000001.png is L 32x32, expected RGB 32x32"),
        ({IMAGE: GOOD[IMAGE][:200]}, "00000001.png is not a PNG image"),
        ({IMAGE: b"text"}, "00000001.png is not a PNG image"),
    ],
)
def test_faults_are_reported_in_one_line_and_nothing_is_written(put, tmp_path, members, what):
    path = put(GOOD | members)
    line = only_line(read_mnist_m, path)
    assert re.search(what, line)
    assert line.startswith(f"{path}: ")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", [TRAIN, TEST])
def test_a_missing_list_is_named(put, name):
    members = {other: content for other, content in GOOD.items() if other != name}
    assert f"holds no {name}" in only_line(read_mnist_m, put(members))


@pytest.mark.parametrize("damage", [lambda content: content[:-300], lambda content: content[:40], lambda _: b"text"])
def test_a_damaged_archive_is_named(put, damage):
    path = put(GOOD)
    path.write_bytes(damage(path.read_bytes()))
    assert only_line(read_mnist_m, path).startswith(f"{path}: ")
