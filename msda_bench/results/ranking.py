"""Ranks the methods of a folder among recorded ones: each is tested against its own control and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from msda_bench.results.command_reports import folder_report
from msda_bench.results.decision import PairedComparison, compared_at, holm
from msda_bench.results.differences import GainUnit
from msda_bench.results.experiment_tables import views
from msda_bench.results.leaderboard import Analysis, analyse, ranked_rows, rows_of_mean
from msda_bench.results.reference import Reference, beside
from msda_bench.results.report import Line, Report, Section, mean_text
from msda_bench.results.runs import results_of
from msda_bench.results.scores import ScoreTable
from msda_bench.results.words import counted, name_of
from msda_bench.suite.plan import Experiment, Method

_WHOLE = ("scheme", "discrepancy", "aggregator")
"""The components that the recipe of a method with an aggregator begins with."""


class _Question(NamedTuple):
    """The comparison of a method with its control, which comes second."""

    method: str
    control: str
    is_baseline: bool
    pair: PairedComparison


def against_report(command: str, runs: pd.DataFrame, reference: Reference) -> Report:
    """The report of a folder's runs `beside` those of a reference, with a sentence for each of its methods."""
    analysis = analyse(beside(runs, reference))
    shown = tuple(views(analysis, among_recorded=True))
    report = folder_report(command, analysis, shown)
    lines = tuple(Line("verdict", line) for line in standing(analysis, own_methods(runs)))
    return replace(report, sections=(*report.sections, Section(lines=lines)))


def own_methods(runs: pd.DataFrame) -> dict[str, list[str]]:
    """The methods that the runs of a folder have by themselves, by experiment."""
    return {table.name: [method.name for method in table.methods] for table in results_of(runs).plan.experiments}


def standing(analysis: Analysis, mine: Mapping[str, Collection[str]]) -> Iterator[str]:
    """A sentence for each of these methods, by experiment: its rank by the mean, and its test against its control.

    The test is exact and two-sided. It is corrected for the number of these methods alone: how they compare with the
    recorded ones is not asked, so these only stand beside them.
    """
    for table, rows in zip(analysis.tables, analysis.rows, strict=True):
        experiment = table.experiment
        ranked = ranked_rows(rows_of_mean(table, rows))
        own = [row for row in ranked if row["method"] in mine[experiment.name]]
        questions = list(_questions(table, [row["method"] for row in own]))
        answers = _answers(experiment, questions)
        for row in own:
            place = f"{experiment.name}: {name_of(row['method'])} is number {row['rank']} of {len(ranked)} by the mean"
            unit = f"{'% ' if experiment.measure.percent else ''}{experiment.measure.label}"
            answer = answers.get(row["method"], "It shares no seed with a control.")
            yield f"{place} ({mean_text(row)} {unit}). {answer}"


def control_of_method(table: Experiment, method: Method, own: Collection[str]) -> str | None:
    """The recorded method by which a method is judged.

    That of a method with an aggregator is the same scheme and discrepancy with uniform weights, where it is recorded;
    otherwise it is the baseline.
    """
    parts = _components(method.recipe)
    if len(parts) == len(_WHOLE):
        for other in table.methods:
            if not other.reference and other.name not in own and _components(other.recipe) == parts[:-1]:
                return other.name
    return table.baseline


def _components(recipe: str) -> list[str]:
    """The components at the beginning of a recipe, such as `adapt`, `d_A` and `sharpmax(gamma=0.1)`."""
    depth = 0
    for place, char in enumerate(recipe):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            recipe = recipe[:place]
            break
    return recipe.split(" + ")


def _questions(table: ScoreTable, own: Sequence[str]) -> Iterator[_Question]:
    methods = {method.name: method for method in table.experiment.methods}
    for name in own:
        control = control_of_method(table.experiment, methods[name], own)
        if control not in table.methods or control == name:
            continue
        column = None if len(table.targets) > 1 else table.targets[0]
        pair = compared_at(table, column, (name, control))
        if pair.n_paired:
            yield _Question(name, control, control == table.experiment.baseline, pair)


def _answers(table: Experiment, questions: Sequence[_Question]) -> dict[str, str]:
    p_values = holm([question.pair.p or 0.0 for question in questions])
    attainable = holm([question.pair.attainable_p for question in questions])
    corrected = f", corrected for {len(questions)} methods of yours" if len(questions) > 1 else ""
    unit = GainUnit.of(table)
    answers = {}
    for question, p, least in zip(questions, p_values, attainable, strict=True):
        pair = question.pair
        word = _word(pair, p, least)
        gain = f"{unit.interval(*pair.difference_of(question.method))} over {counted(pair.n_paired, 'seed')}"
        control = f"{name_of(question.control)}, which has the same discrepancy and uniform weights"
        if question.is_baseline:
            control = f"the baseline {name_of(question.control)}"
        answers[question.method] = f"Against {control}: {gain}, {word} (exact p = {p:.2g}{corrected})."
    return answers


def _word(pair: PairedComparison, p: float, attainable: float) -> str:
    if pair.n_paired == pair.n_zero:
        return "equal in every pair"
    if attainable > pair.alpha:
        return "too few seeds for a test"
    if p > pair.alpha:
        return "not shown to differ"
    return f"significantly {'better' if (pair.mean_difference or 0.0) > 0 else 'worse'}"
