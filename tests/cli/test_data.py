"""`msda-bench data` with a third-party dataset whose files are next to the test."""

import sys
from importlib.metadata import entry_points

import numpy as np
import pytest

from msda_bench import atomic, plugins
from msda_bench.api import Rows
from msda_bench.data import LocalFiles

CONTENT = b"the data"
PLUGIN = """
    import hashlib
    from msda_bench.api import Dataset, File, InputSpec, Task, Url, component, hookimpl
    DIGEST = hashlib.sha256(b"the data").hexdigest()

    @component
    class Toy(Dataset):
        '''A toy.'''
        name = "toy"
        licence = "CC0-1.0 [really]"
        source = "nobody"
        domains = ("near", "far")
        task = Task("classification", 3)
        input = InputSpec((1,))
        files = tuple(File(f"toy/{name}", DIGEST, 8, Url(("ADDRESS" + name,))) for name in ("a", "b"))

        def load(self, domain, files):
            raise NotImplementedError

    @hookimpl
    def msda_datasets():
        return [Toy]
"""


@pytest.fixture
def toy(install, tmp_path, monkeypatch):
    """Installs the dataset; returns the folder from which its files are fetched."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for name in "ab":
        (mirror / name).write_bytes(CONTENT)
    monkeypatch.delenv("MSDA_BENCH_DATA", raising=False)
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path / "cache"))
    install("toy-data", PLUGIN.replace("ADDRESS", mirror.as_uri() + "/"))
    return mirror


def row(out, name):
    (line,) = [line for line in out if line.startswith(f"{name} ")]
    return line


def test_many_domains_are_cut_in_the_table_but_complete_for_a_named_dataset(install, said, monkeypatch):
    domains = [f"d{number:03}" for number in range(139)]
    install("toy-data", PLUGIN.replace('("near", "far")', str(tuple(domains))))
    assert "  d000, d001, d002, d003, d004, d005, d006, d007, ... (139 in all)  " in row(said("data list")[1], "toy")
    code, out, err = said("data list toy")
    assert (code, err) == (0, [])
    assert max(map(len, out)) <= 80
    assert " ".join(map(str.strip, out)).endswith(f"domains: {', '.join(domains)}")
    assert "  licence: CC0-1.0 [really]" in out
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout, "isatty", lambda: True)
        out = said("data list")[1]
    assert max(map(len, out)) <= 80
    assert "toy: classification, 3 classes; files here: 0 of 2" in out
    assert any("(139 in all)" in line for line in out)


def test_fetch_downloads_missing_files_once_list_counts_and_verify_checks_them(toy, said, tmp_path):
    code, out, err = said("data list")
    assert (code, err, "needs none" in row(out, "sine")) == (0, [], True)
    for cell in ("near, far", "classification, 3 classes", "CC0-1.0 [really]", "nobody", "0 of 2"):
        assert cell in row(out, "toy")
    code, out, _ = said("data verify toy")
    assert (code, str(out).count("toy/a: not in the cache")) == (1, 1)
    code, out, err = said("data fetch toy sine toy")
    assert (code, err) == (0, [])
    reported = [f"fetch{end}" for name in "ab" for end in (f"ing toy/{name} (0.0 MB)", f"ed toy/{name}")]
    assert out == [*reported, "toy: all files are here (2)", "sine: needs no files"]
    assert (tmp_path / "cache/toy/b").read_bytes() == CONTENT
    assert "2 of 2" in row(said("data list")[1], "toy")
    assert said("data fetch toy") == (0, ["toy: all files are here (2)"], [])
    code, out, err = said("data verify toy sine")
    assert (code, err, str(out).count("ok: ")) == (0, [], 3)
    (tmp_path / "cache/toy/b").write_bytes(CONTENT[::-1])
    code, out, _ = said("data verify toy")
    assert (code, str(out).count("wrong checksum"), str(out).count("ok: ")) == (1, 1, 1)


def test_verify_reads_all_arrays_of_the_cache_and_removes_damaged_ones(toy, said, tmp_path, monkeypatch):
    files = LocalFiles(processes=1)
    for name in ("some", "whole"):
        files.derived(name, lambda: {"a": np.arange(3)})
    x = np.arange(8, dtype=np.uint8).reshape(4, 2)
    files.rows("changed", Rows("tests.cli.test_data:double", x, (2,), {}, together=2))
    said("data fetch toy")
    kept = sorted(path for path in (tmp_path / "cache/derived").iterdir() if path.suffix in {".npy", ".arrays"})
    assert len(kept) == 3
    out = said("data verify --all")[1]
    assert {line.split()[0] for line in out[1:]} >= {"amazon", "fonts", "opinions", "sine", "toy"}
    only = plugins.discover(point for point in entry_points(group="msda_bench") if point.name == "plugin")
    monkeypatch.setattr(plugins, "discover", lambda: only)
    mine, theirs = (
        kept[0].with_name(f".{kept[0].name}.{host}-{(1 << 22) + 1}-{'0' * 32}.tmp") for host in (atomic.host(), "0" * 8)
    )
    mine.touch()
    theirs.touch()
    code, out, _ = said("data verify --all")
    assert (code, mine.exists(), theirs.exists()) == (0, False, True)
    assert str(out).count(f"rm {theirs}") == 1
    assert all(["(cache)", f"derived/{path.name}", "ok"] in map(str.split, out) for path in kept)
    for path in kept[:2]:  # "changed" and "some"
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert said("data verify toy")[0] == 0
    code, out, _ = said("data verify --all")
    assert code == 1
    assert str(out).count("damaged: its bytes have no right checksum; removed") == 2
    assert [path.exists() for path in kept] == [False, False, True]


def double(contents):
    """Makes rows for the test above in other processes."""
    return np.array([np.frombuffer(content, np.uint8) * 2 for content in contents])


@pytest.mark.parametrize("command", ["list", "verify --all", "fetch toy odd twin sine"])
def test_an_unusable_dataset_is_one_line_and_the_others_are_processed(toy, install, said, command):
    odd = "files = property(lambda self: {}['no files'])\n        _ = "
    install("odd-data", PLUGIN.replace('name = "toy"', 'name = "odd"').replace("files = ", odd))
    if command == "list":
        install("broken-data", "raise RuntimeError('no')")
    for owner in ("one", "two"):
        install(owner, PLUGIN.replace('"toy"', '"twin"'))
    code, out, err = said(f"data {command}")
    assert code == 2
    broken = [line for line in err if line.startswith("msda-bench: error: broken-data 1.0: ")]
    assert len(broken) == (command == "list")
    assert {*err} - {*broken} == {
        "msda-bench: error: dataset 'odd' of odd-data 1.0 cannot be inspected: odd_data.py:15: KeyError: 'no files'",
        "msda-bench: error: dataset 'twin' is claimed by one 1.0 and two 1.0; uninstall one of them",
    }
    assert {"toy", "sine"} <= {line.split()[0].rstrip(":") for line in out}
