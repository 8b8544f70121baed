"""Renders report.html: a result folder as one page that is made from the records and needs no network."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from msda_bench import __version__, load_confusion, load_curves
from msda_bench.errors import printable
from msda_bench.results.across import Across
from msda_bench.results.command_reports import advice_of
from msda_bench.results.criteria import criteria_of, sensitivity_of
from msda_bench.results.decision import BETTER, SAME, WORSE
from msda_bench.results.experiment_tables import View, across_tables, views
from msda_bench.results.files import LATEX, LEADERBOARD, MARKDOWN, RUNS, runs_file, table_files
from msda_bench.results.frame import AVERAGE, PROBLEMS, own_rows
from msda_bench.results.leaderboard import Analysis, Row, analyse, without_nan
from msda_bench.results.load import load_cells
from msda_bench.results.model_selection import candidates_of
from msda_bench.results.predictions import per_class
from msda_bench.results.problems import problems
from msda_bench.results.ranking import own_methods, standing
from msda_bench.results.reference import Reference, beside
from msda_bench.results.runs import are_ok, recorded_runs, results_of
from msda_bench.results.verdict_across import verdict_across
from msda_bench.results.words import name_of
from msda_bench.store.shift import read_shifts
from msda_bench_report.assets import asset, digest, download, environment, library, policy
from msda_bench_report.builtin import SECTIONS, headline
from msda_bench_report.figures import Results, drawn, picture, slugs
from msda_bench_report.plots.epochs import by_epoch
from msda_bench_report.plots.pairs import critical_difference
from msda_bench_report.plots.pairs import gains as draw_gains
from msda_bench_report.plots.parts import CONFIG, paper

REPORT = "report.html"
MOST_FIGURES = 64
"""The maximum number of figures on a page, shared equally by the experiments."""
_OF_TARGET, _ALONE = 7, 5
"""The number of figures per target, and of those per experiment that do not belong to a target."""
MOST_EMBEDDED = 11_000
"""The number of runs of which the page holds runs.csv for download; so many take about 1 MB, packed."""
MOST_CURVES = 2000
"""The maximum number of runs per experiment whose curves are read; beyond it, only the first seeds are read."""
MOST_SHOWN = 12
"""The number of methods that charts show at first, besides references and the baseline."""
MARKS = {BETTER: "△", SAME: "=", WORSE: "▽"}
"""What stands beside a score, by its outcome against the baseline."""
_PLAIN = frozenset({"suite", "candidates"})
"""The kinds of notes that are on an experiment's plan; the others are warnings."""
_LONG = 300
_SOFTWARE = {
    "components from": "distributions",
    "Python": "python",
    "PyTorch": "torch",
    "NumPy": "numpy",
    "kernels (numba)": "numba",
}
_DEVICE = {"device": "device", "name": "device_name", "system": "platform", "runs in a stack": "stack"}
_PROTOCOL = ("dataset", "fingerprint", "engine", "backbone", "training")
_WORDS: dict[str, dict[Any, str]] = {
    "numba": {"": "plain Python loops, which are slower and round differently"},
    "target_labels": {True: "seen, by a method that may", False: "not seen"},
}


def render_page(findings: Findings, commands: Iterable[str] = (), home: str | None = None) -> str:
    """Renders the page; identical records, made by these commands, give identical text, in any order.

    `home` is the address of the page that links to this page, if there is one; runs.csv lies beside this page then.
    """
    across = findings.analysis.across
    shown_across = across_parts(across, gains=findings.reference is None)
    results = results_of(findings.analysis.selected)
    is_long = not home and len(findings.analysis.runs) > MOST_EMBEDDED
    downloads = {}
    if home:
        downloads[RUNS] = RUNS
    elif not is_long:
        downloads.update([download(RUNS, runs_file(findings.analysis))])
    downloads.update(download(name, findings.files[name]) for name in (LEADERBOARD, MARKDOWN, LATEX))
    style = asset("style.css")
    script = asset("table.js") + asset("script.js")
    packed, drawing = library()
    template = environment().get_template("page.html")
    return template.render(
        plan=results.plan,
        sections=list(_experiments(findings)),
        across=across,
        **shown_across,
        finding=verdict_across(across) if across is not None and findings.reference is None else (),
        # Lines on files name them from the folder on.
        faults=[printable(line.replace(f"{results.folder}/", ""), 400) for line in results.fault_lines],
        ranks=findings.ranks,
        reference=findings.reference,
        commands=tuple(commands),
        home=home,
        n_runs=len(findings.runs),
        n_ok=int(are_ok(findings.runs).sum()),
        downloads=downloads,
        is_long=is_long,
        version=__version__,
        style=style,
        script=script,
        library=packed,
        config=CONFIG,
        paper=paper(),
        policy=policy(style, digest(script), drawing),
    )


