"""report.html: a result folder as one page that needs no network, made anew from the records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from msda_bench import __version__
from msda_bench.errors import printable
from msda_bench.results.files import LATEX, LEADERBOARD, MARKDOWN, RUNS, replace_file, result_files
from msda_bench.results.frame import experiments, load_curves
from msda_bench.results.kept import analysed
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.notes import notes, problems
from msda_bench.results.page.assets import asset, download, environment, library, policy
from msda_bench.results.page.board import Board, board
from msda_bench.results.page.facts import Fact, facts
from msda_bench.results.page.figures import Figure, figure
from msda_bench.results.page.parts import Frames, Part, drawn_targets, headline, parts, slugs
from msda_bench.results.page.settings import settings_part
from msda_bench.results.page.verdict import verdict
from msda_bench.results.plots import critical_difference
from msda_bench.results.plots.still import CONFIG
from msda_bench.results.select import select
from msda_bench.store.commands import read_commands
from msda_bench.suite.plan import Experiment

REPORT = "report.html"
MOST_CURVES = 2000
"""Runs of an experiment whose curves are read; of more, those of its first seeds."""


@dataclass(frozen=True)
class Section:
    """One experiment's part of the page.

    Attributes:
        id: in the page.
        experiment: the plan's.
        verdict: what it shows, in sentences.
        notes: what a reader must know.
        board: the leaderboard.
        headline: the forest plot, and the differences from the best.
        parts: what is folded.
        problems: runs that are not ok.
        facts: where the numbers come from.
        tables: downloads of its tables: names with addresses.
    """

    id: str
    experiment: Experiment
    verdict: tuple[str, ...]
    notes: tuple[str, ...]
    board: Board
    headline: tuple[Figure, ...]
    parts: tuple[Part, ...]
    problems: pd.DataFrame
    facts: Mapping[str, tuple[Fact, ...]]
    tables: Mapping[str, str]


def write_page(folder: Path, runs: pd.DataFrame) -> Path:
    """Writes report.html, whole or not at all.

    Args:
        folder: the result folder, which is there.
        runs: of `load_results`.

    Returns:
        Where it is.

    Raises:
        StoreError: the folder cannot be read or written.
    """
    path = folder / REPORT
    replace_file(path, render_page(runs, read_commands(folder)).encode())
    return path


def render_page(runs: pd.DataFrame, commands: Iterable[str] = ()) -> str:
    """The page: the same text for the same records, in whatever order.

    Args:
        runs: of `load_results`; curves and cells are read from its folder.
        commands: those that made the records, as far as they are known.

    Raises:
        StoreError: the folder cannot be read.
    """
    analysis = analysed(runs)
    files = result_files(analysis)
    sections = tuple(_sections(runs, analysis, files))
    style, script, drawing = asset("style.css"), asset("script.js"), library()
    chosen = select(runs)
    return (
        environment()
        .get_template("page.html")
        .render(
            plan=runs.attrs["plan"],
            sections=sections,
            across=analysis.across,
            diagram=_diagram(runs, analysis),
            faults=[_within(line, runs.attrs["folder"]) for line in runs.attrs["fault_lines"]],
            commands=tuple(commands),
            n_runs=len(chosen),
            n_ok=int((chosen["status"] == "ok").sum()),
            downloads=dict(download(name, files[name]) for name in (RUNS, LEADERBOARD, MARKDOWN)),
            version=__version__,
            style=style,
            script=script,
            library=drawing,
            config=CONFIG,
            policy=policy(style, script, drawing),
        )
    )


def _sections(runs: pd.DataFrame, analysis: Analysis, files: Mapping[str, str]) -> Iterator[Section]:
    chosen, said, bad = select(runs), notes(runs), problems(runs)
    planned = runs.attrs["plan"].experiments
    ids = slugs(table.name for table in planned)
    for experiment, rows in experiments(chosen):
        ranks, pairs = (_of(frame, experiment) for frame in (analysis.leaderboard, analysis.comparisons))
        made = board(experiment, ranks)
        targets = drawn_targets(experiment, len(planned))
        curves = load_curves(rows[rows["target"].isin(targets)], most=MOST_CURVES)
        frames = Frames(ids[experiment.name], experiment, rows, ranks, pairs, curves, made.shown, targets)
        settings = settings_part(runs, frames)
        yield Section(
            id=frames.id,
            experiment=experiment,
            verdict=verdict(experiment, rows, ranks, pairs),
            notes=tuple(note.line for note in said if note.experiment == experiment.name),
            board=made,
            headline=tuple(headline(frames)),
            parts=(*parts(frames), *([settings] if settings else [])),
            problems=_of(bad, experiment),
            facts=facts(rows),
            tables=dict(download(name, files[name]) for name in _tables(experiment) if name in files),
        )


def _tables(experiment: Experiment) -> Iterator[str]:
    for kind in ("", "-summary", "-pairs"):
        yield f"{LATEX}/{experiment.name}{kind}.tex"


def _of(frame: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    found = frame[(frame["experiment"].astype(object) == experiment.name).to_numpy(dtype=bool)]
    found.attrs = frame.attrs
    return found


def _diagram(runs: pd.DataFrame, analysis: Analysis) -> Figure | None:
    across = analysis.across
    if across is None or not across.concludes or not across.mean_ranks:
        return None
    ranks = pd.DataFrame({"method": across.methods, "mean rank": [across.mean_ranks[name] for name in across.methods]})
    label = "Mean ranks over datasets; bars join groups without a significant difference"
    return figure("across-ranks", "Critical differences", label, critical_difference(runs), ranks, (), wide=True)


def _within(line: str, folder: str | None) -> str:
    """A line on a file, without the folder's place, which is the writer's own business."""
    return printable(line.replace(f"{folder}/", "") if folder else line, 400)
