from __future__ import annotations

import hashlib

import pytest

from msda_bench.api import ByHand, File, Url
from msda_bench.data.fetch import fetch
from msda_bench.errors import DataError
from tests.data.refusal import only_line

DATA = bytes(range(256)) * 4000


def test_missing_files_are_fetched_and_reported(site, where, make_file):
    file = make_file(DATA, f"{site.address}/data.bin")
    told: list[str] = []
    fetch([file], where, told.append)
    assert where.cached(file).read_bytes() == DATA
    assert told == ["fetching toy/data.bin (1.0 MB)", "fetched toy/data.bin"]
    fetch([file], where, told.append)
    assert len(told) == 2
    assert len(site.asked) == 1


@pytest.mark.parametrize("bad", [b"short", DATA[::-1]])
def test_a_wrong_copy_in_the_cache_is_replaced(site, where, make_file, bad):
    file = make_file(DATA, f"{site.address}/data.bin")
    where.cached(file).parent.mkdir(parents=True)
    where.cached(file).write_bytes(bad)
    fetch([file], where)
    assert where.cached(file).read_bytes() == DATA


def test_the_given_folder_is_read_but_never_written(site, where, make_file):
    file = make_file(DATA, f"{site.address}/data.bin")
    given = where.given / "toy/data.bin"
    given.parent.mkdir()
    given.write_bytes(b"wrong")
    fetch([file], where)
    assert given.read_bytes() == b"wrong"
    assert where.cached(file).read_bytes() == DATA
    given.write_bytes(DATA)
    where.cached(file).unlink()
    fetch([file], where)
    assert not where.cached(file).exists()


def test_a_file_that_fails_does_not_stop_the_others(site, where, make_file):
    good = make_file(DATA, f"{site.address}/data.bin", path="toy/good")
    bad = [make_file(DATA, f"{site.address}/none", path=f"toy/{name}") for name in ("a", "b")]
    with pytest.raises(DataError) as caught:
        fetch([bad[0], good, bad[1]], where)
    assert len(caught.value.lines) == 2
    assert caught.value.lines[0].startswith("toy/a: could not be fetched: http://")
    otherwise = f"or put the file ({bad[0].checksum}) below a folder named by MSDA_BENCH_DATA"
    assert caught.value.lines[0].endswith(otherwise)
    assert where.cached(good).read_bytes() == DATA


def test_a_cache_that_cannot_be_written_is_named(site, where, make_file):
    where.cache.write_bytes(b"a file, not a folder")
    with pytest.raises(DataError, match=r"data.bin: cannot be written: .*set MSDA_BENCH_CACHE to another folder"):
        fetch([make_file(DATA, f"{site.address}/data.bin")], where)


def test_files_without_a_source_must_be_placed_by_hand(site, where, make_file):
    file = File("toy/given.bin", "ab" * 32, 7, ByHand("made by us"))
    good = make_file(DATA, f"{site.address}/data.bin")
    line = only_line(fetch, [file, good], where)
    how = f"made by us; place it yourself below a folder named by MSDA_BENCH_DATA (7 bytes, sha256 {'ab' * 32})"
    assert line.startswith("toy/given.bin: not in ")
    assert line.endswith(f": {how}")
    assert where.cached(good).read_bytes() == DATA


def test_a_file_of_unknown_size_is_reported_without_size(site, where):
    digest = hashlib.md5(DATA, usedforsecurity=False).hexdigest()
    file = File("toy/data.bin", None, None, Url((f"{site.address}/data.bin",)), md5=digest)
    told: list[str] = []
    fetch([file], where, told.append)
    assert told == ["fetching toy/data.bin", "fetched toy/data.bin"]
