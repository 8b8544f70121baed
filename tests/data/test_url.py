from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from msda_bench.api import File, Url
from msda_bench.data.url import download_url
from msda_bench.errors import DataError
from tests.data.refusal import only_line

DATA = bytes(range(256)) * 4000


@pytest.fixture
def get(tmp_path, make_file):
    """Downloads DATA, or a file with its checksum, from the addresses; returns the path and the reported lines."""

    def run(*addresses: str, content: bytes = DATA, part: bytes | None = None):
        path = tmp_path / "data.bin"
        if part is not None:
            path.with_name("data.bin.part").write_bytes(part)
        told: list[str] = []
        file = make_file(content, *addresses)
        download_url(file, file.origin, path, told.append)
        return path, told

    return run


def left(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        (None, None),
        (DATA[:1000], "bytes=1000-"),  # resumed
        (b"garbage", "bytes=7-"),
        (DATA + b"too long", None),
        (b"\0" * len(DATA), None),
    ],
)
@pytest.mark.parametrize("ranges", [True, False])
def test_a_file_is_fetched_despite_leftovers_of_an_earlier_attempt(get, site, tmp_path, part, asked, ranges):
    site.ranges = ranges
    path, told = get(f"{site.address}/data.bin", part=part)
    assert path.read_bytes() == DATA
    assert told == []
    assert left(tmp_path) == {"data.bin": len(DATA)}
    assert site.asked[0] == ("/data.bin", asked)


@pytest.fixture
def get_unsized(tmp_path, site):
    """Downloads a file with only an md5."""

    def run(content: bytes = DATA) -> Path:
        origin = Url((f"{site.address}/data.bin",))
        file = File("toy/data.bin", None, None, origin, md5=hashlib.md5(content, usedforsecurity=False).hexdigest())
        download_url(file, origin, tmp_path / "data.bin", lambda _: None)
        return tmp_path / "data.bin"

    return run


@pytest.mark.parametrize("part", [None, DATA[:1000], DATA + b"too long"])
def test_a_file_of_unknown_size_is_always_fetched_completely(get_unsized, site, tmp_path, part):
    if part is not None:
        (tmp_path / "data.bin.part").write_bytes(part)
    assert get_unsized().read_bytes() == DATA
    assert left(tmp_path) == {"data.bin": len(DATA)}
    assert site.asked == [("/data.bin", None)]


def test_a_file_of_unknown_size_with_other_bytes_leaves_nothing(get_unsized, site, tmp_path):
    with pytest.raises(DataError, match="wrong checksum: md5"):
        get_unsized(b"something else")
    site.cut = 1000
    with pytest.raises(DataError, match=r"data\.bin: could not be fetched"):
        get_unsized()
    assert left(tmp_path) == {}


def test_a_complete_part_needs_no_network(get):
    path, _ = get("http://127.0.0.1:9/data.bin", part=DATA)
    assert path.read_bytes() == DATA


def test_a_server_that_breaks_off_is_asked_for_the_rest(get, site):
    site.cut = len(DATA) // 2 + 1
    path, _ = get(f"{site.address}/data.bin")
    assert path.read_bytes() == DATA
    assert site.asked == [("/data.bin", None), ("/data.bin", f"bytes={site.cut}-")]


def test_a_truncated_body_is_an_error_but_kept_for_the_next_attempt(get, site, tmp_path):
    site.cut, site.ranges = 1000, False
    with pytest.raises(DataError, match=r"could not be fetched: http://.*/data.bin: truncated: 1000 bytes, expected"):
        get(f"{site.address}/data.bin")
    assert left(tmp_path) == {"data.bin.part": 1000}
    site.cut, site.ranges = None, True
    get(f"{site.address}/data.bin")
    assert site.asked[-1] == ("/data.bin", "bytes=1000-")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 503\r\n\r\n", "HTTP 503 Service Unavailable"),
        (b"HTTP/1.1 599 \r\n\r\n", "HTTP 599"),
        (b"\r\n\r\n", "BadStatusLine"),
        (b"SMTP/2\r\n", "BadStatusLine: SMTP/2"),
        (b"", "RemoteDisconnected: Remote end closed connection without response"),
    ],
)
def test_every_fault_of_a_server_has_a_reason(get, answer, reason):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            asked, _ = server.accept()
            with asked:
                asked.recv(1 << 16)
                asked.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/data.bin"
        line = only_line(get, address)
        thread.join()
    assert line.startswith(f"toy/data.bin: could not be fetched: {address}: {reason}")


