"""Digits: what is read from the files, one line for each that is damaged or holds something else, and Digits-Five."""

import bz2
import dataclasses
import gzip
import io
import re
import struct

import numpy as np
import pydantic
import pytest
from PIL import Image
from scipy.io import savemat

from msda_bench.data import Folders, LocalFiles, folders
from msda_bench.data.checksums import tree_sha256
from msda_bench_builtin.datasets import Digits, DigitsFive
from msda_bench_builtin.datasets import digits_five as module
from msda_bench_builtin.datasets.digits import origins as known
from msda_bench_builtin.datasets.digits.readers import enlarge, read_mat, read_mnist, read_mnist_m, read_usps
from tests.builtin.conftest import mat, tarred
from tests.data.conftest import only_line

DRAW = np.random.default_rng(0)


def idx(array):
    array = np.asarray(array)
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def usps(*lines):
    return bz2.compress("".join(f"{line} \n" for line in lines).encode())


def grey(label, values):
    return f"{label} " + " ".join(f"{i}:{value}" for i, value in enumerate(values, 1))


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
GOOD["f.tar.gz"] = tarred(MEMBERS)
READ = {
    "images.gz": lambda folder: read_mnist(folder / "images.gz", folder / "labels.gz"),
    "f.mat": lambda folder: read_mat(folder / "f.mat", zero=10),
    "f.bz2": lambda folder: read_usps(folder / "f.bz2"),
    "f.tar.gz": lambda folder: read_mnist_m(folder / "f.tar.gz"),
}
READ["labels.gz"] = READ["images.gz"]


def read(folder, name, content):
    for other, good in GOOD.items():
        (folder / other).write_bytes(good)
    (folder / name).write_bytes(content)
    return READ[name](folder)


@pytest.mark.parametrize("packed", [lambda content: content, gzip.compress])
def test_mnist_is_read_with_and_without_gzip(tmp_path, packed):
    part = read(tmp_path, "images.gz", packed(IMAGES))
    assert (part.x.shape, part.x.dtype, part.y.dtype) == ((3, 3, 32, 32), np.uint8, np.int64)
    assert part.y.tolist() == [7, 0, 9]
    assert np.array_equal(part.x[:, 2], enlarge(np.frombuffer(IMAGES, np.uint8, offset=16).reshape(3, 28, 28)))
    assert part.x.strides[1] == 0  # the channels of a grey image share their memory


def test_house_numbers_are_read_and_synthetic_digits_may_label_the_zero_0_or_10(tmp_path):
    part = read(tmp_path, "f.mat", GOOD["f.mat"])
    assert (part.x.shape, part.x.dtype, part.y.dtype) == ((4, 3, 32, 32), np.uint8, np.int64)
    assert np.array_equal(part.x[2, 1], X[:, :, 1, 2])
    assert part.y.tolist() == [1, 0, 9, 3]
    (tmp_path / "f.mat").write_bytes(mat(X=X, y=np.array([0, 10, 9, 3], np.float64)))
    assert read_mat(tmp_path / "f.mat", zero=None).y.tolist() == [0, 0, 9, 3]


def test_usps_labels_and_greys_are_read(tmp_path):
    part = read(tmp_path, "f.bz2", GOOD["f.bz2"])
    assert (part.y.tolist(), part.x.shape) == ([0, 9, 2], (3, 3, 32, 32))
    assert part.x[0].max() == 0
    assert np.unique(part.x[1, 0, :14]).tolist() == [255]
    assert np.unique(part.x[1, 0, 18:]).tolist() == [128]
    assert part.x[2, 1, 0, -1] == 255  # value 16 is the right end of the first row; those left out are 0
    assert np.unique(part.x[2, :, 3:]).tolist() == [128]


def test_images_of_mnist_m_are_in_the_order_of_the_lists(tmp_path):
    train, test = read(tmp_path, "f.tar.gz", GOOD["f.tar.gz"])
    assert (train.y.tolist(), test.y.tolist(), train.x.dtype) == ([9, 0], [3], np.uint8)
    assert np.array_equal(train.x, PIXELS[[1, 0]].transpose(0, 3, 1, 2))
    assert np.array_equal(test.x, PIXELS[2:].transpose(0, 3, 1, 2))


