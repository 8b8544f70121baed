"""M3SDA's Digits-Five, from small files of the layout that its loaders expect."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from msda_bench.data import Folders, LocalFiles
from msda_bench.data.check import tree_sha256
from msda_bench_builtin.datasets import DigitsFive
from msda_bench_builtin.datasets import digits_five as module
from tests.data.refusal import only_line

DRAW = np.random.default_rng(3)
LABELS = np.arange(40) % 10


def pictures(*shape: int) -> Any:
    return DRAW.integers(0, 256, shape, np.uint8)


def written() -> dict[str, dict[str, Any]]:
    """The content of each file: 12 and 10 images; SVHN and Synthetic Digits hold more training images than are used."""
    one_hot, cells = np.eye(10), np.empty((2, 2), object)
    cells[0] = [DRAW.random((12, 1, 28, 28)), LABELS[:12, None]]
    cells[1] = [DRAW.random((10, 1, 28, 28)), LABELS[:10, None]]
    return {
        "mnist_data.mat": {
            "train_32": pictures(12, 32, 32), "label_train": one_hot[LABELS[:12]],
            "test_32": pictures(10, 32, 32), "label_test": one_hot[LABELS[:10]],
        },
        "mnistm_with_label.mat": {
            "train": pictures(12, 28, 28, 3), "label_train": one_hot[LABELS[:12]],
            "test": pictures(13, 28, 28, 3), "label_test": one_hot[LABELS[:13]],
        },
        "svhn_train_32x32.mat": {"X": pictures(32, 32, 3, 20), "y": LABELS[:20, None] + 1},
        "svhn_test_32x32.mat": {"X": pictures(32, 32, 3, 15), "y": LABELS[:15, None] + 1},
        "syn_number.mat": {
            "train_data": pictures(12, 32, 32, 3), "train_label": LABELS[:12, None],
            "test_data": pictures(10, 32, 32, 3), "test_label": LABELS[:10, None],
        },
        "usps_28x28.mat": {"dataset": cells},
    }  # fmt: skip


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, dict[str, Any]], Path]:
    """The content of the files, and their folder; 12 training and 10 test images of each domain are used."""
    monkeypatch.setattr(module, "_TRAIN", 12)
    monkeypatch.setattr(module, "_TEST", 10)
    monkeypatch.setattr(DigitsFive, "published", dict.fromkeys(DigitsFive().domains, (12, 10)) | {"usps": (48, 10)})
    files, folder = written(), tmp_path / "given/digits_five"
    folder.mkdir(parents=True)
    for name, arrays in files.items():
        savemat(folder / name, arrays)
    return files, folder


def opened(folder: Path) -> tuple[DigitsFive, LocalFiles]:
    return DigitsFive(train=12, sha256=tree_sha256(folder)), LocalFiles(Folders(folder.parent, folder / "../../cache"))


def resized(image: Any) -> Any:
    return np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR))


def test_images_and_labels_equal_the_authors_selection_in_order(given: Any, keeps_contract: Any) -> None:
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
        labels = np.tile((LABELS[:12] + zero) % 10, train // 12)
        assert one.y.tolist() == [*labels, *((LABELS[:10] + zero) % 10)]
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


WRONG: list[tuple[str, str, Callable[[dict[str, Any]], dict[str, Any]], str]] = [
    ("mnist", "mnist_data.mat", lambda held: {"train_28": held["train_32"]}, "holds no array 'train_32'"),
    ("mnist", "mnist_data.mat", lambda held: held | {"train_32": held["train_32"] * 2.0}, "expected numbers 0..255"),
    ("mnist", "mnist_data.mat", lambda held: held | {"train_32": pictures(12, 28, 28)}, r"\(images, 32, 32\)"),
    ("mnist", "mnist_data.mat", lambda held: held | {"label_test": np.ones((10, 10))}, "a single 1 in each row"),
    ("mnist_m", "mnistm_with_label.mat", lambda held: held | {"train": held["test"]}, "labels are .* expected "),
    ("svhn", "svhn_train_32x32.mat", lambda held: {"X": held["X"][..., :5], "y": held["y"][:5]}, "svhn has 5 training"),
    ("syn", "syn_number.mat", lambda held: held | {"train_label": LABELS[:12] + 2}, "label 11 of image 9 is not one"),
    ("usps", "usps_28x28.mat", lambda held: {"dataset": LABELS}, r"expected cells \(2, 2\)"),
]


@pytest.mark.parametrize(("domain", "name", "change", "what"), WRONG, ids=[f"{one[1]} {one[3]}" for one in WRONG])
def test_files_of_another_layout_are_reported_in_one_line(
    given: Any, domain: str, name: str, change: Any, what: str
) -> None:
    arrays, folder = given
    savemat(folder / name, change(arrays[name]))
    data, files = opened(folder)
    line = only_line(data.load, domain, files)
    assert line.startswith(f"{folder / name}: ")
    assert line.endswith("; replace the file")
    assert re.search(what, line)


def test_a_folder_is_identified_with_parameters_that_read_it(given: Any) -> None:
    _, folder = given
    (folder / "syn_number.mat").unlink()
    (folder / "usps_28x28.mat").write_bytes(b"no such file")
    found = DigitsFive().identify(folder, tree_sha256(folder))
    assert found is not None
    assert found.what == "5 of 6 files"
    assert found.lines[0] == "missing: syn_number.mat"
    assert found.lines[1].startswith(f"bad: {folder}/usps_28x28.mat: not a whole MATLAB file")
    assert list(found.counts) == ["mnist", "mnist_m", "svhn"]
    assert sum(found.counts["svhn"].values()) == 22
    data = DigitsFive(**found.params)
    assert len(data.load("mnist", opened(folder)[1]).y) == 22
    assert DigitsFive().identify(folder.parent, "") is None
