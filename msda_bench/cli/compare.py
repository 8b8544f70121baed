"""`msda-bench compare A [B]`: every pair of methods of a result folder, or two result folders beside each other."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import (
    add_output_options,
    add_table_options,
    check_format,
    show_folder,
    tell_faults,
)
from msda_bench.cli.uncollected import uncollected
from msda_bench.errors import BenchError


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compare", help="compare all methods of a result folder, or the same methods of two result folders"
    )
    add = parser.add_argument
    add("folder", metavar="A", type=Path, help="a result folder; alone, its csv files are rewritten, too")
    add("other", metavar="B", type=Path, nargs="?", help="another, whose runs are set beside those of the first")
    add(
        "--match",
        metavar="X=Y",
        action="append",
        default=[],
        help="set method X of A beside method Y of B, in place of one of the same name",
    )
    add_table_options(parser)
    add_output_options(parser)
    parser.set_defaults(handler=_run)


@uncollected()
def _run(args: argparse.Namespace) -> int:
    check_format(args)
    if args.other is not None:
        return _compare(args)
    if args.match:
        raise BenchError("--match needs two result folders")
    return show_folder(args, "compare")


def _compare(args: argparse.Namespace) -> int:
    from rich.console import Console

    from msda_bench.report.folder import read
    from msda_bench.report.problems import find_problems
    from msda_bench.report.rounding import json_text
    from msda_bench.report.sides import set_beside
    from msda_bench.report.sides_json import sides_json
    from msda_bench.report.sides_text import print_sides

    matches = _matches(args.match)
    a, b = (read(path, repair=False) for path in (args.folder, args.other))
    for folder in (a, b):
        tell_faults(folder)
    sides = set_beside(a, b, matches)
    if args.json:
        print(json_text(sides_json(sides)))
    else:
        print_sides(Console(), sides, explain=not args.quiet)
    whole = not any(folder.lines or find_problems(folder.plan, folder.records) for folder in (a, b))
    return 0 if whole and any(pairing.n_paired for pairing in sides.pairings) else 1


def _matches(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, other = (part.strip() for part in text.partition("="))
        if not (name and equals and other):
            raise BenchError(f"--match {text!r}: must be X=Y, a method of A and one of B")
        if name in found:
            raise BenchError(f"--match {text!r}: {name} is matched already, with {found[name]}")
        found[name] = other
    return found
