from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from fake_training import fake_cell

from msda_bench.api import Backbone, ByHand, Dataset, File, InputSpec, Task, Url, component
from msda_bench.errors import DataError
from msda_bench.plugins import Entry, Registry
from msda_bench.running.data import check_sizes, ensure_data
from msda_bench.suite.cell import Cell, Ref

DIGEST = hashlib.sha256(b"right").hexdigest()
FILES = {
    "one": [File(f"one/{name}.bin", DIGEST, 5, Url(())) for name in "abc"],
    "two": [
        File("two/theirs.bin", DIGEST, 5, Url(())),
        File("two/yours.bin", None, None, ByHand("made by you")),
        File("two/mine.bin", None, None, ByHand("made by you")),
    ],
    "large": [File("large/a.bin", DIGEST, 1_500_000_000, Url(())), File("large/b.bin", DIGEST, None, Url(()))],
}


@component
class Fake(Backbone):
    """A registry of the components in cells of the fake engine."""

    name = "fake"

    def build(self, task, input):
        raise NotImplementedError


BACKBONE = Entry("backbone", Fake, "tests", "1.0")


def dataset(called: str) -> type[Dataset]:
    @component
    class Toy(Dataset):
        name = called
        domains = ("t0", "s0", "s1")
        task = Task("classification", 2)
        input = InputSpec((3,))
        files = tuple(FILES[called])

        def load(self, domain, files):
            raise NotImplementedError

    return Toy


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`check(dataset, ...)`: the lines reported about files that cells of these datasets need."""
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path / "given"))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    registry = Registry([BACKBONE, *(Entry("dataset", dataset(name), "toy", "1.0") for name in FILES)])

    def run(*names: str, fetch: bool = False) -> tuple[str, ...]:
        try:
            ensure_data([cell(name) for name in names], registry, lambda _: None, fetch=fetch)
        except DataError as error:
            return error.lines
        return ()

    return run


def cell(name: str) -> Cell:
    return replace(fake_cell(), dataset=Ref("dataset", name, 1, "toy", {}))


def put(folder: Path, path: str, content: bytes = b"right") -> None:
    (folder / "given" / path).parent.mkdir(exist_ok=True)
    (folder / "given" / path).write_bytes(content)


def test_missing_data_are_reported_in_one_line_with_the_fetch_command(check, tmp_path):
    (line,) = check("one")
    assert line.startswith("data of one are missing: 3 files, 15 bytes to fetch, not in MSDA_BENCH_DATA (")
    assert "run `msda-bench data fetch one`, add --fetch to `run`" in line
    put(tmp_path, "one/b.bin")
    (line,) = check("one", "one")
    assert line.startswith("data of one are missing: 2 files, 10 bytes to fetch, not in")


def test_missing_data_of_several_datasets_are_reported_in_one_line_with_the_total(check):
    (line,) = check("one", "large")
    assert line.startswith(
        "data of one, large are missing: 5 files, 1.5 GB and 1 of unknown size to fetch "
        "(one: 3 files, 15 bytes; large: 2 files, 1.5 GB and 1 of unknown size), not in "
    )
    assert "run `msda-bench data fetch one large`" in line


def test_each_dataset_has_one_line_and_each_fault_its_own_message(check, tmp_path):
    put(tmp_path, "one/a.bin", b"wrong")
    missing, one, two = check("one", "two")
    assert missing.startswith("data of one, two are missing: 3 files, 15 bytes to fetch ")
    assert one.startswith(f"{tmp_path}/given/one/a.bin: wrong checksum: ")
    assert two.startswith("two/yours.bin, two/mine.bin: not in ")
    assert "place it yourself" in two


def test_only_domains_that_cells_need_are_prepared_and_none_while_weights_are_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    prepared = []

    @component
    class Weighty(Fake):
        """A backbone whose file size depends on a parameter."""

        name = "fake"
        size: int = 1

        @property
        def files(self):
            return (File(f"fake/{self.size}.bin", DIGEST, 5, Url(())),)

    @component
    class Slow(dataset("two")):
        files = (File("two/yours.bin", DIGEST, None, ByHand("made by you")),)
        domains = ("unused", "t0", "s0", "s1")

        def prepare(self, files, domains):
            prepared.extend(domains)

    (tmp_path / "two").mkdir()
    registry = Registry([Entry("backbone", Weighty, "tests", "1.0"), Entry("dataset", Slow, "toy", "1.0")])
    (tmp_path / "two/yours.bin").write_bytes(b"right")

    def lines(**params):
        one = replace(cell("two"), backbone=Ref("backbone", "fake", 1, "tests", params))
        try:
            ensure_data([one], registry, lambda _: None, fetch=False)
        except DataError as error:
            return error.lines
        return ()

    (line,) = lines()
    assert "data of fake are missing: 1 file, 5 bytes" in line
    assert "run `msda-bench data fetch fake`" in line
    (line,) = lines(size=2)
    assert "data fetch" not in line
    assert "; add --fetch to `run`" in line
    assert prepared == []
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake/1.bin").write_bytes(b"right")
    assert lines() == ()
    assert prepared == ["t0", "s0", "s1"]


def test_valid_files_are_not_reported(check, tmp_path):
    for file in FILES["one"]:
        put(tmp_path, file.path)
    assert check("one") == ()


def test_files_that_cannot_be_fetched_are_reported_one_by_one(check):
    lines = check("two", fetch=True)
    assert [line.partition(": ")[0] for line in lines] == ["two/theirs.bin", "two/yours.bin", "two/mine.bin"]


def test_sizes_read_from_files_are_checked_without_loading(check, tmp_path):
    """Sizes come from the files, without loading; an error of the user's data is reported."""

    class Listed(dataset("one")):
        def sizes(self, files=None):
            if files is None:
                return {}
            if self.train == 7:
                raise DataError("one: of no use; replace it")
            if self.train == 8:
                raise ZeroDivisionError
            return {"t0": 30, "s0": (2, 9)}

    for name in "abc":
        put(tmp_path, f"one/{name}.bin")
    registry = Registry([Entry("dataset", component(Listed), "toy", "1.0")])
    for train, expected in (
        (2, ()),
        (3, ["dataset one: domain 's0' has 2 examples to train on, fewer than train = 3; set a smaller `train`"]),
        (7, ["one: of no use; replace it"]),
        (8, ()),
    ):
        ref = Ref("dataset", "one", 1, "toy", {"train": train})
        planned = [replace(fake_cell(), dataset=ref, sources=("s0", "s1"), target="t0")]
        with contextlib.nullcontext() if not expected else pytest.raises(DataError) as caught:
            check_sizes(planned, registry)
        assert not expected or list(caught.value.lines) == expected


def test_preparation_reports_only_errors_that_the_user_can_fix(check, tmp_path):
    class Raising(dataset("one")):
        def prepare(self, files, domains):
            raise {2: ZeroDivisionError("theirs"), 3: DataError("one: mend it")}[self.train]

    for name in "abc":
        put(tmp_path, f"one/{name}.bin")
    registry = Registry([BACKBONE, Entry("dataset", component(Raising), "toy", "1.0")])

    def prepare(train: int) -> None:
        ref = Ref("dataset", "one", 1, "toy", {"train": train})
        ensure_data([replace(fake_cell(), dataset=ref)], registry, lambda _: None, fetch=False)

    prepare(2)
    with pytest.raises(DataError, match=r"^one: mend it$"):
        prepare(3)
