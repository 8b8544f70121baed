"""`msda-bench verify DIR`: a result folder beside the published tables that its suite names."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.parser import Commands
from msda_bench.cli.tables import read_folder
from msda_bench.cli.uncollected import uncollected
from msda_bench.errors import BenchError

if TYPE_CHECKING:
    from msda_bench.suite.plan import Plan


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("verify", help="set a result folder beside the published table of its suite")
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="a result folder, such as results/paper-amazon")
    add("--table", metavar="TABLE", help="a published table, or a .yaml file with one, in place of the suite's own")
    add("--json", action="store_true", help="print one JSON document instead of tables")
    parser.set_defaults(handler=_run)


@uncollected()
def _run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from msda_bench.report.published import print_verifications
    from msda_bench.report.verify_rows import verify_csv, verify_json
    from msda_bench.report.write import replace as write
    from msda_bench.stats.verify import verify

    plan, records, faults = read_folder(args.folder)
    plan = _with_tables(plan, args.folder, args.table)
    verifications = verify(plan, records)
    unnamed = [experiment.name for experiment in plan.experiments if experiment.published is None]
    try:
        if args.json:
            print(json.dumps(verify_json(plan.suite, verifications, unnamed), indent=2, allow_nan=False))
        else:
            print_verifications(Console(), verifications, unnamed)
    finally:
        write(args.folder / "verify.csv", verify_csv(plan.suite, verifications).encode())
    return 0 if not faults and all(found.status == "agrees" for found in verifications) else 1


def _with_tables(plan: Plan, folder: Path, name: str | None) -> Plan:
    """The plan with a published table in at least one experiment."""
    from msda_bench.suite.published.load import find_table, known_tables

    if name is not None:
        table = find_table(name)
        plan = replace(
            plan,
            experiments=tuple(
                replace(experiment, published=table if experiment.dataset == table.dataset else None)
                for experiment in plan.experiments
            ),
        )
        if not any(experiment.published for experiment in plan.experiments):
            raise BenchError(f"{folder}: has no results on {table.dataset}, which table {table.name} is of")
    if not any(experiment.published for experiment in plan.experiments):
        raise BenchError(
            f"{folder}: its suite names no published table; give one with --table (known: {', '.join(known_tables())}, "
            "or a .yaml file), or add `published:` to the suite and run it again"
        )
    return plan
