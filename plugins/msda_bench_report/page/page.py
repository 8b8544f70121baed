"""Writes report.html: a result folder as one page that is made from the records and needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from msda_bench import __version__
from msda_bench.analysis import (
    Across,
    Analysis,
    Experiment,
    Store,
    across_tables,
    analyse,
    criteria,
    experiments,
    load_confusion,
    load_curves,
    notes,
    own_rows,
    per_class,
    printable,
    problems,
    replace_file,
    result_files,
    select,
    sensitivity,
    verdict,
)
from msda_bench_report.page.assets import asset, download, environment, library, policy
from msda_bench_report.page.board import board
from msda_bench_report.page.facts import facts
from msda_bench_report.page.figures import Figure, figure
from msda_bench_report.page.parts import Frames, drawn_targets, headline, parts, slugs
from msda_bench_report.plots.epochs import by_epoch
from msda_bench_report.plots.pairs import rank_chart
from msda_bench_report.plots.still import CONFIG, paper

REPORT = "report.html"
_PLAIN = frozenset({"suite", "candidates"})
"""The kinds of notes that are on an experiment's plan; the others are warnings."""
MOST_CURVES = 2000
"""The maximum number of runs per experiment whose curves are read; beyond it, only the first seeds are read."""


def write_page(folder: Path, runs: pd.DataFrame) -> Path:
    """Writes report.html for a frame from `load_results` into the result folder, completely or not at all.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    path = folder / REPORT
    replace_file(path, render_page(runs, Store(folder, repair=False).commands()).encode())
    return path


def render_page(runs: pd.DataFrame, commands: Iterable[str] = (), home: str | None = None) -> str:
    """Renders the page; identical records give identical text, in any order.

    Args:
        runs: a frame from `load_results`; curves and cells are read from its folder.
        commands: the commands that made the records, as far as known.
        home: the address of the page that links to this page, if there is one.

    Raises:
        StoreError: the folder cannot be read.
    """
    analysis = analyse(runs)
    files = result_files(analysis)
    sections = list(_sections(runs, analysis, files))
    style, script, drawing = asset("style.css"), asset("table.js") + asset("script.js"), library()
    chosen = select(runs)
    return (
        environment()
        .get_template("page.html")
        .render(
            plan=runs.attrs["plan"],
            sections=sections,
            across=analysis.across,
            diagram=_diagram(analysis.across),
            standings=next(across_tables(analysis.across), None),
            faults=[_within(line, runs.attrs["folder"]) for line in runs.attrs["fault_lines"]],
            commands=tuple(commands),
            home=home,
            n_runs=len(chosen),
            n_ok=int((chosen["status"] == "ok").sum()),
            downloads=dict(download(name, files[name]) for name in ("runs.csv", "leaderboard.csv", "tables.md")),
            version=__version__,
            style=style,
            script=script,
            library=drawing,
            config=CONFIG,
            paper=paper(),
            policy=policy(style, script, drawing),
        )
    )


def _sections(runs: pd.DataFrame, analysis: Analysis, files: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yields the data of each experiment for experiment.html."""
    chosen, noted, bad = select(runs), notes(runs), problems(runs)
    judged, tried = criteria(runs), sensitivity(runs)
    planned = runs.attrs["plan"].experiments
    targets = {experiment.name: drawn_targets(experiment, len(planned)) for experiment in planned}
    # The curves and counts of targets without figures are not read.
    drawn = chosen[
        [target in targets[name] for name, target in zip(chosen["experiment"], chosen["target"], strict=True)]
    ]
    curves, classes = by_epoch(load_curves(drawn, MOST_CURVES)), per_class(load_confusion(drawn))
    ids = slugs(table.name for table in planned)
    for experiment, rows in experiments(chosen):
        of = partial(own_rows, experiment)
        ranks, pairs, name = of(analysis.leaderboard), of(analysis.comparisons), experiment.name
        made, own = board(experiment, ranks, pairs), (of(curves), of(classes), of(judged), of(tried))
        frames = Frames(ids[name], experiment, rows, ranks, pairs, *own, made.shown, targets[name])
        yield {
            "id": frames.id,
            "experiment": experiment,
            "verdict": verdict(experiment, rows, ranks, pairs),
            "notes": [note.line for note in noted if note.experiment == name],
            "warns": any(note.kind not in _PLAIN for note in noted if note.experiment == name),
            "board": made,
            "headline": list(headline(frames)),
            "parts": list(parts(frames)),
            "problems": of(bad),
            "facts": facts(rows),
            "tables": dict(download(name, files[name]) for name in _tables(experiment) if name in files),
        }


def _tables(experiment: Experiment) -> Iterator[str]:
    for kind in ("", "-summary", "-pairs"):
        yield f"tables/{experiment.name}{kind}.tex"


def _diagram(across: Across | None) -> Figure | None:
    if across is None or not across.concludes or not across.mean_ranks:
        return None
    ranks = pd.DataFrame({"method": across.methods, "mean rank": [across.mean_ranks[name] for name in across.methods]})
    label = "Mean ranks over datasets; bars join groups in which no difference was shown"
    return figure("across-ranks", "Critical differences", label, rank_chart(across), ranks, (), wide=True)


def _within(line: str, folder: str | None) -> str:
    """Removes the folder's path from a line on a file."""
    return printable(line.replace(f"{folder}/", "") if folder else line, 400)
