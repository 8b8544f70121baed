"""`msda-bench report DIR`: writes a result folder as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.cli.lines import say
from msda_bench.cli.tables import add_shared, load_folder, reference_of


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    add_shared(parser, "--by", "--metric", "--against")


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.results.notes import is_whole
    from msda_bench_report.page import Findings, write_page

    reference = reference_of(args)
    findings = Findings.of(load_folder(args), reference)
    say(str(write_page(args.folder, findings)))
    return 0 if is_whole(findings.analysis.selected) else 1
