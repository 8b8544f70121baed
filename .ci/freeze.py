"""Writes what users get from this tree into a folder, so that two trees can be compared with `diff -r`.

    python .ci/freeze.py before     # on the old tree, in an environment where it is installed
    python .ci/freeze.py after      # on the new one
    diff -r before after

It holds the output of every command on every recorded folder with the tables that it writes there, the keys of all
suites, and the results of two suites to the last bit. A redesign changes nothing here that it does not mean to.
Seconds, paths and machines are left out. With names after the folder it writes only these parts: commands, keys, runs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    "leaderboard",
    "leaderboard --json",
    "leaderboard --format latex_booktabs",
    "leaderboard --columns average,seconds",
    "leaderboard --marks paper",
    "compare",
    "compare --json",
    "compare --across",
    "sources",
    "sources --summary",
    "selection",
    "verify",
    "verify --json",
    "weights",
    "report",
    "store verify --strict",
)
TRAINED = ("smoke", "quickstart")
RESULTS = ("status", "outcome", "curves", "bound", "validation", "message")


def said(folder: Path, *words: str) -> str:
    """Exit code, output and messages of a command, without paths below `folder` and seconds."""
    done = subprocess.run(["msda-bench", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607
    text = f"exit {done.returncode}\n{done.stdout}\n--\n{done.stderr}".replace(str(folder), "FOLDER")
    return re.sub(r"\b\d+(\.\d+)? ?(s|ms|min|seconds)\b", "SECONDS", text)


def commands() -> Iterator[tuple[str, str]]:
    """What each command says of each recorded folder, and the tables that it leaves there."""
    for recorded in sorted((ROOT / "results").iterdir()):
        with tempfile.TemporaryDirectory() as place:
            folder = copytree(recorded, Path(place) / recorded.name)
            for command in COMMANDS:
                yield f"{recorded.name}.{command.replace(' ', '_')}.txt", said(folder, *command.split(), str(folder))
            for table in sorted({*folder.glob("*.csv"), *folder.glob("*.md"), *folder.glob("tables/*")}):
                yield f"{recorded.name}.{table.name}", table.read_text(encoding="utf-8")


def keys() -> Iterator[tuple[str, str]]:
    """What `validate` says of each suite, and the keys of its cells."""
    from msda_bench.plugins import discover
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import load_suite

    registry = discover()
    for suite in sorted((ROOT / "suites").rglob("*.yaml")):
        name = ".".join(suite.relative_to(ROOT / "suites").with_suffix("").parts)
        checked = said(ROOT, "validate", str(suite))
        yield f"{name}.validate.txt", checked
        if checked.startswith("exit 0"):
            yield f"{name}.keys", "\n".join(sorted(expand(load_suite(suite, registry), registry).cells)) + "\n"


def runs() -> Iterator[tuple[str, str]]:
    """What each run of two suites came to: counts, curves and criteria, by key."""
    for suite in TRAINED:
        with tempfile.TemporaryDirectory() as place:
            yield f"{suite}.run.txt", said(Path(place), "run", suite, "--fetch", "--out", place, "--quiet")
            records = {}
            for path in (Path(place) / suite / "cells").glob("*/*.json"):
                record = json.loads(path.read_text(encoding="utf-8"))["record"]
                records[path.name] = {name: record.get(name) for name in RESULTS}
            yield f"{suite}.records.json", json.dumps(records, indent=1, sort_keys=True)


def main() -> None:
    """Writes the parts that the command line names, or all."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for part in (commands, keys, runs):
        if part.__name__ in (sys.argv[2:] or ("commands", "keys", "runs")):
            for name, text in part():
                (out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
