"""report.html: a result folder as one page that needs no network, made anew from the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from msda_bench import __version__
from msda_bench.report.caption import caption
from msda_bench.report.html.across import across
from msda_bench.report.html.beyond import Beyond, beyond
from msda_bench.report.html.board import Board, leaderboard
from msda_bench.report.html.canvas import drawing
from msda_bench.report.html.cost import Costs, costs
from msda_bench.report.html.curves import curve_panels
from msda_bench.report.html.environment import asset, environment, policy
from msda_bench.report.html.figure import Figure
from msda_bench.report.html.heat import HeatMaps, heat_maps
from msda_bench.report.html.limits import shares
from msda_bench.report.html.matrix import Matrices, matrices
from msda_bench.report.html.origin import Fact, facts
from msda_bench.report.html.points import point_panels
from msda_bench.report.html.selecting import Selecting, selecting
from msda_bench.report.html.sheet import Sheet, sheets
from msda_bench.report.html.swatch import swatch
from msda_bench.report.html.trajectories import courses
from msda_bench.report.html.trouble import Troubles, troubles, within
from msda_bench.report.write import replace
from msda_bench.stats.analysis import analyse
from msda_bench.stats.criteria import Criteria
from msda_bench.stats.selection import resolve
from msda_bench.store.commands import read_commands
from msda_bench.store.record import Record
from msda_bench.suite.plan import Plan

REPORT = "report.html"


@dataclass(frozen=True)
class Section:
    """One experiment's part of the page.

    Attributes:
        sheet: what it is made of.
        swatches: by method, how figures show it.
        board: the leaderboard.
        captions: how to read it.
        points: panels of scores.
        beyond: intervals, gains and regrets.
        heat: maps of weights.
        costs: scores against times.
        curves: risks and gaps.
        selecting: how well criteria select settings; None where none are selected.
        matrices: p-values.
        troubles: runs that are not ok.
        facts: where the numbers come from.
    """

    sheet: Sheet
    swatches: Mapping[str, Markup]
    board: Board
    captions: tuple[str, ...]
    points: tuple[Figure, ...]
    beyond: Beyond | None
    heat: HeatMaps | None
    costs: Costs | None
    curves: tuple[Figure, ...]
    selecting: Selecting | None
    matrices: Matrices | None
    troubles: Troubles
    facts: Mapping[str, tuple[Fact, ...]]


def write_page(
    folder: Path,
    plan: Plan,
    records: Mapping[str, Record],
    faults: Iterable[str] = (),
    criteria: Iterable[Criteria] = (),
) -> Path:
    """Writes report.html, whole or not at all.

    Args:
        folder: the result folder, which is there.
        plan: what was asked for.
        records: by key; runs whose key is not there are missing.
        faults: lines on records that are damaged or in conflict.
        criteria: how well criteria select settings, of the experiments where any are selected.

    Returns:
        Where it is.

    Raises:
        StoreError: the folder cannot be read or written, or a record is ok without a possible outcome.
    """
    path = folder / REPORT
    text = render_page(plan, records, within(folder, faults), read_commands(folder), criteria)
    replace(path, text.encode())
    return path


def render_page(
    plan: Plan,
    records: Mapping[str, Record],
    faults: Iterable[str] = (),
    commands: Iterable[str] = (),
    criteria: Iterable[Criteria] = (),
) -> str:
    """The page: the same text for the same records, in whatever order.

    Args:
        plan: what was asked for.
        records: by key; runs whose key is not there are missing.
        faults: lines on records that are damaged or in conflict.
        commands: those that made the records, as far as they are known.
        criteria: how well criteria select settings, of the experiments where any are selected.

    Raises:
        StoreError: a record is ok without a possible outcome.
    """
    judged = {one.scores.experiment.name: one for one in criteria}
    plan = resolve(plan, records)
    analyses = analyse(plan, records)
    with drawing():
        found = [
            _section(sheet, judged.get(sheet.experiment.name), len(plan.experiments))
            for sheet in sheets(plan, records, analyses, shares(plan))
        ]
        together = across(analyses)
    style, script = asset("style.css"), asset("script.js")
    return (
        environment()
        .get_template("page.html")
        .render(
            plan=plan,
            sections=found,
            across=together,
            faults=tuple(faults),
            commands=tuple(commands),
            n_runs=sum(len(section.sheet.analysis.scores.statuses) for section in found),
            n_troubled=sum(section.troubles.runs for section in found),
            version=__version__,
            style=style,
            script=script,
            policy=policy(style, script),
        )
    )


def _section(sheet: Sheet, criteria: Criteria | None, experiments: int) -> Section:
    found = courses(sheet)
    return Section(
        sheet=sheet,
        swatches={method.name: swatch(sheet.look(method)) for method in sheet.methods},
        board=leaderboard(sheet),
        captions=tuple(caption(sheet.analysis, "Bold")),
        points=tuple(point_panels(sheet)),
        beyond=beyond(sheet),
        heat=heat_maps(sheet, found),
        costs=costs(sheet),
        curves=tuple(curve_panels(sheet, found)),
        selecting=selecting(sheet, criteria),
        matrices=matrices(sheet, experiments),
        troubles=troubles(sheet),
        facts=facts([sheet.runs[run] for run in sheet.analysis.scores.statuses if run in sheet.runs]),
    )
