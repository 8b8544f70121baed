"""The commands `report` and `site`."""

from __future__ import annotations

import argparse
from pathlib import Path

from msda_bench.commands import (
    add_against_option,
    add_by_option,
    add_metric_option,
    is_whole,
    load_folder,
    reference_of,
    say,
    warn_of,
)


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `report`."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a result folder, such as results/quickstart")
    add_by_option(parser)
    add_metric_option(parser)
    add_against_option(parser)


def report(args: argparse.Namespace) -> int:
    """Writes a result folder as one page."""
    from msda_bench_report.page import Findings, write_page
    from msda_bench_report.sections import sections

    makers, faults = sections()
    warn_of(faults)
    reference = reference_of(args)
    findings = Findings.of(load_folder(args), reference)
    say(str(write_page(args.folder, findings, makers)))
    return 0 if is_whole(findings.analysis.selected) else 1


def site_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `site`."""
    parser.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="result folders, such as results/*")
    parser.add_argument("--out", type=Path, default=Path("site"), metavar="DIR", help="folder of the site (site)")


def site(args: argparse.Namespace) -> int:
    """Writes many result folders as a static site."""
    from msda_bench.plugins import discover
    from msda_bench_report.sections import sections
    from msda_bench_report.site import INDEX, write_site

    registry, (makers, broken) = discover(), sections()
    warn_of([*registry.problems, *broken])
    faults = write_site(args.folders, args.out, registry, makers)
    say(str(args.out / INDEX))
    return int(warn_of(faults))
