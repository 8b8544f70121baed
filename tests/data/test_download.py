"""Files are fetched once, whole and right, through faults of servers, disks and pip."""

import contextlib
import errno
import hashlib
import itertools
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.api import ByHand, File, Pip
from msda_bench.data import Folders, fetch
from msda_bench.errors import DataError
from tests.data.conftest import make_file, only_line
from tests.store.faulty import faults

DATA = bytes(range(256)) * 4000


@pytest.fixture
def get(tmp_path):
    """Fetches DATA, or a file with its checksum, from the addresses; returns its path and what was reported between."""

    def run(*addresses, content=DATA, part=None, md5=False):
        path = tmp_path / "cache/data.bin"
        path.parent.mkdir(exist_ok=True)
        if part is not None:
            path.with_name("data.bin.part").write_bytes(part)
        file = make_file(content, *addresses, path="data.bin")
        if md5:
            file = File(
                "data.bin", None, None, file.origin, md5=hashlib.md5(content, usedforsecurity=False).hexdigest()
            )
        told = []
        fetch([file], Folders(None, path.parent), told.append)
        size = "" if md5 else f" ({len(content) / 1e6:.1f} MB)"
        assert (told[0], told[-1]) == (f"fetching data.bin{size}", "fetched data.bin")
        return path, told[1:-1]

    return run


@pytest.fixture
def left(tmp_path):
    """The files in the cache and their sizes."""
    return lambda: {path.name: path.stat().st_size for path in (tmp_path / "cache").iterdir()}


@pytest.mark.parametrize(
    ("part", "asked", "ranges"),
    [
        (None, None, True),
        (DATA[:1000], "bytes=1000-", True),  # resumed
        (DATA[:1000], "bytes=1000-", False),
        (b"garbage", "bytes=7-", True),
        (DATA + b"too long", None, True),
        (b"\0" * len(DATA), None, True),
    ],
)
def test_a_file_is_fetched_despite_leftovers_of_an_earlier_attempt(get, site, left, part, asked, ranges):
    site.ranges = ranges
    path, told = get(f"{site.address}/data.bin", part=part)
    assert (path.read_bytes(), told) == (DATA, [])
    assert left() == {"data.bin": len(DATA)}
    assert site.asked[0] == ("/data.bin", asked)


def test_wrong_truncated_and_endless_bodies_leave_nothing_of_use(get, site, left):
    address = f"{site.address}/data.bin"
    for options, words in (
        ({"content": DATA[::-1]}, r"wrong checksum: sha256 "),
        ({"content": DATA[:10]}, "too long: "),
        ({"content": b"something else", "md5": True}, "wrong checksum: md5"),
    ):
        with pytest.raises(DataError, match=f"^data.bin: could not be fetched: {address}: {words}"):
            get(address, **options)
        assert left() == {}
    site.cut, site.ranges = 1000, False
    with pytest.raises(DataError, match=r"could not be fetched: http://.*/data.bin: truncated: 1000 bytes, expected"):
        get(address)
    assert left() == {"data.bin.part": 1000}  # kept for the next attempt
    with pytest.raises(DataError, match="could not be fetched"):
        get(address, md5=True)  # without a size nothing shows what is missing
    assert left() == {}
    site.cut, site.ranges = None, True
    get(address, md5=True, part=DATA[:1000])
    assert site.asked[-1] == ("/data.bin", None)
    assert left() == {"data.bin": len(DATA)}


def test_a_complete_part_needs_no_network_and_a_mirror_may_be_a_folder(get, tmp_path):
    assert get("http://127.0.0.1:9/data.bin", part=DATA)[0].read_bytes() == DATA
    (tmp_path / "cache/data.bin").unlink()
    (tmp_path / "mirror").write_bytes(DATA)
    assert get((tmp_path / "mirror").as_uri(), part=DATA[:10])[0].read_bytes() == DATA


def test_a_server_that_breaks_off_is_asked_for_the_rest(get, site):
    site.cut = len(DATA) // 2 + 1
    assert get(f"{site.address}/data.bin")[0].read_bytes() == DATA
    assert site.asked == [("/data.bin", None), ("/data.bin", f"bytes={site.cut}-")]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 503\r\n\r\n", "HTTP 503 Service Unavailable"),
        (b"HTTP/1.1 202\r\n\r\n", "HTTP 202 without bytes"),
        (b"\r\n\r\n", "BadStatusLine"),
        (b"SMTP/2\r\n", "BadStatusLine: SMTP/2"),
        (b"", "RemoteDisconnected: Remote end closed connection without response"),
    ],
)
def test_every_fault_of_a_server_has_a_reason_and_loses_nothing(get, site, left, answer, reason):
    site.raw = {"/a": answer}
    line = only_line(get, f"{site.address}/a", part=DATA[:1000])
    assert line.startswith(f"data.bin: could not be fetched: {site.address}/a: {reason}")
    assert left() == {"data.bin.part": 1000}
    get(f"{site.address}/a", f"{site.address}/data.bin")
    assert site.asked[-1] == ("/data.bin", "bytes=1000-")


