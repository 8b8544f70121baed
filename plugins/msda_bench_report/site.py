"""Writes the site: a leaderboard of all folders, a page for each folder, and CSV files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from msda_bench import __version__, load_results
from msda_bench.atomic import make_folder, named
from msda_bench.errors import BenchError, printable
from msda_bench.plugins import Registry
from msda_bench.results.across import METRIC, Across, across_datasets, standings
from msda_bench.results.decision import MIN_PAIRS_ACROSS
from msda_bench.results.experiment_tables import View
from msda_bench.results.files import LEADERBOARD, RUNS, refuse_result_folders, replace_file, runs_file
from msda_bench.results.leaderboard import ranked_rows
from msda_bench.results.load import load_cells
from msda_bench.results.notes import environments
from msda_bench.results.runs import are_ok, recorded_runs, results_of
from msda_bench.results.tables import csv_text
from msda_bench.results.verdict_across import verdict_across
from msda_bench.results.words import counted, name_of
from msda_bench.store.store import Store
from msda_bench.suite.plan import Experiment
from msda_bench_report.assets import asset, digest, environment, policy
from msda_bench_report.builtin import worst_target
from msda_bench_report.figures import slugs
from msda_bench_report.page import REPORT, Findings, across_parts, render_page, with_mark
from msda_bench_report.plots.scores import at_targets

INDEX = "index.html"
_MOST_NAMED = 4
"""The maximum number of experiments of which the first screen tells the finding."""


@dataclass(frozen=True)
class Column:
    """An experiment on the site: its page and the folder of that, its part of the analysis, and facts to filter by.

    `protocol` has keywords such as `equal steps`, `made_on` the systems that made its runs, with counts if there are
    several. With `varies_sources` it is one of several experiments that differ in a source left out.
    """

    link: str
    folder: str
    view: View
    modality: str
    protocol: tuple[str, ...]
    made_on: tuple[str, ...]
    varies_sources: bool

    @property
    def experiment(self) -> Experiment:
        """The planned experiment."""
        return self.view.experiment

    @cached_property
    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Its main rows of the leaderboard, by method; unknown values are None.

        `mark` is for methods that are significantly better or worse than the baseline.
        """
        rows = self.view.main_rows
        every: dict[str, Mapping[str, Any]] = {row["method"]: with_mark(self.view, row) for row in rows}
        if len(ranked_rows(rows)) < 2:  # noqa: PLR2004 - a single ranked method is not marked as the best
            every = {name: {**row, "bold_holm": None} for name, row in every.items()}
        return every

    @property
    def worst(self) -> str:
        """A sentence on the target with the worst scores; empty for a single target."""
        return worst_target(at_targets(self.view.board))

    @property
    def compares(self) -> str:
        """`methods`, or `variants` if there is no baseline or reference among them, or sources are varied."""
        compared = self.experiment.baseline or self.experiment.references
        return "methods" if compared and not self.varies_sources else "variants"

    @property
    def n_ranked(self) -> int:
        """The number of methods that have a rank."""
        return sum(row["rank"] is not None for row in self.rows.values())

    @cached_property
    def n_ok(self) -> int:
        """The number of runs that are ok."""
        return int(are_ok(self.view.runs).sum())

    @property
    def seeds(self) -> int:
        """The number of seeds with scores of its most complete method."""
        return max((int(row["n_ok"]) for row in self.rows.values()), default=0)


def _columns(folder: str, findings: Findings, registry: Registry) -> Iterator[Column]:
    """The experiments of a result folder, whose page is in `folder` of the site."""
    planned = results_of(findings.analysis.runs).plan.experiments
    anchors = slugs(experiment.name for experiment in planned)
    varied = {experiment.dataset for experiment in planned if experiment.without is not None}
    for view in findings.views:
        experiment = view.experiment
        steps = "unequal steps" if any(note.kind == "steps" for note in view.notes) else "equal steps"
        settings = "settings selected" if experiment.criteria else "settings fixed"
        known = environments(view.runs[view.runs["key"].notna()])
        yield Column(
            f"{folder}/{REPORT}#{anchors[experiment.name]}",
            folder,
            view,
            _modality(experiment.dataset, registry),
            (*_tested(view.runs), steps, settings),
            tuple(name if len(known) == 1 else f"{name} ({counted(len(made), 'run')})" for name, made in known),
            experiment.dataset in varied,
        )


