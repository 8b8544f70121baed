"""What `msda-bench run` says at its end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msda_bench.cli.uncollected import uncollected

if TYPE_CHECKING:
    from msda_bench.run.runner import Summary
    from msda_bench.run.survey import Survey
    from msda_bench.store import Store
    from msda_bench.suite.plan import Plan

OK = 0
INCOMPLETE = 1


def tell_survey(args: argparse.Namespace, survey: Survey, folder: Path, out: TextIO) -> None:
    """Says what a run would do."""
    from msda_bench.report.rounding import json_text
    from msda_bench.run.preview import print_survey, survey_json

    if args.json:
        print(json_text(survey_json(survey, folder)), file=out)
    else:
        print_survey(survey, folder)


@uncollected()
def conclude(args: argparse.Namespace, summary: Summary, store: Store, plan: Plan, out: TextIO) -> int:
    """Writes and prints the tables.

    Args:
        args: of the command line.
        summary: what came of the run.
        store: the result folder.
        plan: what was asked for.
        out: where a JSON document goes.

    Returns:
        The exit code.

    Raises:
        KeyboardInterrupt: the run was interrupted; there are no tables then.
    """
    from rich.console import Console

    from msda_bench.report.remarks import annotated
    from msda_bench.report.rounding import json_text
    from msda_bench.report.tables_json import tables_json
    from msda_bench.report.terminal import print_leaderboard
    from msda_bench.report.write import write_tables
    from msda_bench.run.summary_json import summary_json
    from msda_bench.stats.analysis import analyse
    from msda_bench.store.faults import find_faults

    told = f"{store.folder}: {summary.describe()}"
    if summary.interrupted:
        print(told, file=sys.stderr)
        raise KeyboardInterrupt
    keys = [cell.key for cell in plan.cells]
    records = summary.records | store.records(key for key in keys if key not in summary.records)
    plan = annotated(plan, records, find_faults(store, keys, records))
    analyses = analyse(plan, records)
    write_tables(store.folder, plan, analyses)
    conflicts = store.conflicting(keys)
    if args.json:
        tables = tables_json("run", [store.folder], plan, analyses, conflicts)
        print(json_text({**tables, "run": summary_json(summary)}), file=out)
    else:
        print_leaderboard(Console(), analyses, explain=not args.quiet)
        _tell_traceback(summary)
    if not args.quiet:
        print(told)
    return OK if summary.complete and not conflicts else INCOMPLETE


def _tell_traceback(summary: Summary) -> None:
    kept = [one.traceback for one in summary.failed if one.traceback is not None]
    if kept:
        first = "the traceback" if len(kept) == 1 else f"the first of {len(kept)} tracebacks"
        print(f"{first} is in {kept[0]}, under provenance")