FAULTS = [
    ("images.gz", IMAGES[:-1], "not a whole file: cannot reshape"),
    ("images.gz", gzip.compress(IMAGES)[:-20], "not a whole file"),
    ("labels.gz", idx([7, 10, 9]), r"label 10 of image 1 is not one of 0\.\.9"),
    ("f.mat", mat(y=Y), "holds no array 'X'"),
    ("f.mat", mat(X=X * 1.0, y=Y), r"X is float64 \(32, 32, 3, 4\), expected uint8 \(32, 32, 3, images\)"),
    ("f.mat", mat(X=X[:28], y=Y), r"X is uint8 \(28, 32, 3, 4\)"),
    ("f.mat", mat(X=X, y=Y[:3]), r"y is uint8 \(3, 1\), expected 4 labels"),
    ("f.mat", mat(X=X, y=Y * 0), r"label 0 of image 0 is not one of 1\.\.10"),
    ("f.mat", mat(X=X, y=np.array([1, np.nan, 2, 3])), "label nan of image 1 is not one of"),
    ("f.mat", b"no MATLAB file at all" * 20, "not a whole MATLAB file"),
    *(("f.mat", GOOD["f.mat"][: int(len(GOOD["f.mat"]) * s)], "f.mat: ") for s in (0, 0.002, 0.01, 0.1, 0.5, 0.999)),
    ("f.bz2", usps(DARK, grey(11, [0.0] * 256)), "label 11 of image 1 is not one of 1..10"),
    ("f.bz2", usps(DARK, "1 257:.5"), "not the expected lines"),
    ("f.tar.gz", tarred(MEMBERS | {TEST: b"00000002.png 3\n"}), "not the expected archive: .*00000002.png"),
    ("f.tar.gz", GOOD["f.tar.gz"][:-300], "not the expected archive"),
]


@pytest.mark.parametrize(("name", "content", "what"), FAULTS)
def test_faults_are_one_line_that_names_the_file_and_nothing_is_written(tmp_path, name, content, what):
    line = only_line(read, tmp_path, name, content)
    assert re.search(what, line)
    assert line.startswith(f"{tmp_path / name}:")
    assert line.endswith("replace the file")
    assert {path.name for path in tmp_path.rglob("*")} == set(GOOD)


def resized(image):
    return np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("side", [16, 28])
def test_enlarged_images_have_exact_sums_so_that_every_machine_rounds_alike(side):
    images = np.random.default_rng(1).integers(0, 256, (5, side, side), np.uint8)
    at = np.clip((np.arange(32) + 0.5) * side / 32 - 0.5, 0, side - 1)
    sixteenths = np.rint(16 * np.maximum(1 - abs(at[:, None] - np.arange(side)), 0)).astype(np.int64)
    assert (sixteenths.sum(1) == 16).all()
    exact = sixteenths @ images.astype(np.int64) @ sixteenths.T
    assert np.array_equal(enlarge(images), np.rint(exact / 256).astype(np.uint8))
    for small, large in zip(images, enlarge(images), strict=True):
        assert abs(large.astype(int) - resized(small)).max() <= 1
    levels = np.broadcast_to((np.arange(5000) % 251).astype(np.uint8)[:, None, None], (5000, 4, 4))
    assert np.array_equal(enlarge(levels)[:, ::8, ::8], levels)  # in chunks, which keep their order


MADE = Digits(domains=("synth_fonts", "mnist_m_made"), train=20, test=10, made_train=30, made_test=20)


@pytest.mark.parametrize("domains", [("mnist",), ("mnist", "mnist"), ("mnist", "emnist"), ()])
def test_domains_are_two_or_more_known_ones(domains):
    with pytest.raises(pydantic.ValidationError, match="domains"):
        Digits(domains=domains)