def test_the_next_address_is_tried_and_redirects_do_not_lead_into_local_files(get, site, tmp_path):
    path, told = get(f"{site.address}/none", f"{site.address}/data.bin")
    assert (path.read_bytes(), told) == (DATA, [f"data.bin: {site.address}/none: HTTP 404 Not Found"])
    path.unlink()
    moved = {"/old": "/data.bin", "/bad": (tmp_path / "secret").as_uri()}
    site.raw = {old: f"HTTP/1.1 302\r\nLocation: {new}\r\n\r\n".encode() for old, new in moved.items()}
    (tmp_path / "secret").write_bytes(DATA)
    with pytest.raises(DataError, match="/bad: HTTP 302"):
        get(f"{site.address}/bad")
    assert get(f"{site.address}/old")[0].read_bytes() == DATA


def test_a_mirror_of_the_environment_is_asked_first(site, where, monkeypatch):
    site.pages["/mirror/toy/a%20b.bin"] = DATA
    monkeypatch.setenv("MSDA_BENCH_MIRROR", f"{site.address}/mirror/")
    files = [make_file(DATA, f"{site.address}/data.bin", path=f"toy/{name}.bin") for name in ("a b", "c")]
    fetch(files, where)
    asked = ["/mirror/toy/a%20b.bin", "/mirror/toy/c.bin", "/data.bin"]
    assert [path for path, _ in site.asked] == asked
    assert [where.cached(file).read_bytes() for file in files] == [DATA] * 2


def test_every_address_that_failed_is_named(get, site, tmp_path, left):
    bad = ("ftp://127.0.0.1/x", "data:,x", "/etc/passwd", "")
    line = only_line(get, f"{site.address}/a", (tmp_path / "absent").as_uri(), "http://127.0.0.1:9/x", *bad)
    assert "/a: HTTP 404 Not Found; file:///" in line
    assert "absent: No such file or directory; " in line
    assert "http://127.0.0.1:9/x: Connection refused" in line
    assert all(f"; {address}: not an address of the schemes http, https, file" in line for address in bad)
    assert left() == {}


