"""What `msda-bench selection` answers: tables of how well each criterion selects settings."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from msda_bench.results.criteria import ALL
from msda_bench.results.frame import AVERAGE
from msda_bench.results.notes import is_whole, note_lines, problem_lines
from msda_bench.results.report import Column, Line, Report, Section, Table, Unit
from msda_bench.suite.plan import CHANCE, ENSV, LEAVE_ONE_OUT, ORACLE, Experiment

_REGRET = ("regret", "regret_standard_error")
LEGEND = (
    "regret: the loss on the target from selecting with the criterion instead of the oracle, mean and standard error "
    "over seeds; rank corr.: Spearman's rank correlation between the criterion's scores of a run's candidates and "
    "theirs on the target, mean over runs (n). References are not included. *: the criterion of this suite."
)


_EXPLAINED = {
    ORACLE: "oracle: the candidate best on the target's own test labels, which are not available in practice.",
    CHANCE: "chance: the mean over the candidates, the expected score of a random choice.",
    ENSV: "ensv: the share of the target's unlabelled examples for which a candidate predicts what most candidates do; "
    "no score where a candidate's predictions are not kept.",
    LEAVE_ONE_OUT: "leave_one_source_out: each source in turn is the target of the others, scored on its test part.",
}


def criteria_notes(rows: pd.DataFrame) -> list[str]:
    """Explains the tables of `criteria_tables`, and the criteria that are not validators."""
    return [LEGEND, *(_EXPLAINED[by] for by in rows["criterion"].unique() if by in _EXPLAINED)]


def criteria_tables(experiment: Experiment, rows: pd.DataFrame) -> Iterator[Table]:
    """Two tables from an experiment's rows of `criteria`: all methods together, and the regret of each method."""
    several = len(experiment.targets) > 1
    mine = rows[rows["target"] == (AVERAGE if several else experiment.targets[0])]
    if several:
        mine = mine[~mine.duplicated(["criterion", "method"], keep="last")]  # if a target has the mean's name
    whole = mine[mine["method"] == ALL]
    unit = Unit.of(experiment.measure, [whole["mean"].max()])
    where = f"{experiment.name} ({experiment.dataset}), {AVERAGE if several else experiment.targets[0]}"
    criterion = Column("criterion", "criterion", ["criterion", "selects"])
    columns = (
        criterion,
        Column("mean", "number", ["mean"], unit),
        Column("regret", "number with error", _REGRET, unit),
        Column("rank corr. (n)", "correlation", ["rank_correlation", "n_rank_correlation"]),
    )
    yield Table(f"{experiment.name}-criteria", f"{where}: {unit.label}, by criterion", whole, columns, about=())
    methods = dict.fromkeys(mine.loc[mine["method"] != ALL, "method"])
    regrets = (Column(name, "number with error", _REGRET, unit, ("method", name)) for name in methods)
    title = f"{where}: regret of each method, {unit.label}"
    yield Table(f"{experiment.name}-regrets", title, mine, (criterion, *regrets), "criterion", by_column=True)


def criteria_report(runs: pd.DataFrame, rows: pd.DataFrame) -> Report:
    """What `msda-bench selection` answers, from the frame of `criteria`."""
    lines, sections = note_lines(runs), []
    for table in runs.attrs["plan"].experiments:
        mine = rows[rows["experiment"] == table.name]
        if len(mine):
            notes = (Line("note", line) for line in lines.get(table.name, ()))
            sections.append(Section(tuple(criteria_tables(table, mine)), tuple(notes)))
    problems = (Line("problem", line) for line in problem_lines(runs))
    sections.append(Section(lines=(*(Line("caption", text) for text in criteria_notes(rows)), *problems)))
    return Report(tuple(sections), rows, is_whole(runs))
