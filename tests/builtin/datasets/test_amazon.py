from __future__ import annotations

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench.data import Folders, LocalFiles
from msda_bench_builtin.datasets import Amazon

SIZES = {"books": 6465, "dvd": 5586, "electronics": 7681, "kitchen": 7945}


def test_the_files_are_the_papers(real):
    amazon = Amazon()
    files = real(amazon)
    assert sum(SIZES.values()) == 27677
    for domain, size in SIZES.items():
        data = amazon.load(domain, files)
        assert data.x.shape == (size, 5000)
        assert data.x.dtype == np.float32
        assert data.x.data.min() >= 1
        assert set(data.y.tolist()) == {0, 1}
        assert data.y[:2000].mean() == 0.5
        assert data.test is None


def test_train_file_comes_before_test_file(crafted, tmp_path):
    (tmp_path / "dvd_test.svmlight").write_bytes(b"-1 2:3\n")
    (tmp_path / "dvd_train.svmlight").write_bytes(b"1 0:1 4999:2\n-1\n")
    data = Amazon().load("dvd", crafted)
    assert data.y.tolist() == [1, 0, 0]
    assert data.x.toarray()[:, [0, 2, 4999]].tolist() == [[1, 0, 2], [0, 0, 0], [0, 3, 0]]


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (None, "not in the cache"),
        (lambda content: content[: len(content) // 2], "truncated: 567035 bytes, expected 1134070"),
        (lambda content: b"2" + content[1:], "wrong checksum"),
    ],
)
def test_a_bad_file_is_one_line_and_leaves_the_cache_as_it_was(real, tmp_path, damage, what):
    amazon = Amazon()
    where = Folders(None, tmp_path)
    path = where.cached(amazon.files[0])
    if damage is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(damage(real(amazon).path(amazon.files[0]).read_bytes()))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=what) as caught:
        amazon.load("books", LocalFiles(where, "amazon"))
    assert len(caught.value.lines) == 1
    assert "msda-bench data fetch amazon" in caught.value.lines[0]
    assert sorted(tmp_path.rglob("*")) == before


def test_every_file_has_its_own_bytes_and_an_address():
    files = Amazon().files
    assert len({file.sha256 for file in files}) == len(files) == 8
    assert all(file.origin.addresses[0].endswith(file.path.removeprefix("amazon")) for file in files)


def test_the_fingerprint_follows_the_parameters():
    assert Amazon().fingerprint() == Amazon(train=2000).fingerprint()
    assert Amazon().fingerprint() != Amazon(train=1000).fingerprint()
