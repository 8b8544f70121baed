"""The process of a command: unwritable output, signals, and plugins that raise anything."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.store import Store
from msda_bench.store.sweep import verify
from tests.cli.test_run_faults import SUITE

ENTRY = "from msda_bench.cli.main import entry; entry()"
PROGRAM = [sys.executable, "-c", ENTRY]
RUN = "run tiny.yaml --device cpu --quiet --workers 1 --only seed=0"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SUITE)


def shell(command: str, redirected: str) -> subprocess.CompletedProcess[str]:
    line = f"{shlex.join(PROGRAM)} {command} {redirected}"
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)


CLOSED, FULL = (">&-", "Bad file descriptor"), ("> /dev/full", "No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "redirected", "why"),
    [("--help", *CLOSED), ("--help", *FULL), ("plugins", *CLOSED), ("schema", *FULL), (RUN, *FULL)],
)
def test_output_that_cannot_be_written_is_one_line_and_exit_code_2(command: str, redirected: str, why: str) -> None:
    done = shell(command, redirected)
    line = f"msda-bench: error: stdout cannot be written: {why}; free space, or redirect it elsewhere\n"
    assert (done.returncode, done.stderr) == (2, line)
    if command == RUN:  # the trained cells are stored
        assert verify(Store(Path("results/tiny"))).records == 1


@pytest.mark.parametrize("redirected", ["2>&-", "2> /dev/full"])
def test_text_that_cannot_be_written_to_stderr_goes_nowhere_else(redirected: str) -> None:
    assert shell("plugins no-such-argument", redirected).returncode == 2
    done = shell("plugins", redirected)
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["kind", "name"])


HEAD = "from msda_bench.api import Validator, component, hookimpl\n"
HOOK = "@hookimpl\ndef msda_validators():\n    "
CLASS = f"""{HEAD}
class Meta(type(Validator)):
    def __getattribute__(cls, name):
        if name == 'ATTRIBUTE':
            raise GeneratorExit
        return super().__getattribute__(name)

class V(Validator, metaclass=Meta):
    name = 'v'
    def score(self, view): ...

{HOOK}return [MADE]
"""
HOSTILE = {
    "base_exception": ("raise BaseException('a\\x1b[31m')", "BaseException: a [31m"),
    "generator_exit": ("raise GeneratorExit", "GeneratorExit: no message"),
    "hook": (f"{HEAD}{HOOK}raise KeyboardInterrupt", "KeyboardInterrupt: no message"),
    "keyboard_interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt: no message"),
    "odd_name": (
        CLASS.replace("ATTRIBUTE", "name").replace("MADE", "V"),
        "V cannot be inspected: odd_name.py:6: GeneratorExit: no message",
    ),
    "odd_tasks": (
        CLASS.replace("ATTRIBUTE", "tasks").replace("MADE", "component(V)"),
        "V cannot be inspected: odd_tasks.py:6: GeneratorExit: no message",
    ),
    "unspeakable": (
        "class Odd(Exception):\n    def __str__(self):\n        raise KeyError\nraise Odd",
        "Odd: its message cannot be read, since its __str__ raises",
    ),
}


def test_no_plugin_disables_a_command(install: Callable[..., None], site: Path) -> None:
    for name, (code, _) in HOSTILE.items():
        install(name, code)
    environ = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([*PROGRAM, "validate", "tiny.yaml"], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(HOSTILE)
    for line, (name, (_, reason)) in zip(lines, sorted(HOSTILE.items()), strict=True):
        assert line.startswith(f"msda-bench: warning: {name} 1.0: ")
        assert line.endswith(reason)


def stopped(place: str, environ: dict[str, str], signals: int) -> tuple[int, str]:
    """The exit code and output of a command that gets signals once it reports that it waits for them."""
    with subprocess.Popen([*PROGRAM, *place.split()], stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        return process.returncode, said


@pytest.mark.parametrize(("command", "signals"), [("plugins", 1), ("plugins", 2), ("run tiny.yaml --device cpu", 2)])
def test_ctrl_c_is_not_blamed_on_a_plugin_and_a_second_changes_nothing(
    install: Callable[..., None], site: Path, command: str, signals: int
) -> None:
    # Not by print: if a signal arrives while it flushes, it writes its text twice.
    wait = "import os, time\nos.write(2, b'waiting\\n')\ntime.sleep(600)"
    install("slow", wait)
    environ = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    code, reported = stopped(command, environ, signals)
    assert (code, reported) == (130, "msda-bench: interrupted; run the same command again to resume\n")
