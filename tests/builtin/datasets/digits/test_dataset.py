from __future__ import annotations

import dataclasses

import numpy as np
import pydantic
import pytest

from msda_bench.data import Folders, LocalFiles
from msda_bench.data.files import folders
from msda_bench_builtin.datasets import Digits
from msda_bench_builtin.datasets.digits import origins as known
from tests.data.refusal import only_line

EVERY = ("mnist", "mnist_m", "svhn", "synth", "usps", "synth_fonts", "mnist_m_made")
MADE = Digits(domains=("synth_fonts", "mnist_m_made"), train=20, test=10, made_train=30, made_test=20)


@pytest.mark.parametrize("domains", [("mnist",), ("mnist", "mnist"), ("mnist", "emnist"), ()])
def test_domains_are_two_or_more_known_ones(domains):
    with pytest.raises(pydantic.ValidationError, match="domains"):
        Digits(domains=domains)


def test_only_the_chosen_domains_need_files():
    assert MADE.files == known.MNIST
    assert Digits(domains=("synth_fonts", "usps")).files == known.USPS
    assert len({file.path for file in Digits(domains=EVERY).files}) == 4 + 1 + 2 + 2 + 2
    whole, reduced = (Digits(copies=copies).files for copies in ("original", "reduced"))
    assert {file.path for file in whole} - {file.path for file in reduced} == {
        "mnist_m/mnist_m.tar.gz",
        "svhn/train_32x32.mat",
        "svhn/test_32x32.mat",
    }


def test_a_domain_without_download_says_so_in_one_line(tmp_path):
    files = LocalFiles(Folders(None, tmp_path), "digits")
    line = only_line(Digits(copies="reduced").load, "mnist_m", files)
    assert "not available for download (`copies: original` downloads the whole)" in line
    assert "27650633 bytes, sha256 5baad899dece7cc3684dfcaa8aa7430788db739b3b22e1e624a419eefcc51916" in line
    assert "data fetch" not in line
    assert "run `msda-bench data fetch digits`" in only_line(Digits().load, "mnist_m", files)


@pytest.fixture
def reached(real, tmp_path):
    """The files of a dataset, with a cache of the test's own."""

    def run(digits: Digits) -> LocalFiles:
        real(digits)
        return LocalFiles(Folders(folders().given, tmp_path / "cache"), "digits")

    return run


def test_made_digits_are_those_of_mnist(reached):
    digits = Digits(domains=("mnist", "mnist_m_made"), made_train=300, made_test=100)
    files = reached(digits)
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
