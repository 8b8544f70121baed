"""`msda-bench site DIR...`: writes many result folders as a static site."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.lines import say, warn_of


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="result folders, such as results/*")
    parser.add_argument("--out", type=Path, default=Path("site"), metavar="DIR", help="folder of the site (site)")


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.plugins import discover
    from msda_bench_report.site import INDEX, write_site

    registry = discover()
    warn_of(registry.problems)
    faults = write_site(args.folders, args.out, registry)
    say(str(args.out / INDEX))
    return int(warn_of(faults))