def across_parts(across: Across | None, *, gains: bool = True) -> dict[str, Any]:
    """What templates show of a comparison across datasets, each None where there is nothing to show.

    They are the `table` of mean gains over the baseline and its picture, `gains`, and the `diagram` of mean ranks.
    """
    parts: dict[str, Any] = dict.fromkeys(("table", "gains", "diagram"))
    if across is None:
        return parts
    if gains and across.baseline is not None and across.gains:
        parts["table"] = next(across_tables(across))
        parts["gains"] = picture(draw_gains(across))
    if across.concludes and across.mean_ranks:
        parts["diagram"] = picture(critical_difference(across))
    return parts


def with_mark(view: View, row: Row) -> Row:
    """A row of the leaderboard for templates, with the outcome against the baseline, its mark, and None for NaN."""
    outcome = view.outcome(row)
    return without_nan(row) | {"outcome": outcome, "mark": MARKS.get(outcome, "")}


@dataclass(frozen=True)
class Findings:
    """What the runs of a folder say; the page and the site show it, and compute it once."""

    analysis: Analysis
    views: tuple[View, ...]
    files: Mapping[str, str]
    """The files of the tables by name."""
    reference: str | None = None
    """The reference among whose methods those of the folder are shown."""
    own: Mapping[str, Sequence[str]] | None = None
    """With a reference, the methods of the folder itself, by experiment."""
    ranks: tuple[str, ...] = ()
    """A sentence for each method of the folder: where it stands among those of the reference."""

    @classmethod
    def of(cls, runs: pd.DataFrame, reference: Reference | None = None) -> Findings:
        """What a frame from `load_results` says, alone or `beside` the methods of a reference."""
        analysis = analyse(runs if reference is None else beside(runs, reference))
        shown = tuple(views(analysis, among_recorded=reference is not None))
        findings = cls(analysis, shown, table_files(analysis, shown))
        if reference is None:
            return findings
        own = own_methods(runs)
        return replace(findings, reference=reference.name, own=own, ranks=tuple(standing(analysis, own)))

    @property
    def runs(self) -> pd.DataFrame:
        """The selected runs of the folder itself."""
        selected = self.analysis.selected
        if self.own is None:
            return selected
        places = zip(selected["experiment"], selected["method"], strict=True)
        return selected[[method in self.own.get(name, ()) for name, method in places]]


def _experiments(findings: Findings) -> Iterator[dict[str, Any]]:
    bad = problems(findings.analysis.selected)
    ids = slugs(experiment.name for experiment in results_of(findings.analysis.runs).plan.experiments)
    for view, results in _results(findings):
        anchor = ids[view.experiment.name]
        board = Board.of(view)
        first = [
            drawn(figure, anchor, board.shown, is_still=place == 0) for place, figure in enumerate(headline(results))
        ]
        parts = []
        for make in SECTIONS:
            section = make(results)
            if section is not None:
                figures = [drawn(figure, anchor, board.shown) for figure in section.figures]
                parts.append({"id": f"{anchor}-{section.name}", "section": section, "figures": figures})
        yield {
            "id": anchor,
            "experiment": view.experiment,
            "verdict": view.verdict,
            "advice": advice_of(view),
            "notes": [note.line for note in view.notes],
            "warns": any(note.kind not in _PLAIN for note in view.notes),
            "board": board,
            "headline": first,
            "parts": parts,
            "problems": own_rows(view.experiment, bad),
            "facts": _facts(results.runs),
        }


