"""If a system call fails while data are fetched or cached, one line reports it and the next attempt succeeds."""

from __future__ import annotations

import errno
import itertools
import os

import numpy as np
import pytest

from msda_bench.data.fetch import fetch
from msda_bench.data.files import LocalFiles
from msda_bench.data.folders import Folders
from msda_bench.errors import DataError
from tests.store.faulty import faults

DATA = bytes(range(256)) * 4000


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("old", [None, b"damaged"])
def test_a_download_that_cannot_be_written_is_reported_and_resumes(tmp_path, make_file, code, old):
    (tmp_path / "mirror").write_bytes(DATA)
    file = make_file(DATA, (tmp_path / "mirror").as_uri(), "http://127.0.0.1:9/never-asked")
    # Making a folder that is there, which is the first call then, may fail.
    for at in itertools.count(0 if old is None else 1):
        where = Folders(None, tmp_path / str(at))
        path = where.cached(file)
        if old is not None:
            path.parent.mkdir(parents=True)
            path.write_bytes(old)
        with faults(code, at) as faulty:
            lines = refusal(file, where)
        if faulty.refused is None:
            break
        assert lines == (
            f"{path}: cannot be written: {os.strerror(code)}; free space, or set MSDA_BENCH_CACHE to another folder",
        )
        assert not path.exists() or path.read_bytes() in {old, DATA}
        fetch([file], where)
        assert path.read_bytes() == DATA
        assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert lines == ()
    assert {"open", "write", "fsync", "replace"} <= set(faulty.calls)


def refusal(file, where) -> tuple[str, ...]:
    try:
        fetch([file], where)
    except DataError as error:
        return error.lines
    return ()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_arrays_that_cannot_be_cached_are_computed_again(tmp_path, code):
    arrays = {"a": np.arange(5)}
    for at in itertools.count():
        files = LocalFiles(Folders(None, tmp_path / str(at)))
        with faults(code, at) as faulty:
            assert np.array_equal(files.derived("toy", lambda: arrays)["a"], arrays["a"])
        assert np.array_equal(files.derived("toy", lambda: arrays)["a"], arrays["a"])
        if faulty.refused is None:
            break
    assert {"open", "write", "fsync", "replace"} <= set(faulty.calls)
