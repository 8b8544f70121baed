"""The tutorial works as it stands: its code is installed and its commands are run, in their order, outside the tree."""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
CLONE = "~/msda-bench/"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of the page."""

    language: str
    title: str
    text: str


BLOCKS = [Block(*found) for found in BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())]


class Reader:
    """Somebody who follows the page in an empty folder; pip's part is played by a folder on the import path."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "work"
        self.place.mkdir()
        self.site = folder / "site"
        self.site.mkdir()
        self.said = ""

    def follow(self, block: Block) -> None:
        if block.language == "console":
            for line in block.text.splitlines():
                self.run(shlex.split(line.removeprefix("$ ")))
        elif block.title.endswith(".py"):
            path = self.place / block.title
            assert path.is_file(), f"the page replaces {block.title}, which is not there"
            path.write_text(block.text)
        elif block.title.endswith("under methods:"):
            self.insert(self.place / block.title.partition(",")[0], block.text)

    def insert(self, suite: Path, line: str) -> None:
        before, methods, after = suite.read_text().partition("methods:")
        rest, newline, rows = after.partition("\n")
        suite.write_text(before + methods + rest + newline + line + rows)

    def run(self, words: list[str]) -> None:
        match words:
            case ["cd", folder]:
                self.place /= folder
            case ["cp", source, name]:
                shutil.copy(ROOT / source.removeprefix(CLONE), self.place / name)
            case ["pip", "install", "-e", "."]:
                self.install()
            case ["pytest", *rest]:
                self.python("-m", "pytest", "-p", "no:cacheprovider", *rest)
            case ["msda-bench", *rest]:
                self.python("-c", "from msda_bench.cli.main import entry; entry()", *rest)
            case _:
                raise AssertionError(f"the page uses a command that this test does not know: {words}")

    def install(self) -> None:
        project = tomllib.loads((self.place / "pyproject.toml").read_text())["project"]
        name, version = project["name"], project["version"]
        info = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        points = "".join(f"{key} = {value}\n" for key, value in project["entry-points"]["msda_bench"].items())
        (info / "entry_points.txt").write_text(f"[msda_bench]\n{points}")

    def python(self, *words: str) -> None:
        path = os.pathsep.join([str(self.site), str(self.place / "src")])
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.place, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.said += done.stdout


def test_the_page_is_of_blocks_that_this_test_follows():
    kinds = {(block.language, bool(block.title)) for block in BLOCKS}
    assert kinds == {("console", False), ("python", True), ("yaml", True), ("text", True)}


@pytest.mark.slow
def test_following_the_page_ends_in_the_leaderboard(tmp_path):
    reader = Reader(tmp_path)
    for block in BLOCKS:
        reader.follow(block)
    assert reader.said.count("aggregator steady keeps its contract") == 2
    with (reader.place / "results" / "fonts" / "leaderboard.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "Steady" and row["target"] == "cm_maths"]
    (row,) = rows
    assert row["n_ok"] == "2"
    assert "msda-bench-steady 1.0.0" in row["distributions"]


def test_the_mistake_is_reported_as_the_page_says(install):
    from msda_bench.plugins import discover
    from msda_bench.testing import examine

    (code,) = [block.text for block in BLOCKS if block.language == "python"]
    install("msda-bench-steady", code.replace("softmax(-self", "softmax(self"))
    component = discover().entry("aggregator", "steady").create({})
    broken = [finding for finding in examine(component) if finding.outcome == "broken"]
    reported = "".join(f"  broken   {finding.clause}\n           {finding.reason}\n" for finding in broken)
    assert [reported] == [block.text for block in BLOCKS if block.language == "text"]