def _in_order(columns: Iterable[Column]) -> list[Column]:
    """Keeps each folder's columns in its suite's order; folders that share most methods with others come first.

    Folders whose tests can show a difference come before others; columns that compare variants come last.
    """
    every = list(columns)
    counts: Counter[str] = Counter()
    for column in every:
        counts.update(column.rows.keys())
    places: dict[str, list[tuple[bool, int, int]]] = {}
    for column in every:
        shared = sum(counts[name] - 1 for name in column.rows)
        is_tested = any(row["bold_holm"] is not None for row in column.rows.values())
        places.setdefault(column.folder, []).append((not (shared and is_tested), -shared, -column.n_ok))
    # Sorting is stable, so that folders with equal places stay as they were given, and so do their columns.
    folders = sorted(places, key=lambda folder: min(places[folder]))
    return sorted(every, key=lambda one: (one.compares == "variants", folders.index(one.folder)))


def _modality(dataset: str, registry: Registry) -> str:
    try:
        kind = registry.entry("dataset", dataset).cls
    except BenchError:  # its plugin is not installed here
        return "other"
    return printable(getattr(kind, "modality", "other"), 20)


def _tested(runs: pd.DataFrame) -> Iterator[str]:
    """The protocol's keywords for the target examples that methods saw, from the first record of each method."""
    cells = load_cells(recorded_runs(runs).drop_duplicates("method")).values()
    protocols = {cell.get("dataset", {}).get("params", {}).get("protocol") for cell in cells}
    yield "transductive" if "transductive" in protocols else "held out"
    if any(cell.get("labelled_target") for cell in cells):
        yield "some target labels"


def write_site(folders: Sequence[Path], out: Path, registry: Registry) -> tuple[str, ...]:
    """Writes the site of some result folders; the folders do not change.

    A folder that cannot be read is reported on the site, and the others are shown. Files of an earlier site in `out`
    are replaced.

    Returns:
        A line for each folder that cannot be shown, and for each record that is damaged or in conflict.

    Raises:
        BenchError: no folder can be shown, or the site cannot be written.
    """
    once = [*{folder.resolve(): folder for folder in folders}.values()]  # a folder given twice would count twice
    names = _names(once)
    refuse_result_folders(out, *names)
    shown: dict[str, list[Column]] = {}
    faults: list[tuple[str, Path]] = []
    for folder, name in zip(once, names, strict=True):
        try:
            runs = load_results(folder)
            findings = Findings.of(runs)
            page = render_page(findings, Store(folder).commands(), home=f"../{INDEX}")
            files = {REPORT: page, RUNS: runs_file(findings.analysis)}
            shown[name] = [*_columns(name, findings, registry)]
        except BenchError as error:
            faults += [(line, folder) for line in error.lines]
            continue
        with named(out / name, "cannot be made"):
            make_folder(out / name)
        for file, text in files.items():
            replace_file(out / name / file, text.encode())
        faults += [(line, folder) for line in results_of(runs).fault_lines]
    lines = tuple(line for line, _ in faults)
    if not shown:
        raise BenchError(*lines, "no result folder is left to show")
    every = [column for columns in shown.values() for column in columns]
    replace_file(out / LEADERBOARD, csv_text(_leaderboard(every)).encode())
    page = _render([*shown], _in_order(every), [_placeless(*fault) for fault in faults])
    replace_file(out / INDEX, page.encode())
    return lines


def _names(folders: Iterable[Path]) -> list[str]:
    counts: Counter[str] = Counter()
    keys = []
    for folder in folders:
        name = folder.resolve().name
        counts[name] += 1
        keys.append(name if counts[name] == 1 else f"{name} {counts[name]}")
    known = slugs(keys)
    return [known[key] for key in keys]


def _placeless(line: str, folder: Path) -> str:
    """Replaces the path of a folder in a line with its name, since the site is published."""
    place = rf"(?<![\w./-]){re.escape(str(folder))}(?![\w-])"  # a whole path: `site .` changes no other dots
    return printable(re.sub(place, lambda _: folder.resolve().name, line), 400)


