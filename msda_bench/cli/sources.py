"""`msda-bench sources DIR`: reports the effect of each source on a target."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.tables import add_shared, load_folder

if TYPE_CHECKING:
    from msda_bench.results.report import Report


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/leaderboard-sources")
    add_shared(parser, "--experiments", "--format", "--methods", "--quiet")


def command(args: argparse.Namespace) -> Report:
    """Reports each source's part in each method and target."""
    from msda_bench.plugins import discover
    from msda_bench.results.sources import Worth, sources_report

    return sources_report(load_folder(args), Worth(discover()))
