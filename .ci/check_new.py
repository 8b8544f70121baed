"""Checks what `msda-bench new` writes, for each kind: it installs, keeps its contract, and runs in a suite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KINDS = ("aggregator", "backbone", "dataset", "discrepancy", "scheme", "validator")
MODULE = (sys.executable, "-m")
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-compile", "--disable-pip-version-check")


def main(folder: Path) -> None:
    """Writes one distribution of each kind into an empty folder, installs them, and runs their own tests.

    Raises:
        subprocess.CalledProcessError: one of them is not as promised; its output says how.
    """
    made = [f"made_{kind}" for kind in (*KINDS, "fitted")]
    folders = [folder / f"msda-bench-{name.replace('_', '-')}" for name in made]
    call(*MODULE, "pip", "uninstall", "--yes", "--quiet", *(path.name for path in folders))
    msda_bench(*(["new", kind, f"made_{kind}", "--out", str(folder)] for kind in KINDS))
    msda_bench(["new", "scheme", "made_fitted", "--fitted", "--out", str(folder)])
    call(*MODULE, "pip", "install", "--quiet", *OFFLINE, *folders)
    msda_bench(*(["check", name] for name in made))
    tests = [path / "tests" for path in folders]
    call(*MODULE, "pytest", "-n", "2", "--import-mode=importlib", "--rootdir", folder, *tests)


def msda_bench(*commands: list[str]) -> None:
    """Runs commands one after another in one process, since torch takes seconds to import."""
    call(sys.executable, "-c", f"from msda_bench.cli.main import main; exit(max(map(main, {list(commands)!r})))")


def call(*words: str | Path) -> None:
    """Runs a command to its end."""
    print("$", *words, flush=True)
    subprocess.run([*map(str, words)], check=True)  # noqa: S603 - our own commands


if __name__ == "__main__":
    main(Path(sys.argv[1]))
