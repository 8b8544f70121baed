from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench.api import File, Url
from msda_bench.data.folders import Folders, folders
from msda_bench.errors import DataError


def test_the_given_folder_comes_before_the_cache(tmp_path, make_file):
    where = folders({"MSDA_BENCH_DATA": str(tmp_path), "MSDA_BENCH_CACHE": str(tmp_path / "c")})
    assert where.candidates(make_file(b"")) == (tmp_path / "toy/data.bin", tmp_path / "c/toy/data.bin")


def test_without_variables_only_the_user_cache_is_used(make_file):
    where = folders({})
    assert where.given is None
    assert where.cache.name == "msda-bench"
    assert where.candidates(make_file(b"")) == (where.cached(make_file(b"")),)


def test_relative_folders_are_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    where = folders({"MSDA_BENCH_DATA": ".", "MSDA_BENCH_CACHE": "c"})
    assert where.given == tmp_path
    assert where.cache == tmp_path / "c"
    assert folders({"MSDA_BENCH_CACHE": "~nobody-of-this-name/c"}).cache == tmp_path / "~nobody-of-this-name/c"


def test_a_given_folder_that_is_not_a_folder_is_named():
    with pytest.raises(DataError, match=r"^MSDA_BENCH_DATA: .*nowhere is not a folder; .*unset it$"):
        folders({"MSDA_BENCH_DATA": str(Path("nowhere").absolute())})


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "toy/../../x", "", ".", "C:/x", "a\\b", "a\0b"])
def test_a_file_outside_the_folder_is_refused(tmp_path, path):
    file = File(path, "ab" * 32, 1, Url(("https://example.org/x",)))
    with pytest.raises(DataError, match="leads out of the data folder") as caught:
        Folders(None, tmp_path).cached(file)
    assert "\n" not in str(caught.value)
