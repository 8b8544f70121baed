"""`msda-bench data leaks SUITE`: looks for test rows that training has seen elsewhere."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msda_bench.cli.command import Actions
from msda_bench.cli.lines import warn_of
from msda_bench.cli.suites import add_suite_argument
from msda_bench.cli.tables import add_shared, show
from msda_bench.errors import reported

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.plugins import Registry
    from msda_bench.results.report import Section
    from msda_bench.suite.expand import Expansion

_COLUMNS = (
    *(("equal", "equal", "tested"), ("equal seen", "equal_seen", "tested")),
    *(("near", "near", "compared"), ("near seen", "near_seen", "compared")),
)
"""The columns of percentages: their heads, the numbers of rows, and those that they are shares of."""
_LEGEND = (
    "Percentages of the target's test rows: equal, or near (at most {most:,} are compared), to a row of the domain; "
    "seen, if the run trains on that row. Empty: not looked for."
)


def add_action(actions: Actions) -> None:
    """Adds the action."""
    parser = actions.add_parser("leaks", help="look for test rows of a suite that training has seen elsewhere")
    add_suite_argument(parser)
    add_shared(parser, "--format")
    parser.set_defaults(command=_leaks)


def _leaks(args: argparse.Namespace) -> int:
    import pandas as pd

    from msda_bench.plugins import discover
    from msda_bench.results.report import Report
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import load_suite

    registry = discover()
    warn_of(registry.problems)
    problems: list[str] = []
    tables = list(_tables(expand(load_suite(args.suite, registry), registry), registry, problems))
    if tables:
        rows = pd.concat(tables, ignore_index=True)
        show(args, Report(tuple(map(_section, tables)), rows, complete=not rows["leak"].any()))
    return 2 if warn_of(problems, "error") else int(any(rows["leak"].any() for rows in tables))


def _tables(expansion: Expansion, registry: Registry, problems: list[str]) -> Iterator[pd.DataFrame]:
    """What is found on each dataset; adds lines to `problems` for those that cannot be read."""
    from msda_bench.data import LocalFiles
    from msda_bench.engine.loaded import load_domain
    from msda_bench.running.data import domains_of, used
    from msda_bench.running.leaks import find_leaks

    for dataset, cells in used("dataset", expansion.cells.values(), registry):
        files, keys = LocalFiles(dataset=dataset.name), {cell.key for cell in cells}
        with reported(problems):
            with registry.entry("dataset", dataset.name).blamed("cannot be loaded"):
                domains = {name: load_domain(dataset, name, files) for name in domains_of(dataset, cells)}
            rows = find_leaks(dataset, cells, domains)
            experiments = dict.fromkeys(place.experiment for place in expansion.plan.cells if place.key in keys)
            yield rows.assign(dataset=dataset.name, experiments=", ".join(experiments))


def _section(rows: pd.DataFrame) -> Section:
    """The verdict on a dataset, and its table with a row for each target and domain."""
    from msda_bench.results.report import Column, Line, Section, Table
    from msda_bench.running.leaks import MOST

    leaks = [f"{row.target} in {row.domain}" for row in rows[rows["leak"]].itertuples()]
    what = f"leak suspected: {', '.join(leaks)}" if leaks else "nothing found of the kinds that were looked for"
    title = f"{rows['dataset'].iloc[0]} ({rows['experiments'].iloc[0]}): {what}"
    columns = (
        Column("target", "text", ["target"]),
        Column("domain", "domain", ["domain", "target"]),
        *(Column(head, "share", [count, total]) for head, count, total in _COLUMNS),
    )
    table = Table(rows["experiments"].iloc[0].partition(",")[0], title, rows, columns, about=())
    return Section((table,), (Line("caption", _LEGEND.format(most=MOST)),))