def test_only_the_chosen_domains_need_files():
    assert MADE.files == known.MNIST
    assert Digits(domains=("synth_fonts", "usps")).files == known.USPS
    whole, reduced = (Digits(copies=copies).files for copies in ("original", "reduced"))
    assert {file.path for file in whole} - {file.path for file in reduced} == {
        "mnist_m/mnist_m.tar.gz",
        "svhn/train_32x32.mat",
        "svhn/test_32x32.mat",
    }


def test_made_digits_are_those_of_mnist(real, tmp_path):
    digits = Digits(domains=("mnist", "mnist_m_made"), made_train=300, made_test=100)
    real(digits)
    files = LocalFiles(Folders(folders().given, tmp_path / "cache"), "digits")
    data = digits.load("mnist", files)
    made = digits.load("mnist_m_made", files)
    assert made.y.tolist() == [*data.y[:300].tolist(), *data.y[60000:60100].tolist()]
    assert (made.test.sum(), len(made.test)) == (100, 400)


def test_bytes_equal_255_times_the_unit_scale(crafted):
    unit, whole = (dataclasses.replace(MADE, pixels=pixels) for pixels in ("unit", "bytes"))
    images = unit.load("synth_fonts", crafted).x[:5]
    assert images.dtype == np.uint8
    scaled, raw = (data.fit({"": images})("", images) for data in (unit, whole))
    assert scaled.dtype == raw.dtype == np.float32
    assert np.array_equal(raw, images)
    assert np.allclose(scaled * 255, raw)
    assert raw.max() > 200


DRAWN = np.random.default_rng(3)
LABELLED = np.arange(40) % 10


def pictures(*shape):
    return DRAWN.integers(0, 256, shape, np.uint8)


def made_files():
    """The content of each file: 12 and 10 images; SVHN and Synthetic Digits hold more training images than are used."""
    one_hot, cells = np.eye(10), np.empty((2, 2), object)
    cells[0] = [DRAWN.random((12, 1, 28, 28)), LABELLED[:12, None]]
    cells[1] = [DRAWN.random((10, 1, 28, 28)), LABELLED[:10, None]]
    return {
        "mnist_data.mat": {
            "train_32": pictures(12, 32, 32), "label_train": one_hot[LABELLED[:12]],
            "test_32": pictures(10, 32, 32), "label_test": one_hot[LABELLED[:10]],
        },
        "mnistm_with_label.mat": {
            "train": pictures(12, 28, 28, 3), "label_train": one_hot[LABELLED[:12]],
            "test": pictures(13, 28, 28, 3), "label_test": one_hot[LABELLED[:13]],
        },
        "svhn_train_32x32.mat": {"X": pictures(32, 32, 3, 20), "y": LABELLED[:20, None] + 1},
        "svhn_test_32x32.mat": {"X": pictures(32, 32, 3, 15), "y": LABELLED[:15, None] + 1},
        "syn_number.mat": {
            "train_data": pictures(12, 32, 32, 3), "train_label": LABELLED[:12, None],
            "test_data": pictures(10, 32, 32, 3), "test_label": LABELLED[:10, None],
        },
        "usps_28x28.mat": {"dataset": cells},
    }  # fmt: skip


@pytest.fixture
def given(tmp_path, monkeypatch):
    """The content of the files, and their folder; 12 training and 10 test images of each domain are used."""
    monkeypatch.setattr(module, "_TRAIN", 12)
    monkeypatch.setattr(module, "_TEST", 10)
    monkeypatch.setattr(DigitsFive, "published", dict.fromkeys(DigitsFive().domains, (12, 10)) | {"usps": (48, 10)})
    files, folder = made_files(), tmp_path / "given/digits_five"
    folder.mkdir(parents=True)
    for name, arrays in files.items():
        savemat(folder / name, arrays)
    return files, folder


def opened(folder):
    return DigitsFive(train=12, sha256=tree_sha256(folder)), LocalFiles(Folders(folder.parent, folder / "../../cache"))


