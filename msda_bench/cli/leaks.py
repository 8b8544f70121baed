"""`msda-bench data leaks`: looks for test rows of a suite that training has seen elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from msda_bench import data
from msda_bench.cli.lines import warn_of
from msda_bench.cli.suites import load
from msda_bench.cli.tables import TableOptions, show
from msda_bench.engine.loaded import load_domain
from msda_bench.errors import reported
from msda_bench.plugins import Registry
from msda_bench.results import formats
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.running.data import domains_of, used
from msda_bench.running.flaws import find_flaws
from msda_bench.running.leaks import MOST, find_leaks
from msda_bench.suite.expand import Expansion

_SHARES = {"equal": "tested", "equal_seen": "tested", "near": "compared", "near_seen": "compared"}
"""The columns of numbers of rows that are shown in percent, and those of which they are shares."""
_LEGEND = (
    "Percentages of the target's test rows: equal, or near (at most {most:,} are compared), to a row of the domain; "
    "seen, if the run trains on that row. Empty: not looked for."
)


def leaks(*, suite: Path, **shown: Any) -> int:
    """Looks for test rows that training has seen elsewhere, and for other flaws of the rows."""
    registry, _, expansion = load(suite)
    problems: list[str] = []
    found = list(_found(expansion, registry, problems))
    if found:
        rows = pd.concat([table for table, _ in found], ignore_index=True)
        sections = tuple(_section(table, flaws) for table, flaws in found)
        show(Report(sections, rows, complete=not rows["leak"].any()), TableOptions(**shown))
    return 2 if warn_of(problems, "error") else int(any(table["leak"].any() for table, _ in found))


def _found(
    expansion: Expansion, registry: Registry, problems: list[str]
) -> Iterator[tuple[pd.DataFrame, Sequence[str]]]:
    """Leaks and flaws of each dataset; adds lines to `problems` for datasets that cannot be read."""
    for dataset, cells in used("dataset", expansion.cells.values(), registry):
        files, keys = data.LocalFiles(dataset=dataset.name), {cell.key for cell in cells}
        with reported(problems):
            with registry.entry("dataset", dataset.name).plugin_errors("cannot be loaded"):
                domains = {name: load_domain(dataset, name, files) for name in domains_of(dataset, cells)}
            rows = find_leaks(dataset, cells, domains)
            experiments = dict.fromkeys(place.experiment for place in expansion.plan.cells if place.key in keys)
            table = rows.assign(dataset=dataset.name, experiments=", ".join(experiments))
            yield table, find_flaws(dataset, domains)


def _section(rows: pd.DataFrame, flaws: Sequence[str]) -> Section:
    """The verdict on a dataset, its table with a row for each target and domain, and its flaws."""
    leaks = [f"{row.target} in {row.domain}" for row in rows[rows["leak"]].itertuples()]
    what = f"leak suspected: {', '.join(leaks)}" if leaks else "nothing found of the kinds that were looked for"
    title = f"{rows['dataset'].iloc[0]} ({rows['experiments'].iloc[0]}): {what}"
    columns = [Column("target", formats.text, ["target"]), Column("domain", formats.domain, ["domain", "target"])]
    for count, total in _SHARES.items():
        columns.append(Column(count.replace("_", " "), formats.share, [count, total]))
    table = Table(rows["experiments"].iloc[0].partition(",")[0], title, rows, tuple(columns), about=())
    lines = [Line("line", flaw) for flaw in flaws]
    return Section((table,), (*lines, Line("caption", _LEGEND.format(most=MOST))))
