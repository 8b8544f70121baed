"""Writes the site: a leaderboard of all folders, a page for each folder, and CSV files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from msda_bench import __version__
from msda_bench.analysis import (
    Across,
    BenchError,
    Registry,
    Store,
    analyse,
    csv_text,
    load_results,
    make_folder,
    named,
    printable,
    refuse_result_folders,
    replace_file,
    result_files,
)
from msda_bench_report.page.assets import asset, environment, policy
from msda_bench_report.page.figures import picture
from msda_bench_report.page.page import REPORT, render_page
from msda_bench_report.page.parts import slugs
from msda_bench_report.plots.pairs import rank_chart
from msda_bench_report.site.column import Column, columns
from msda_bench_report.site.table import answer, compared, in_order, leaderboard_frame, of_methods, table

INDEX, LEADERBOARD, RUNS = "index.html", "leaderboard.csv", "runs.csv"


class Shown(NamedTuple):
    """A result folder on the site.

    Attributes:
        name: the name of its folder on the site.
        board: its leaderboard.
        columns: its experiments.
    """

    name: str
    board: pd.DataFrame
    columns: tuple[Column, ...]


def write_site(folders: Sequence[Path], out: Path, registry: Registry) -> tuple[str, ...]:
    """Writes the site of some result folders; the folders do not change.

    Args:
        folders: the result folders; one that cannot be read is reported on the site, and the others are shown.
        out: the site's folder; files of an earlier site are replaced.
        registry: the installed components.

    Returns:
        A line for each folder that cannot be shown, and for each record that is damaged or in conflict.

    Raises:
        BenchError: no folder can be shown, or the site cannot be written.
    """
    faults: list[tuple[str, Path]] = []
    once = [*{folder.resolve(): folder for folder in folders}.values()]  # a folder given twice would count twice
    names = _names(once)
    refuse_result_folders(out, *names)
    shown = [*_shown(once, names, out, registry, faults)]
    lines = tuple(line for line, _ in faults)
    if not shown:
        raise BenchError(*lines, "no result folder is left to show")
    every = in_order(column for one in shown for column in one.columns)
    frame = leaderboard_frame([(one.name, one.board) for one in shown], every)
    replace_file(out / LEADERBOARD, csv_text(frame).encode())
    replace_file(out / INDEX, _render(shown, every, [_placeless(*fault) for fault in faults]).encode())
    return lines


def _shown(
    folders: Sequence[Path], names: Sequence[str], out: Path, registry: Registry, faults: list[tuple[str, Path]]
) -> Iterator[Shown]:
    """Writes the pages of each readable folder and yields it; adds a line and its folder to `faults` for each fault."""
    for folder, name in zip(folders, names, strict=True):
        try:
            runs = load_results(folder)
            one, pages = _read(runs, folder, name, registry)
        except BenchError as error:
            faults.extend((line, folder) for line in error.lines)
            continue
        with named(out / name, "cannot be made"):
            make_folder(out / name)
        for file, text in pages.items():
            replace_file(out / name / file, text.encode())
        faults.extend((line, folder) for line in runs.attrs["fault_lines"])
        yield one


def _read(runs: pd.DataFrame, folder: Path, name: str, registry: Registry) -> tuple[Shown, dict[str, str]]:
    """Analyses the runs of a result folder; returns it with its files on the site, by name."""
    analysis = analyse(runs)
    found = Shown(name, analysis.leaderboard, tuple(columns(name, analysis, registry)))
    page = render_page(runs, Store(folder, repair=False).commands(), home=f"../{INDEX}")
    files = {REPORT: page, RUNS: result_files(analysis)[RUNS]}
    return found, files


def _names(folders: Iterable[Path]) -> list[str]:
    """The folders' names as parts of addresses, all different."""
    places = [folder.resolve() for folder in folders]
    names = [place.name for place in places]
    keys = [
        name if names.index(name) == at else f"{name} {names[:at].count(name) + 1}" for at, name in enumerate(names)
    ]
    known = slugs(keys)
    return [known[key] for key in keys]


def _placeless(line: str, folder: Path) -> str:
    """Replaces the path of a folder in a line with its name, since the site is published."""
    place = rf"(?<![\w./-]){re.escape(str(folder))}(?![\w-])"  # a whole path: `site .` changes no other dots
    return printable(re.sub(place, lambda _: folder.resolve().name, line), 400)


def _render(shown: Sequence[Shown], every: Sequence[Column], faults: Sequence[str]) -> str:
    counted = of_methods(every)
    across = compared(counted)
    style = asset("style.css") + asset("site.css")
    script = asset("table.js") + asset("site.js")
    return (
        environment()
        .get_template("site.html")
        .render(
            shown=shown,
            columns=every,
            rows=table(every),
            modalities=sorted({column.modality for column in every}),
            protocols=sorted({word for column in every for word in column.protocol}),
            answer=answer(counted, across),
            has_both=len({column.compares for column in every}) > 1,
            across=across,
            diagram=_diagram(across),
            faults=faults,
            downloads=(LEADERBOARD, *(f"{one.name}/{RUNS}" for one in shown)),
            version=__version__,
            style=style,
            script=script,
            policy=policy(style, script),
        )
    )


def _diagram(across: Across | None) -> Markup | None:
    if across is None or not across.concludes or not across.mean_ranks:
        return None
    chart: dict[str, Any] = rank_chart(across).to_dict(validate=False)
    return picture(chart)
