"""Data folders, files, refusals, and a small web server with configurable faults."""

import contextlib
import hashlib
import http.server
import re
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest

from msda_bench.api import File, Url
from msda_bench.data.files import Folders
from msda_bench.errors import DataError


@pytest.fixture
def where(tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    return Folders(given, tmp_path / "cache")


def make_file(content, *addresses, path="toy/data.bin"):
    return File(path, hashlib.sha256(content).hexdigest(), len(content), Url(addresses))


def only_line(call, *args, **options):
    """The single line of the DataError that the call raises."""
    with pytest.raises(DataError) as caught:
        call(*args, **options)
    (line,) = caught.value.lines
    assert "\n" not in line
    return line


@pytest.fixture
def site():
    with serving(Site({"/data.bin": bytes(range(256)) * 4000})) as served:
        yield served


@dataclass
class Site:
    """The content and the faults of the web server.

    Attributes:
        pages: bytes by path.
        raw: the whole answer, with its head, by path.
        ranges: whether Range headers are understood.
        cut: bytes after which every answer's body stops; None for the whole.
        held: bytes after which an answer waits until this is None; None for no wait.
        asked: (path, Range header) of every request.
    """

    pages: dict[str, bytes]
    raw: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cut: int | None = None
    held: int | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""


class _Handler(http.server.BaseHTTPRequestHandler):
    site: Site

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.site.asked.append((self.path, wanted))
        if self.path in self.site.raw:
            self.wfile.write(self.site.raw[self.path])
        elif self.path in self.site.pages:
            self._send(self.site.pages[self.path], wanted if self.site.ranges else None)
        else:
            self.send_error(404)

    def _send(self, body, wanted):
        match = re.fullmatch(r"bytes=(\d+)-", wanted or "")
        start = int(match[1]) if match else 0
        self.send_response(206 if match else 200)
        if match:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        sent = body[start:][: self.site.cut]
        if self.site.held is not None:
            self.wfile.write(sent[: self.site.held])
            sent = sent[self.site.held :]
            while self.site.held is not None:
                time.sleep(0.02)
        with contextlib.suppress(ConnectionError):  # the reader may be gone by then
            self.wfile.write(sent)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(site):
    handler = type("Handler", (_Handler,), {"site": site})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


class ThisProcess:
    """A worker that starts no process; tests/data has those that do."""

    def submit(self, call, *args):
        future = Future()
        try:
            future.set_result(call(*args))
        except DataError as error:
            future.set_exception(error)
        return future

    def kill(self):
        pass


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr("msda_bench.data.rows.Worker", ThisProcess)