def test_images_and_labels_equal_the_authors_selection_in_order(given, keeps_contract):
    arrays, folder = given
    data, files = opened(folder)
    keeps_contract(data, files)
    found = {domain: data.load(domain, files) for domain in data.domains}
    for domain, one in found.items():
        train = 48 if domain == "usps" else 12
        assert one.x.shape == (train + 10, 3, 32, 32)
        assert one.test is not None
        assert one.test.tolist() == [False] * train + [True] * 10
        zero = 1 if domain == "svhn" else 0  # where the label 10 is the digit 0
        labels = np.tile((LABELLED[:12] + zero) % 10, train // 12)
        assert one.y.tolist() == [*labels, *((LABELLED[:10] + zero) % 10)]
    x = {domain: np.asarray(one.x) for domain, one in found.items()}
    assert np.array_equal(x["mnist"][3, 2], arrays["mnist_data.mat"]["train_32"][3])
    assert np.array_equal(x["svhn"][11], arrays["svhn_train_32x32.mat"]["X"][..., 11].transpose(2, 0, 1))
    assert np.array_equal(x["svhn"][12], arrays["svhn_test_32x32.mat"]["X"][..., 0].transpose(2, 0, 1))
    assert np.array_equal(x["syn"][15], arrays["syn_number.mat"]["test_data"][3].transpose(2, 0, 1))
    blend = resized(arrays["mnistm_with_label.mat"]["train"][5]).transpose(2, 0, 1)
    assert abs(x["mnist_m"][5].astype(int) - blend).max() <= 1
    envelope = resized((arrays["usps_28x28.mat"]["dataset"][0, 0][7, 0] * 255).astype(np.uint8))
    assert abs(x["usps"][7, 1].astype(int) - envelope).max() <= 1
    assert all(np.array_equal(x["usps"][:12], x["usps"][12 * time : 12 * time + 12]) for time in (1, 2, 3))
    assert float(np.max(data.fit({})("mnist", x["mnist"]))) == np.float32(x["mnist"].max() / 255)


WRONG = [
    ("mnist", "mnist_data.mat", lambda held: {"train_28": held["train_32"]}, "holds no array 'train_32'"),
    ("mnist", "mnist_data.mat", lambda held: held | {"train_32": held["train_32"] * 2.0}, "expected numbers 0..255"),
    ("mnist", "mnist_data.mat", lambda held: held | {"train_32": pictures(12, 28, 28)}, r"\(images, 32, 32\)"),
    ("mnist", "mnist_data.mat", lambda held: held | {"label_test": np.ones((10, 10))}, "a single 1 in each row"),
    ("mnist_m", "mnistm_with_label.mat", lambda held: held | {"train": held["test"]}, "labels are .* expected "),
    ("svhn", "svhn_train_32x32.mat", lambda held: {"X": held["X"][..., :5], "y": held["y"][:5]}, "svhn has 5 training"),
    ("syn", "syn_number.mat", lambda held: held | {"train_label": LABELLED[:12] + 2}, "label 11 of image 9 is not one"),
    ("usps", "usps_28x28.mat", lambda held: {"dataset": LABELLED}, r"expected cells \(2, 2\)"),
]


@pytest.mark.parametrize(("domain", "name", "change", "what"), WRONG)
def test_files_of_another_layout_are_reported_in_one_line(given, domain, name, change, what):
    arrays, folder = given
    savemat(folder / name, change(arrays[name]))
    data, files = opened(folder)
    line = only_line(data.load, domain, files)
    assert line.startswith(f"{folder / name}: ")
    assert line.endswith("; replace the file")
    assert re.search(what, line)


def test_a_folder_is_identified_with_parameters_that_read_it(given):
    _, folder = given
    (folder / "syn_number.mat").unlink()
    (folder / "usps_28x28.mat").write_bytes(b"no such file")
    found = DigitsFive().identify(folder, tree_sha256(folder), {})
    assert found is not None
    assert found.what == "5 of 6 files"
    assert found.lines[0] == "missing: syn_number.mat"
    assert found.lines[1].startswith(f"bad: {folder}/usps_28x28.mat: not a whole MATLAB file")
    assert list(found.counts) == ["mnist", "mnist_m", "svhn"]
    assert sum(found.counts["svhn"].values()) == 22
    data = DigitsFive(**found.params)
    assert len(data.load("mnist", opened(folder)[1]).y) == 22
    assert DigitsFive().identify(folder.parent, "", {}) is None
