"""A reader who follows a page of the documentation: writes its code to files and runs its commands in order."""

import contextlib
import hashlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from msda_bench.cli.main import main

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str
    text: str


def text_of(path):
    """The text of a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


def words_of(figure):
    """The words of an SVG file, in their order."""
    return re.findall(r">([^<>]+)</t", figure.read_text(encoding="utf-8"))


def blocks(page):
    """The fenced blocks of a page of docs/."""
    return [Block(*found) for found in BLOCK.findall(text_of(f"docs/{page}"))]


def table(text, head):
    """The cells of the first table whose head contains this text, row by row from its head on, without `marks`."""
    start = text.rindex("\n", 0, text.index(head)) + 1
    head, _, *rows = text[start:].split("\n\n")[0].splitlines()
    return [[cell.strip(" `") for cell in line.strip().strip("|").split("|")] for line in (head, *rows)]


class Reader:
    """A reader who follows the page in an empty folder; a folder on the import path replaces pip."""

    def __init__(self, folder):
        self.place = folder / "work"
        self.place.mkdir(parents=True)
        self.site = folder / "site"
        self.site.mkdir()
        self.said = ""
        self.environment = dict(os.environ)

    def follow(self, block):
        if block.language == "console":
            for line in block.text.splitlines():
                self.run(shlex.split(line.removeprefix("$ ")))
        elif block.title.endswith((".py", ".yaml")):
            path = self.place / block.title
            assert path.is_file() or path.parent == self.place, f"the page replaces {block.title}, which is not there"
            path.write_text(block.text)

    def run(self, words):
        match words:
            case ["cd", folder]:
                self.place /= folder
            case ["pip", "install", "-e", "."]:
                self.install()
            case ["export", given]:
                name, _, value = given.partition("=")
                self.environment[name] = value.replace("$PWD", str(self.place))
            case ["python", *rest]:
                self.python(*rest)
            case ["sha256sum", *files]:
                self.said += "\n".join(hashlib.sha256((self.place / file).read_bytes()).hexdigest() for file in files)
            case ["pytest", *rest]:
                self.python("-m", "pytest", "-p", "no:cacheprovider", *rest)
            case ["msda-bench", *rest]:
                self.command(*rest, *(["--executor", "inline"] if rest[0] == "run" else []))
            case _:
                raise AssertionError(f"the page uses a command that this test does not know: {words}")

    def install(self):
        project = tomllib.loads((self.place / "pyproject.toml").read_text())["project"]
        name, version = project["name"], project["version"]
        info = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        points = "".join(f"{key} = {value}\n" for key, value in project["entry-points"]["msda_bench"].items())
        (info / "entry_points.txt").write_text(f"[msda_bench]\n{points}")

    def command(self, *words):
        """Runs a command of msda-bench in this process, which has imported torch; unloads the plugin afterwards."""
        path, said = [str(self.site), str(self.place / "src")], io.StringIO()
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.chdir(self.place))
            stack.enter_context(mock.patch.dict(os.environ, self.environment))
            stack.enter_context(mock.patch.object(sys, "path", [*path, *sys.path]))
            stack.enter_context(contextlib.redirect_stdout(said))
            assert main(list(words)) == 0, said.getvalue()
        self.said += said.getvalue()
        mine = [
            name for name, module in sys.modules.items() if str(getattr(module, "__file__", "")).startswith(path[1])
        ]
        for name in mine:
            del sys.modules[name]

    def python(self, *words):
        path = [str(self.site), str(self.place / "src"), self.environment.get("PYTHONPATH", "")]
        environment = {**self.environment, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.place, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.said += done.stdout
