"""Missing, wrong and small data are reported before anything is trained, in lines that name the remedy."""

import hashlib
from dataclasses import replace

import pytest
from fake_training import fake_cell

from msda_bench.api import Backbone, ByHand, Dataset, File, InputSpec, Task, Url, component
from msda_bench.errors import DataError
from msda_bench.plugins import Entry, Registry
from msda_bench.running.data import check_sizes, ensure_data
from msda_bench.suite.run_spec import ComponentSpec

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
    """A backbone whose file depends on a parameter; without one it has none."""

    name = "fake"
    size: int = 0

    @property
    def files(self):
        return (File(f"fake/{self.size}.bin", DIGEST, 5, Url(())),) if self.size else ()

    def build(self, task, input):
        raise NotImplementedError


def dataset(called):
    class Toy(Dataset):
        name = called
        domains = ("unused", "t0", "s0", "s1")
        task = Task("classification", 2)
        input = InputSpec((3,))
        files = tuple(FILES[called])

        def load(self, domain, files):
            raise NotImplementedError

    return Toy


def cell(name, backbone=None, **params):
    refs = {
        "dataset": ComponentSpec("dataset", name, 1, "toy", params),
        "backbone": ComponentSpec("backbone", "fake", 1, "", backbone or {}),
    }
    return replace(fake_cell(), **refs)


def registry(*datasets):
    entries = [Entry("dataset", component(cls), "toy", "1.0") for cls in datasets or map(dataset, FILES)]
    return Registry([Entry("backbone", Fake, "tests", "1.0"), *entries])


def lines_of(ask, *given, **options):
    """The lines with which a check refuses."""
    try:
        ask(*given, **options)
    except DataError as error:
        return error.lines
    return ()


def check(*cells, of=None, fetch=False):
    """The lines reported about files that the cells need."""
    return lines_of(ensure_data, cells, of or registry(), lambda _: None, fetch=fetch)


@pytest.fixture(autouse=True)
def put(tmp_path, monkeypatch):
    """`put(path, ...)`: writes files into the user's data folder."""
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("MSDA_BENCH_DATA", str(tmp_path / "given"))
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))

    def write(*paths, content=b"right"):
        for path in paths:
            (tmp_path / "given" / path).parent.mkdir(exist_ok=True)
            (tmp_path / "given" / path).write_bytes(content)

    return write


def test_missing_data_are_reported_in_one_line_with_the_fetch_command(put):
    (line,) = check(cell("one"))
    assert line.startswith("data of one are missing: 3 files, 15 bytes to fetch, not in MSDA_BENCH_DATA (")
    assert "run `msda-bench data fetch one`, add --fetch to `run`" in line
    put("one/b.bin")
    (line,) = check(cell("one"), cell("large"), cell("one"))
    assert line.startswith(
        "data of one, large are missing: 4 files, 1.5 GB and 1 of unknown size to fetch "
        "(one: 2 files, 10 bytes; large: 2 files, 1.5 GB and 1 of unknown size), not in "
    )
    assert "run `msda-bench data fetch one large`" in line
    put("one/a.bin", "one/c.bin")
    assert check(cell("one")) == ()


def test_each_dataset_has_one_line_and_each_fault_its_own_message(put, tmp_path):
    put("one/a.bin", content=b"wrong")
    missing, one, two = check(cell("one"), cell("two"))
    assert missing.startswith("data of one, two are missing: 3 files, 15 bytes to fetch ")
    assert one.startswith(f"{tmp_path}/given/one/a.bin: wrong checksum: ")
    assert two.startswith("two/yours.bin, two/mine.bin: not in ")
    assert "place it yourself" in two
    lines = check(cell("two"), fetch=True)
    assert [line.partition(": ")[0] for line in lines] == ["two/theirs.bin", "two/yours.bin", "two/mine.bin"]


def test_only_needed_domains_are_prepared_none_while_weights_are_missing_and_errors_of_plugins_wait(put):
    prepared = []

    class Slow(dataset("one")):
        def prepare(self, files, domains):
            prepared.extend(domains)
            if self.train == 2:
                raise ZeroDivisionError("theirs, which the runs report")
            if self.train == 3:
                raise DataError("one: mend it")

    of = registry(Slow)
    put("one/a.bin", "one/b.bin", "one/c.bin")
    (line,) = check(cell("one", {"size": 1}), of=of)
    assert "data of fake are missing: 1 file, 5 bytes" in line
    assert "data fetch" not in line  # it fetches the files of a component without parameters
    assert "; add --fetch to `run`" in line
    assert prepared == []
    put("fake/1.bin")
    assert check(cell("one", {"size": 1}), of=of) == ()
    assert prepared == ["t0", "s0", "s1"]
    assert check(cell("one", train=2), of=of) == ()
    assert check(cell("one", train=3), of=of) == ("one: mend it",)


@pytest.mark.parametrize(
    ("train", "lines"),
    {
        2: (),
        3: ("dataset one: domain 's0' has 2 examples to train on, fewer than train = 3; set a smaller `train`",),
        7: ("one: of no use; replace it",),
        8: (),
    }.items(),
)
def test_sizes_are_read_from_files_without_loading_and_checked(put, train, lines):
    class Listed(dataset("one")):
        def sizes(self, files=None):
            if files is None:
                return {}
            if self.train == 7:
                raise DataError("one: of no use; replace it")
            if self.train == 8:
                raise ZeroDivisionError
            return {"t0": 30, "s0": (2, 9)}

    of = registry(Listed)
    check_sizes([cell("one", train=train)], of)  # without the files nothing is known
    put("one/a.bin", "one/b.bin", "one/c.bin")
    assert lines_of(check_sizes, [cell("one", train=train)], of) == lines
