"""`msda-bench suites`: lists, shows and copies the suites that come with msda-bench."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Collection
from pathlib import Path

from msda_bench.cli.lines import say, say_block
from msda_bench.errors import BenchError, SuiteError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="show each suite, its data, methods and seeds, and what it needs")
    listed.set_defaults(command=_list)
    show = actions.add_parser("show", help="print a suite and the files that it includes")
    show.set_defaults(command=_show)
    copy = actions.add_parser("copy", help="write a suite and the files that it includes into a folder, for editing")
    copy.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="the folder (this one)")
    copy.set_defaults(command=_copy)
    for action in (show, copy):
        action.add_argument("name", metavar="NAME", help="a suite, such as quickstart")


def add_suite_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the suite argument to a command."""
    what = "a suite by name (`msda-bench suites list`), or a file, such as mine.yaml"
    parser.add_argument("suite", type=Path, metavar="SUITE", help=what)


def _list(_: argparse.Namespace) -> int:
    """Reads the files alone: loading the components that they name takes seconds."""
    from importlib.metadata import distributions

    from msda_bench.suite.files import listed, purpose, shipped

    here = {distribution.name for distribution in distributions()}
    for name in sorted(listed(), key=lambda name: (name != "quickstart", "/" in name, name)):
        say_block(f"{name}: {_contents(shipped(name), here)}", [purpose(shipped(name))])
    return 0


def _contents(suite: Path, here: Collection[str]) -> str:
    """A suite's data, methods and seeds, and the packages that it needs and that are not here."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    from msda_bench.suite.files import files_of

    files = [yaml.safe_load(path.read_bytes()) for path in files_of(suite)]
    parts = [file for file in files if "include" not in file]
    named = (part["dataset"] for part in parts)
    data = dict.fromkeys(one if isinstance(one, str) else next(iter(one)) for one in named)
    methods = max(len(part["methods"]) for part in parts)
    seeds = max(part["seeds"] if isinstance(part["seeds"], int) else len(part["seeds"]) for part in parts)
    needs = dict.fromkeys(name for part in parts for name in part.get("requires", ()) if name not in here)
    return "; ".join([", ".join(data), f"{methods} methods, {seeds} seeds", *(f"needs {name}" for name in needs)])


def _show(args: argparse.Namespace) -> int:
    from msda_bench.suite.files import files_of, home

    suite, *parts = files_of(_named(args.name))
    for line in suite.read_text(encoding="utf-8").splitlines():
        say(line)
    for part in parts:
        say("")
        say(f"# {part.relative_to(home()).as_posix()}")
        for line in part.read_text(encoding="utf-8").splitlines():
            say(line)
    return 0


def _copy(args: argparse.Namespace) -> int:
    from msda_bench.atomic import write_new
    from msda_bench.suite.files import files_of

    suite = _named(args.name)
    copies = {path: args.out / path.relative_to(suite.parent) for path in files_of(suite)}
    there = [copy for copy in copies.values() if os.path.lexists(copy)]
    made: list[Path] = []
    for path, copy in () if there else copies.items():
        try:
            if not write_new(copy, path.read_bytes()):
                there.append(copy)  # written by another process in the meantime
                break
        except OSError as error:
            for written in (*made, copy):  # so that the same command can be given again
                written.unlink(missing_ok=True)
            raise BenchError(f"{copy}: cannot be written: {error.strerror}") from error
        made.append(copy)
    for copy in made:
        say(f"wrote {copy}")
    if there:
        names = ", ".join(map(str, there))
        raise BenchError(f"{names}: already there; name another folder with --out, or move these files")
    say(f"next: {shlex.join(['msda-bench', 'run', str(copies[suite])])}")
    return 0


def _named(name: str) -> Path:
    from msda_bench.suite.files import listed, names, shipped
    from msda_bench.suite.mistakes import hint

    if name not in names():
        raise SuiteError(f"{name}: no suite of that name comes with msda-bench{hint(name, listed())}")
    return shipped(name)
