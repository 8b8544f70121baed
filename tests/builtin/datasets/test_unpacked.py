"""Files that users supply: arrays and archives that claim more than they hold are refused."""

import io

import numpy as np
import pytest

from msda_bench.data import LocalFiles
from msda_bench_builtin.datasets import Arrays, DigitsFive
from msda_bench_builtin.datasets.digits import readers
from tests.builtin.conftest import mat, zipped
from tests.data.conftest import only_line


def test_a_member_that_holds_more_than_its_archive_claims_is_not_read_to_its_end(tmp_path):
    path, array = tmp_path / "f.npz", io.BytesIO()
    np.save(array, np.zeros(100_000))
    size = array.tell().to_bytes(4, "little")
    path.write_bytes(zipped({"domain.npy": array.getvalue()}).replace(size, (200).to_bytes(4, "little")))
    data = Arrays(file=str(path))
    assert "cannot be read" in only_line(data.load, "a", LocalFiles())


@pytest.mark.parametrize("most", [27719, 27720])
def test_arrays_of_a_matlab_file_that_claim_too_much_are_not_read(most, monkeypatch, tmp_path):
    monkeypatch.setattr(readers, "_MOST_MAT", most)
    for name in ("train", "test"):
        (tmp_path / f"svhn_{name}_32x32.mat").write_bytes(mat(X=np.zeros((32, 32, 3, 9), np.uint8), y=np.ones((9, 1))))
    line = only_line(DigitsFive()._read, "svhn", tmp_path)
    assert ("it claims 27720 bytes, more than 27719" in line) == (most == 27719)
