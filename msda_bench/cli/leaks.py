"""`msda-bench data leaks SUITE`: looks for test rows that training has seen elsewhere."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from msda_bench.cli.command import Actions
from msda_bench.cli.lines import say, warn_of
from msda_bench.cli.suites import add_suite_argument
from msda_bench.cli.tables import show
from msda_bench.errors import BenchError

if TYPE_CHECKING:
    from msda_bench.api import Dataset, DomainData
    from msda_bench.plugins import Registry
    from msda_bench.results.report import Section
    from msda_bench.running.leaks import Target
    from msda_bench.suite.cell import Cell
    from msda_bench.suite.expand import Expansion

_LEAK, _NOTHING = "leak suspected", "nothing found of the kinds that were looked for"
_VERDICTS = ((_LEAK, True), (_NOTHING, False))
_COLUMNS = (
    *(("equal", "equal", "tested"), ("equal seen", "equal_trained", "tested")),
    *(("near", "near", "compared"), ("near seen", "near_trained", "compared")),
    *(("paired", "same", "compared"), ("chance", "chance", "compared")),
    ("paired seen", "same_trained", "compared"),
)
"""The columns of percentages: their heads, the numbers of rows, and those that they are shares of."""
_LEGEND = (
    "Percentages of the test rows of the target at the head: equal or near to a row of the domain; paired, that is "
    "nearest to the row of the same number, and that by chance; seen, if the run trains on that row. Empty: not "
    "looked for."
)


class _Result(NamedTuple):
    """The results on a dataset, as some experiments of the suite use it."""

    dataset: str
    params: Mapping[str, Any]
    experiments: tuple[str, ...]
    targets: tuple[Target, ...]

    @property
    def leaks(self) -> bool:
        return any(target.leaks for target in self.targets)


def add_action(actions: Actions) -> None:
    """Adds the action."""
    parser = actions.add_parser("leaks", help="look for test rows of a suite that training has seen elsewhere")
    add_suite_argument(parser)
    parser.set_defaults(handler=_leaks)


def _leaks(args: argparse.Namespace) -> int:
    from msda_bench.plugins import discover
    from msda_bench.results.report import Report
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import load_suite

    registry = discover()
    warn_of(registry.problems)
    expansion = expand(load_suite(args.suite, registry), registry)
    problems: list[str] = []
    results = []
    for result in _results(expansion, registry, problems):
        results.append(result)
        show(args, Report((_section(result),)))
    if len(results) > 1:
        say(_summary(results))
    return 2 if warn_of(problems, "error") else int(any(result.leaks for result in results))


def _results(expansion: Expansion, registry: Registry, problems: list[str]) -> Iterator[_Result]:
    """The results on each dataset; adds lines to `problems` for those that cannot be read."""
    from msda_bench.running.data import used
    from msda_bench.running.leaks import find_leaks

    for dataset, cells in used("dataset", expansion.cells.values(), registry):
        try:
            targets = find_leaks(dataset, cells, _loaded(dataset, cells, registry))
        except BenchError as error:
            problems.extend(error.lines)
            continue
        keys = {cell.key for cell in cells}
        experiments = dict.fromkeys(place.experiment for place in expansion.plan.cells if place.key in keys)
        yield _Result(dataset.name, cells[0].dataset.params, tuple(experiments), targets)


def _loaded(dataset: Dataset, cells: Iterable[Cell], registry: Registry) -> dict[str, DomainData]:
    """The domains of the cells; a BenchError if they cannot be loaded."""
    from msda_bench.data import LocalFiles
    from msda_bench.engine.loaded import load_domain
    from msda_bench.running.data import domains_of

    files = LocalFiles(dataset=dataset.name)
    with registry.entry("dataset", dataset.name).blamed("cannot be loaded"):
        return {name: load_domain(dataset, name, files) for name in domains_of(dataset, cells)}


def _section(result: _Result) -> Section:
    """The verdict on a dataset, its reasons, and for each target a table with a row for each domain."""
    import pandas as pd

    from msda_bench.results.report import Column, Line, Section, Table

    shares = [Column(name, "share", [count, total]) for name, count, total in _COLUMNS]
    title = f"{result.dataset} ({', '.join(result.experiments)}): {_LEAK if result.leaks else _NOTHING}"
    verdict = (*_reasons(result.targets), f"Test rows: {', '.join(map(_size, result.targets))}.")
    tables = [
        Table(
            f"{result.experiments[0]}-{number}",
            "" if number else title,
            pd.DataFrame([{"target": target.name} | _numbers(target) | asdict(pair) for pair in target.pairs]),
            (Column(target.name, "domain", ["domain", "target"]), *shares),
            verdict=() if number else verdict,
            about=(),
        )
        for number, target in enumerate(result.targets)
    ]
    return Section(tuple(tables), (Line("caption", _LEGEND),))


def _numbers(target: Target) -> dict[str, Any]:
    return {name: number for name, number in asdict(target).items() if name not in {"name", "pairs"}}


def _reasons(targets: Sequence[Target]) -> Iterator[str]:
    """Sentences on what is suspected, and on pairs of domains whose rows belong together."""
    labelled = [_share(target, target.in_sources) for target in targets if target.sources_leak]
    if labelled:
        yield f"With labels: a source trains on a row equal to, near or paired with a test row: {', '.join(labelled)}."
    unlabelled = [_share(target, target.in_target) for target in targets if target.itself_leaks]
    if unlabelled:
        what = "Without labels, but with them for references such as TAR: the target trains on a row equal to or near"
        yield f"{what} a test row: {', '.join(unlabelled)}."
    sources = [pair for target in targets for pair in target.pairs if pair.domain != target.name]
    paired = [pair for pair in sources if pair.same_trained is not None]
    if paired:
        kept = "" if any(pair.same_trained for pair in paired) else "; no run trains on such a row of its test rows"
        what = "more test rows than by chance are nearest to the row of the same number"
        yield f"Paired: in {len(paired)} of {len(sources)} comparisons with a source {what}{kept}."
    grouped = [f"{target.name} {target.in_groups}" for target in targets if target.in_groups is not None]
    if grouped:
        yield f"Groups: test rows with a row of their group in training: {', '.join(grouped)}."


def _share(target: Target, count: int) -> str:
    from msda_bench.results.report import show_share

    return f"{target.name} {show_share(count, target.compared)} %"


def _size(target: Target) -> str:
    part = "" if target.compared == target.tested else f" ({target.compared:,} of them but for equal rows)"
    return f"{target.name} {target.tested:,} at seed {target.seed}{part}"


def _summary(results: Sequence[_Result]) -> str:
    verdicts = ((verdict, [result for result in results if result.leaks == leaks]) for verdict, leaks in _VERDICTS)
    parts = (
        (verdict, dict.fromkeys(name for result in some for name in result.experiments)) for verdict, some in verdicts
    )
    return "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in parts if names)
