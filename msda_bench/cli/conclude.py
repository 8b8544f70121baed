"""What `msda-bench run` says at its end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msda_bench.cli.uncollected import uncollected

if TYPE_CHECKING:
    from msda_bench.running.summary import Summary
    from msda_bench.running.survey import Survey
    from msda_bench.store import Store
    from msda_bench.suite.plan import Plan

OK = 0
INCOMPLETE = 1


def tell_survey(args: argparse.Namespace, survey: Survey, folder: Path, out: TextIO) -> None:
    """Says what a run would do."""
    from msda_bench.results.serialize import json_text
    from msda_bench.running.survey import print_survey, survey_json

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
    from msda_bench.cli.tables import print_analysis
    from msda_bench.results.files import tables_json, write_results
    from msda_bench.results.frame import read_runs
    from msda_bench.results.leaderboard import analyse
    from msda_bench.results.serialize import json_text

    ended = f"{store.folder}: {summary.describe()}"
    if summary.interrupted:
        print(ended, file=sys.stderr)
        raise KeyboardInterrupt
    runs = read_runs(store, plan)
    analysis = analyse(runs)
    write_results(store.folder, analysis)
    conflicts = store.conflicting(cell.key for cell in plan.cells)
    if args.json:
        tables = tables_json("run", [store.folder], analysis, conflicts)
        print(json_text({**tables, "run": summary.to_json()}), file=out)
    else:
        print_analysis(args, "run", [store.folder], analysis, conflicts)
        _tell_traceback(summary)
    if not args.quiet:
        print(f"{ended}\nnext: msda-bench report {store.folder}")
    return OK if summary.complete and not conflicts else INCOMPLETE


def _tell_traceback(summary: Summary) -> None:
    kept = [one.traceback for one in summary.failed if one.traceback is not None]
    if kept:
        first = "the traceback" if len(kept) == 1 else f"the first of {len(kept)} tracebacks"
        print(f"{first} is in {kept[0]}, under provenance")