def _leaderboard(columns: Iterable[Column]) -> pd.DataFrame:
    """Joins the leaderboards of all experiments; the first columns are those by which a reader filters."""
    boards = []
    for column in columns:
        about = {"page": column.link, "modality": column.modality, "protocol": "; ".join(column.protocol)}
        board = column.view.board.reset_index(drop=True)
        boards.append(pd.DataFrame(about | {"compares": column.compares}, index=board.index).join(board))
    return pd.concat(boards, ignore_index=True)


def _render(folders: Sequence[str], columns: Sequence[Column], faults: Sequence[str]) -> str:
    # Variants take part in the sentences and the comparison across datasets only where there is nothing else.
    of_methods = [column for column in columns if column.compares == "methods"] or columns
    across = _compared(of_methods)
    shown_across = across_parts(across)
    protocols: set[str] = set()
    for column in columns:
        protocols.update(column.protocol)
    style = asset("style.css") + asset("site.css")
    script = asset("table.js") + asset("site.js")
    template = environment().get_template("site.html")
    return template.render(
        folders=folders,
        columns=columns,
        rows=_rows(columns, across),
        modalities=sorted({column.modality for column in columns}),
        protocols=sorted(protocols),
        finding=_finding(of_methods, across),
        has_both=len({column.compares for column in columns}) > 1,
        across=across if any(part is not None for part in shown_across.values()) else None,
        **shown_across,
        faults=faults,
        downloads=(LEADERBOARD, *(f"{folder}/{RUNS}" for folder in folders)),
        version=__version__,
        style=style,
        script=script,
        policy=policy(style, digest(script)),
    )


class Row(NamedTuple):
    """A method with its row of the leaderboard in each column, or None."""

    name: str
    cells: tuple[Mapping[str, Any] | None, ...]
    reference: bool
    """Whether it is a reference in all its columns."""


def _rows(columns: Sequence[Column], across: Across | None) -> list[Row]:
    """The methods: by their mean gain over the baseline, then by their number of columns; references come last."""
    names: dict[str, None] = {}
    for column in columns:
        names.update(dict.fromkeys(column.rows))
    rows = []
    for name in names:
        cells = tuple(column.rows.get(name) for column in columns)
        rows.append(Row(name_of(name), cells, all(cell["reference"] for cell in cells if cell)))
    first: list[str] = []
    if across is not None:
        first += map(name_of, standings(across).dropna(subset="mean_gain")["method"])

    def place(row: Row) -> tuple[Any, ...]:
        ranks = []  # from 0 for the best to 1 for the last
        for cell, column in zip(row.cells, columns, strict=True):
            if cell and cell["rank"]:
                ranks.append((cell["rank"] - 1) / max(column.n_ranked - 1, 1))
        decided = first.index(row.name) if row.name in first else len(first)
        known = sum(cell is not None for cell in row.cells)
        return row.reference, decided, -known, sum(ranks) / len(ranks) if ranks else 1.0

    return sorted(rows, key=place)


def _compared(columns: Iterable[Column]) -> Across | None:
    """Compares the methods that enough datasets share across these datasets; None for fewer than two datasets.

    Methods are added one by one, those that most datasets rank first, as long as enough datasets rank all of them. If
    no method is ranked by enough datasets, all experiments count.
    """
    left = [column for column in columns if column.view.table.metric == METRIC]
    ranked: dict[str, list[Column]] = {}
    for column in left:
        for name in column.view.table.ranked:
            ranked.setdefault(name, []).append(column)
    for name in sorted(ranked, key=lambda name: -_datasets(ranked[name])):
        having = [column for column in left if name in column.view.table.ranked]
        left = having if _datasets(having) >= MIN_PAIRS_ACROSS else left
    return across_datasets([column.view.table for column in left], [column.view.pairs for column in left])


def _datasets(columns: Iterable[Column]) -> int:
    return len({column.experiment.dataset for column in columns})


def _finding(columns: Sequence[Column], across: Across | None) -> Sequence[str]:
    finding = () if across is None else verdict_across(across)
    if finding:
        return finding
    lines = [f"{name_of(column.experiment.name)}: {column.view.verdict[0]}" for column in columns[:_MOST_NAMED]]
    return [line.replace("+-", "±") for line in dict.fromkeys(lines)]