def test_wrong_bytes_are_refused_and_not_kept(get, site, tmp_path):
    with pytest.raises(DataError, match=r"data\.bin: wrong checksum: sha256 "):
        get(f"{site.address}/data.bin", content=DATA[::-1])
    assert left(tmp_path) == {}


def test_an_endless_body_is_abandoned(get, site, tmp_path):
    with pytest.raises(DataError, match=r"data\.bin: too long: "):
        get(f"{site.address}/data.bin", content=DATA[:10])
    assert left(tmp_path) == {}


def test_the_next_address_is_tried(get, site):
    path, told = get(f"{site.address}/none", f"{site.address}/data.bin")
    assert path.read_bytes() == DATA
    assert told == [f"toy/data.bin: {site.address}/none: HTTP 404 Not Found"]


def test_redirects_are_followed_but_not_into_local_files(get, site, tmp_path):
    site.moved = {"/old": "/data.bin", "/bad": (tmp_path / "secret").as_uri()}
    (tmp_path / "secret").write_bytes(DATA)
    with pytest.raises(DataError, match="/bad: HTTP 302"):
        get(f"{site.address}/bad")
    assert get(f"{site.address}/old")[0].read_bytes() == DATA


def test_file_urls_are_accepted(get, tmp_path):
    (tmp_path / "mirror").write_bytes(DATA)
    path, _ = get((tmp_path / "mirror").as_uri(), part=DATA[:10])
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/x", "data:,x", "/etc/passwd", ""])
def test_other_schemes_are_refused(get, address):
    with pytest.raises(DataError, match="not an address of the schemes http, https, file"):
        get(address)


def test_every_address_that_failed_is_named(get, site, tmp_path):
    line = only_line(get, f"{site.address}/a", (tmp_path / "absent").as_uri(), "http://127.0.0.1:9/x")
    assert "/a: HTTP 404 Not Found; file:///" in line
    assert "absent: No such file or directory; " in line
    assert "http://127.0.0.1:9/x: Connection refused" in line
    assert left(tmp_path) == {}


SCRIPT = """
import sys
import time
from pathlib import Path
from msda_bench.api import File, Url
from msda_bench.data.url import download_url
address, digest, size, path = sys.argv[1:]
download_url(File("toy/data.bin", digest, int(size), Url((address,))), Url((address,)), Path(path), print)
"""


@pytest.fixture
def command(site, tmp_path, make_file):
    """Downloads DATA in a separate process."""
    file = make_file(DATA)
    path = tmp_path / "data.bin"
    return [sys.executable, "-c", SCRIPT, f"{site.address}/data.bin", file.sha256, str(file.size), str(path)]


def test_a_part_that_is_a_link_is_not_written_through(get, site, tmp_path):
    outside = tmp_path / "outside"
    (tmp_path / "data.bin.part").symlink_to(outside)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        get(f"{site.address}/data.bin")
    assert not outside.exists()


@pytest.mark.slow
def test_a_killed_download_is_resumed_by_the_next(site, tmp_path, command):
    site.held = 1 << 18  # what is asked for at a time
    path = tmp_path / "data.bin"
    first = subprocess.Popen(command)
    part = tmp_path / "data.bin.part"
    while not part.exists() or part.stat().st_size < site.held:
        time.sleep(0.02)
    second = subprocess.Popen(command)
    first.kill()
    first.wait()
    site.held = None
    assert second.wait(120) == 0
    assert left(tmp_path) == {"data.bin": len(DATA)}
    assert path.read_bytes() == DATA
    assert site.asked == [("/data.bin", None), ("/data.bin", f"bytes={1 << 18}-")]


@pytest.mark.slow
def test_only_one_of_several_processes_downloads(site, tmp_path, command):
    path = tmp_path / "data.bin"
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert left(tmp_path) == {"data.bin": len(DATA)}
    assert path.read_bytes() == DATA
    assert all(start is None for _, start in site.asked)
