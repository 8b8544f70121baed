from __future__ import annotations

import numpy as np

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


def test_every_file_has_a_distinct_checksum_and_an_address():
    files = Amazon().files
    assert len({file.sha256 for file in files}) == len(files) == 8
    assert all(file.origin.addresses[0].endswith(file.path.removeprefix("amazon")) for file in files)
