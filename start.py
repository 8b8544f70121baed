"""Sets everything up and runs one thing: `python3 start.py quickstart`, or `python3 start.py tests`.

It needs Python 3.11 or later and a package index, nothing else. What it installs goes into .venv and .tox beside this
file. `quickstart` trains the first suite and writes its page; `tests` runs all tests and checks of tox.ini, or those of
`tests -e lint`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
OLDEST = (3, 11)
TESTED = {(3, 11): "py311", (3, 12): "py312", (3, 13): "py313"}


class SetupError(Exception):
    """What keeps the set-up from going on, in a line for the user."""


def run(*words: object) -> None:
    """Runs a command, and ends this one with its exit code where it fails.

    Args:
        words: the program and its arguments.
    """
    done = subprocess.run([str(word) for word in words], cwd=ROOT, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(done.returncode)


def succeeds(*words: object) -> bool:
    """Whether a command runs and ends with 0; its output is dropped."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, check=False)  # noqa: S603
    except OSError:
        return False
    return done.returncode == 0


def python_in(folder: Path) -> Path:
    """The interpreter of the environment in a folder."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_environment(folder: Path) -> Path:
    """Makes a virtual environment with pip, unless a working one is there.

    Debian's Python comes without `ensurepip`. Then the system's pip, virtualenv or uv helps, or apt-get, for root.

    Args:
        folder: where the environment is, or will be.

    Returns:
        Its interpreter.

    Raises:
        SetupError: this machine has nothing that makes one.
    """
    python = python_in(folder)
    if succeeds(python, "-m", "pip", "--version"):
        return python
    print(f"start.py: making an environment in {folder.relative_to(ROOT)}", flush=True)
    ways = [
        [[sys.executable, "-m", "venv", folder]],
        [
            [sys.executable, "-m", "venv", "--without-pip", folder],
            [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "pip"],
        ],
        [[sys.executable, "-m", "virtualenv", folder]],
        [["uv", "venv", "--seed", "--python", sys.executable, folder]],
    ]
    for commands in ways:
        shutil.rmtree(folder, ignore_errors=True)
        if all(succeeds(*command) for command in commands) and succeeds(python, "-m", "pip", "--version"):
            return python
    shutil.rmtree(folder, ignore_errors=True)
    if not (is_root() and shutil.which("apt-get")):
        raise SetupError(
            "this Python cannot make a virtual environment: install its venv module with pip"
            " (Debian, Ubuntu: sudo apt install python3-venv), and run the command again"
        )
    print("start.py: this Python cannot make an environment: installing Debian's python3-venv", flush=True)
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-qq", "--yes", "--no-install-recommends", "python3-venv")
    run(sys.executable, "-m", "venv", folder)
    return python


def is_root() -> bool:
    """Whether this user may install system packages."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def quickstart() -> None:
    """Installs msda-bench, trains the suite `quickstart` and writes its page."""
    python = make_environment(ROOT / ".venv")
    print("start.py: installing msda-bench into .venv", flush=True)
    run(python, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", ".")
    command = python.parent / "msda-bench"
    run(command, "run", "quickstart")
    run(command, "report", "results/quickstart")
    print(f"The page is {ROOT / 'results' / 'quickstart' / 'report.html'}. Further commands: {command} --help")


def tests(arguments: list[str]) -> None:
    """Installs tox, and runs all tests and checks with it, two environments at once; or what the arguments ask for."""
    python = make_environment(ROOT / ".tox" / ".bootstrap")
    run(python, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", "tox")
    if arguments:
        run(python, "-m", "tox", "run", *arguments)
        return
    environments = installed_environments()
    # Two at once: beside the tests, which take both cores, the others wait for their package index or use one.
    run(python, "-m", "tox", "run-parallel", "--parallel", "2", "--parallel-no-spinner", *environments)


def installed_environments() -> list[str]:
    """The arguments of tox that take this Python's tests where Python 3.11, which tox.ini lists, is not installed."""
    here = sys.version_info[:2]
    if here == OLDEST or succeeds("python3.11", "--version"):
        return []
    if here not in TESTED:
        raise SetupError(f"the tests are run on Python 3.11 to 3.13, and this is {here[0]}.{here[1]}")
    return ["-e", ",".join([TESTED[here], "lint", "types", "imports", "example", "docs", "wheel", "dist"])]


def main(arguments: list[str]) -> None:
    """Runs `quickstart` or `tests`, and says in a line what is wrong."""
    if sys.version_info < OLDEST:
        raise SetupError("msda-bench needs Python 3.11 or later, and this is {}.{}".format(*sys.version_info))
    if arguments == ["quickstart"]:
        quickstart()
    elif arguments[:1] == ["tests"]:
        tests(arguments[1:])
    else:
        raise SetupError("write `python3 start.py quickstart`, or `python3 start.py tests`")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SetupError as error:
        print(f"start.py: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
