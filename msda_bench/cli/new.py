"""`msda-bench new KIND NAME`: writes a complete distribution for an author to start from."""

from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say
from msda_bench.errors import BenchError

if TYPE_CHECKING:
    from msda_bench.scaffold import Names

_KINDS = ("aggregator", "discrepancy", "dataset", "backbone", "scheme", "validator", "metric")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("kind", metavar="KIND", choices=_KINDS, help=", ".join(_KINDS))
    parser.add_argument("name", metavar="NAME", help="the component's name in suites, such as inverse_risk")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path(), help="parent of the new folder (.)")


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.scaffold import Names, write

    names = Names.of(args.kind, args.name)
    _refuse_taken(names)
    folder = write(names, args.out)
    place = folder if folder.is_absolute() else f"./{folder}"  # without ./ pip would search an index
    say(f"{folder}: the {names.kind} {names.component}, ready to install. Next:")
    say(f"  pip install -e {place}")
    say(f"  msda-bench check {names.component}")
    say(f"  msda-bench run {place}/suite.yaml")
    return 0


def _refuse_taken(names: Names) -> None:
    """Refuses the name of an installed distribution, or one that the new code imports; `check` finds equal names."""
    from importlib.metadata import PackageNotFoundError, version

    from msda_bench.scaffold import render

    code = ast.parse(render(names)[f"src/{names.module}.py"])
    imports = (node for node in ast.walk(code) if isinstance(node, ast.Import | ast.ImportFrom))
    if names.class_name in {alias.name for node in imports for alias in node.names}:
        raise BenchError(f"{names.class_name} is a name that the code imports; choose another")
    try:
        installed = version(names.distribution)
    except PackageNotFoundError:
        return
    raise BenchError(f"{names.distribution} {installed} is already installed; choose another name, or uninstall it")