def _results(findings: Findings) -> Iterator[tuple[View, Results]]:
    every = findings.analysis.runs
    runs = findings.analysis.selected
    planned = results_of(every).plan.experiments
    most = max(0, (MOST_FIGURES // len(planned) - _ALONE) // _OF_TARGET)
    targets = {experiment.name: slugs(experiment.targets[:most]) for experiment in planned}
    # The curves and counts of targets without figures are not read.
    drawn_at = zip(runs["experiment"], runs["target"], strict=True)
    some = runs[[target in targets[name] for name, target in drawn_at]]
    curves = by_epoch(load_curves(some, MOST_CURVES))
    classes = per_class(load_confusion(some))
    candidates = candidates_of(every, runs)
    judged = criteria_of(candidates)
    tried = sensitivity_of(candidates)
    folder = results_of(every).folder
    shifts = {} if folder is None else read_shifts(Path(folder))
    for view in findings.views:
        experiment = view.experiment
        results = Results(
            targets=targets[experiment.name],
            experiment=experiment,
            shift=shifts.get(experiment.name),
            runs=view.runs,
            leaderboard=view.board,
            comparisons=view.comparisons,
            curves=own_rows(experiment, curves),
            classes=own_rows(experiment, classes),
            criteria=own_rows(experiment, judged),
            candidates=own_rows(experiment, tried),
            baseline=view.baseline,
        )
        yield view, results


class BoardRow(NamedTuple):
    """A method with its rows of the leaderboard; unknown values are None."""

    name: str
    cells: tuple[Mapping[str, Any], ...]
    shown: bool
    """Whether charts show it at first."""
    fixed: bool
    """Whether charts always show it: references and the baseline."""

    @property
    def main(self) -> Mapping[str, Any]:
        """Its cell in the column by which methods are ranked."""
        return self.cells[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """Counts of runs that are not ok, such as `2 failed`."""
        counts = {status: self.main[f"n_{status}"] for status in PROBLEMS}
        return tuple(f"{count} {status}" for status, count in counts.items() if count)


class Board(NamedTuple):
    """The table: the best methods first, references last; the column `average` first, then the targets."""

    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    baseline: str | None

    @classmethod
    def of(cls, view: View) -> Board:
        """The table of an experiment; `mark` is for scores significantly better or worse than the baseline's."""
        columns = sorted(view.columns, key=lambda name: name != AVERAGE)
        cells: dict[str, dict[str, Any]] = {}
        for row in sorted(view.rows, key=lambda row: bool(row["reference"])):
            cells.setdefault(row["method"], {})[row["target"]] = with_mark(view, row)
        ordered = sorted(cells.items(), key=lambda item: _order(item[1][columns[0]]))
        baseline = view.experiment.baseline
        rows = []
        for place, (name, of) in enumerate(ordered):
            fixed = bool(of[columns[0]]["reference"]) or name == baseline
            shown = tuple(of[column] for column in columns)
            rows.append(BoardRow(name_of(name), shown, fixed or place < MOST_SHOWN, fixed))
        return cls(tuple(map(name_of, columns)), tuple(rows), baseline and name_of(baseline))

    @property
    def shown(self) -> tuple[str, ...]:
        """The methods that charts show at first."""
        return tuple(row.name for row in self.rows if row.shown)

    def any(self, key: str) -> bool:
        """Whether any score has this: `mark`, or `bold_holm`."""
        return any(cell[key] for row in self.rows for cell in row.cells)

    @property
    def runs(self) -> str:
        """The number of runs, such as `10/20`, if it is equal for all scores and thus shown once; otherwise empty."""
        counts = {f"{cell['n_ok']}/{cell['n_planned']}" for row in self.rows for cell in row.cells}
        return counts.pop() if len(counts) == 1 else ""

    @property
    def has_problems(self) -> bool:
        """Whether methods differ in the statuses of their runs."""
        return len({row.problems for row in self.rows}) > 1


def _order(cell: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """References last, and within each kind those without a rank."""
    return bool(cell["reference"]), cell["rank"] is None, cell["rank"] or 0


def _facts(runs: pd.DataFrame) -> dict[str, dict[str, list[tuple[str, int]]]]:
    """Facts on how an experiment's runs were made, by heading and label: each value with its number of runs."""
    recorded = recorded_runs(runs)
    # Runs of one method and target differ only in the seed.
    cells = load_cells(recorded.drop_duplicates(["method", "target"])).values()
    made = recorded[[*_SOFTWARE.values(), *_DEVICE.values(), "target_labels"]]
    made = made.assign(numba=made["numba"].where(made["device"] == "cpu"))  # a GPU has kernels of its own
    values = {
        "Software": {label: _column(made, name) for label, name in _SOFTWARE.items()},
        "Device": {label: _column(made, name) for label, name in _DEVICE.items()},
        "Data and protocol": {label: [_part(label, cell) for cell in cells] for label in _PROTOCOL},
    }
    values["Data and protocol"]["target labels in training"] = _column(made, "target_labels")
    facts: dict[str, dict[str, list[tuple[str, int]]]] = {}
    for heading, columns in values.items():
        for label, column in columns.items():
            counts = _counts(column)
            if counts:
                facts.setdefault(heading, {})[label] = counts
    return facts


def _column(made: pd.DataFrame, name: str) -> list[Any]:
    words = _WORDS.get(name, {})
    return [words.get(value, value) for value in made[name].dropna().tolist()]


def _counts(values: Iterable[Any]) -> list[tuple[str, int]]:
    counts = Counter(value for value in values if value is not None)
    texts = ((printable(value, _LONG), count) for value, count in counts.items())
    return sorted(texts, key=lambda item: (-item[1], item[0]))


def _part(label: str, cell: Mapping[str, Any]) -> str | None:
    """A part of a cell in words: a component with its parameters and version, settings, or a value."""
    value = cell.get(label)
    if value is None:
        return None
    if not isinstance(value, dict):
        return _text(value)
    if label == "training":
        return _settings(value)
    name = f"{value.get('name')}"
    params = value.get("params")
    given = _settings(params) if isinstance(params, dict) else ""
    if given:
        name += f"({given})"
    return f"{name}, version {value.get('version')}"


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items() if value is not None)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_text(inner)}' for name, inner in value.items())})"
    return value if isinstance(value, str) else json.dumps(value)
