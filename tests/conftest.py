"""Shared fixtures: the place of real data, hypothesis settings and third-party distributions."""

import os
import shutil
import signal
import sys
import textwrap
from pathlib import Path

import hypothesis
import pytest

HERE = Path(__file__).parent
IN_MEMORY = Path("/dev/shm")  # noqa: S108
SPACE = 4 << 30
"""Bytes of which the tests' files need about a third."""
WHOLE_COMMANDS = {"cli", "page", "running", "strangers"}
"""The folders of tests that run whole commands, processes or a browser, all of which are slow."""
STUDIES = ("registered", "registered-2", "registered-3", "datasets", "long-runs")
"""Those whose modules are tested."""


def pytest_configure():
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # The background job of a shell ignores Ctrl-C, and so would the processes that tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # For `benchmarks` and the registered studies; last, since what is installed is tested.
    sys.path += [
        str(HERE.parent),
        *(str(HERE.parent / "studies" / name) for name in STUDIES),
    ]
    # Tests copy folders of many small files; on a disk that takes longer than the commands that they test.
    if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > SPACE:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
    # Real data are never part of the project; a test that needs them skips where they are not.
    beside = HERE.parent.parent / "shared" / "data"
    if beside.is_dir():
        os.environ.setdefault("MSDA_BENCH_DATA", str(beside))
    # No deadlines, since machines differ; in CI the same examples every time, so that a failure is the change's own.
    hypothesis.settings.register_profile("here", deadline=None)
    hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
    hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_collection_modifyitems(config, items):
    """Marks whole commands as slow, and deselects nightly tests unless `-m` names them."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in WHOLE_COMMANDS:
            item.add_marker("slow")
    if "nightly" not in config.option.markexpr:
        late = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if item not in late]
        config.hook.pytest_deselected(items=late)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the import path for distributions; its modules are unloaded afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def install(site):
    """Installs a distribution of one module, given its name, code and optionally entry point, version and group."""

    def run(distribution, code, *, entry="plugin", version="1.0", group="msda_bench"):
        module = distribution.replace("-", "_")
        (site / f"{module}.py").write_text(textwrap.dedent(code))
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{entry} = {module}\n")

    return run


@pytest.fixture
def shown(capsys):
    """`shown("leaderboard", folder)`: what a command prints, with single spaces; with `code=2` its errors."""
    from msda_bench.cli.main import main

    def run(*words, code=0):
        capsys.readouterr()
        assert main([*map(str, words)]) == code
        return " ".join(capsys.readouterr()[code == 2].split())

    return run


@pytest.fixture
def golden(request):
    """`golden(name, text)` compares text with a file of golden/ beside the test; delete it to write it anew."""

    def check(name, text):
        path = request.path.parent / "golden" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            pytest.fail(f"{path} was missing and is written now: read it, and keep it if it is right")
        assert text == path.read_bytes().decode()

    return check