def test_a_part_that_is_a_link_is_not_written_through(get, site, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/data.bin.part").symlink_to(tmp_path / "outside")
    assert "cannot be written: Too many levels of symbolic links" in only_line(get, f"{site.address}/data.bin")
    assert not (tmp_path / "outside").exists()


SCRIPT = """
import sys
from pathlib import Path
from msda_bench.api import File, Url
from msda_bench.data import Folders, fetch
address, digest, size, cache = sys.argv[1:]
fetch([File("data.bin", digest, int(size), Url((address,)))], Folders(None, Path(cache)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_download_is_resumed_by_one_of_the_next(site, tmp_path, left):
    command = [sys.executable, "-c", SCRIPT, f"{site.address}/data.bin", make_file(DATA).sha256, str(len(DATA))]
    site.held = 1 << 18  # what is asked for at a time
    part = tmp_path / "cache/data.bin.part"
    first = subprocess.Popen([*command, str(part.parent)])
    while not part.exists() or part.stat().st_size < site.held:
        assert first.poll() is None
        time.sleep(0.02)
    others = [subprocess.Popen([*command, str(part.parent)]) for _ in range(2)]
    while not all(_has_open(process, part) for process in others):  # both wait for its lock
        time.sleep(0.02)
    first.kill()
    first.wait()
    site.held = None
    assert [process.wait(120) for process in others] == [0, 0]
    assert left() == {"data.bin": len(DATA)}
    assert (part.parent / "data.bin").read_bytes() == DATA
    assert site.asked == [("/data.bin", None), ("/data.bin", f"bytes={1 << 18}-")]


def _has_open(process, path):
    assert process.poll() is None
    with contextlib.suppress(OSError):  # of a file that it closes just now
        return str(path) in map(os.readlink, Path(f"/proc/{process.pid}/fd").iterdir())
    return False


@pytest.mark.parametrize("bad", [b"short", DATA[::-1]])
def test_wrong_copies_are_replaced_in_the_cache_alone(site, where, bad):
    file = make_file(DATA, f"{site.address}/data.bin")
    given = where.given / "toy/data.bin"
    for path in (given, where.cached(file)):
        path.parent.mkdir(parents=True)
        path.write_bytes(bad)
    fetch([file], where)
    assert (given.read_bytes(), where.cached(file).read_bytes()) == (bad, DATA)
    fetch([file], where)
    assert len(site.asked) == 1
    given.write_bytes(DATA)
    where.cached(file).unlink()
    fetch([file], where)
    assert not where.cached(file).exists()


def test_a_file_that_fails_does_not_stop_the_others(site, where):
    good = make_file(DATA, f"{site.address}/data.bin", path="toy/good")
    bad = make_file(DATA, f"{site.address}/none", path="toy/a")
    placed = File("toy/given.bin", "ab" * 32, 7, ByHand("made by us"))
    with pytest.raises(DataError) as caught:
        fetch([bad, placed, good], where)
    first, second = caught.value.lines
    assert first.startswith("toy/a: could not be fetched: http://")
    assert first.endswith(f"or put the file ({bad.checksum}) below a folder named by MSDA_BENCH_DATA")
    assert second.startswith("toy/given.bin: not in ")
    how = f"made by us; place it yourself below a folder named by MSDA_BENCH_DATA (7 bytes, sha256 {'ab' * 32})"
    assert second.endswith(f": {how}")
    assert where.cached(good).read_bytes() == DATA


@pytest.mark.parametrize(("code", "old"), [(errno.ENOSPC, None), (errno.EIO, b"damaged")])
def test_a_download_that_cannot_be_written_is_reported_and_resumes(tmp_path, code, old):
    (tmp_path / "mirror").write_bytes(DATA)
    file = make_file(DATA, (tmp_path / "mirror").as_uri(), "http://127.0.0.1:9/never-asked")
    # Making a folder that is there, which is the first call then, may fail.
    for at in itertools.count(0 if old is None else 1):
        where = Folders(None, tmp_path / str(at))
        path = where.cached(file)
        if old is not None:
            path.parent.mkdir(parents=True)
            path.write_bytes(old)
        lines = ()
        with faults(code, at) as faulty:
            try:
                fetch([file], where)
            except DataError as error:
                lines = error.lines
        if faulty.refused is None:
            break
        assert lines == (
            f"{path}: cannot be written: {os.strerror(code)}; free space, or set MSDA_BENCH_CACHE to another folder",
        )
        assert not path.exists() or path.read_bytes() in {old, DATA}
        fetch([file], where)
        assert path.read_bytes() == DATA
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert lines == ()
    assert {"open", "write", "fsync", "replace"} <= set(faulty.calls)


CONTENT = b"an archive"
FILE = File("toy/toy-1.0.tar.gz", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), Pip("toy", "1.0"))


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Replaces Python by a script with a chosen response to `-m pip download ... --dest FOLDER`."""

    def answer(body):
        fake = tmp_path / "python"
        fake.write_text(f"#!{sys.executable}\nimport sys, os\nargs = sys.argv[1:]\ndest = args[-1]\n{body}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(fake))

    return answer


def write(name, content):
    return f"os.makedirs(dest, exist_ok=True); open(os.path.join(dest, {name!r}), 'wb').write({content!r})\n"


@pytest.mark.parametrize(("name", "kind"), [("toy-1.0.tar.gz", "--no-binary"), ("toy-1.0.whl", "--only-binary")])
def test_pips_archive_is_moved_into_place(pip, where, name, kind):
    file = replace(FILE, path=f"toy/{name}")
    pin = f"toy==1.0 --hash=sha256:{file.sha256}\n"
    pip(
        f"assert open(args[args.index('--requirement') + 1]).read() == {pin!r}\n"
        f"assert args[args.index({kind!r}) + 1] == 'toy'\n" + write(name, CONTENT)
    )
    fetch([file], where)
    path = where.cached(file)
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sys.exit('/usr/bin/python: No module named pip')", r"this Python has no pip; run `.* -m ensurepip` first"),
        ("sys.exit('noise\\nERROR: no match for toy\\nnotice: newer pip')", "pip failed: no match for toy"),
        ("sys.exit(7)", "pip failed: exit status 7"),
        ("pass", "pip fetched 0 files for toy==1.0"),
        (write("a", CONTENT) + write("b", CONTENT), "pip fetched 2 files for toy==1.0"),
        (write("a", b"short"), "pip fetched a wrong file for toy==1.0: truncated: 5 bytes, expected 10"),
        ("import time; time.sleep(30)", "pip took more than 0.2 s"),
    ],
)
def test_each_failure_of_pip_is_reported_in_one_line_and_leaves_nothing(pip, where, monkeypatch, body, expected):
    if "sleep" in body:
        monkeypatch.setattr("msda_bench.data.download.PIP_TIMEOUT", 0.2)
    pip(body)
    assert re.match(f"toy/toy-1.0.tar.gz: {expected}", only_line(fetch, [FILE], where))
    assert list(where.cached(FILE).parent.iterdir()) == []
