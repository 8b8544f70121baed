"""Formats how well each criterion selects settings: tables and the JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.criteria import ALL
from msda_bench.results.frame import AVERAGE
from msda_bench.results.notes import note_lines
from msda_bench.results.serialize import rows_of
from msda_bench.results.tables import Table, Unit
from msda_bench.suite.plan import CHANCE, LEAVE_ONE_OUT, ORACLE, Experiment

SELECTION_SCHEMA = 1
"""Version of the layout of `selection --json`."""
LEGEND = (
    "regret: the loss on the target from selecting with the criterion instead of the oracle, mean and standard error "
    "over seeds; rank corr.: Spearman's rank correlation between the criterion's scores of a run's candidates and "
    "theirs on the target, mean over runs (n). References are not included. *: the criterion of this suite."
)


_EXPLAINED = {
    ORACLE: "oracle: the candidate best on the target's own test labels, which are not available in practice.",
    CHANCE: "chance: the mean over the candidates, the expected score of a random choice.",
    LEAVE_ONE_OUT: "leave_one_source_out: each source in turn is the target of the others, scored on its test part.",
}


def criteria_notes(found: pd.DataFrame) -> list[str]:
    """Explains the tables of `criteria_tables`, and the criteria that are not validators."""
    return [LEGEND, *(_EXPLAINED[by] for by in found["criterion"].unique() if by in _EXPLAINED)]


def criteria_tables(experiment: Experiment, rows: pd.DataFrame, digits: int = 2) -> Iterator[Table]:
    """Two tables from an experiment's rows of `criteria`: all methods together, and the regret of each method."""
    several = len(experiment.targets) > 1
    mine = rows[rows["target"] == (AVERAGE if several else experiment.targets[0])]
    if several:
        mine = mine[~mine.duplicated(["criterion", "method"], keep="last")]  # if a target has the mean's name
    whole = mine[mine["method"] == ALL]
    unit = Unit.of(experiment.measure, [whole["mean"].max()], digits)
    where = printable(f"{experiment.name} ({experiment.dataset}), {AVERAGE if several else experiment.targets[0]}")
    heads = {row["criterion"]: f"{row['criterion']}{' *' if row['selects'] else ''}" for _, row in whole.iterrows()}
    cells = [{"criterion": heads[row["criterion"]], **_whole(row, unit)} for _, row in whole.iterrows()]
    title = f"{where}: {unit.label}, by criterion"
    yield Table(f"{experiment.name}-criteria", title, pd.DataFrame(cells), about=[()] * len(cells))
    each = mine[mine["method"] != ALL]
    regrets = {
        printable(name): [_regret(row, unit) for _, row in own.iterrows()]
        for name, own in each.groupby("method", sort=False)
    }
    title = f"{where}: regret of each method, {unit.label}"
    by_method = pd.DataFrame({"criterion": list(heads.values()), **regrets})
    yield Table(f"{experiment.name}-regrets", title, by_method, by_column=True)


def _whole(row: pd.Series[Any], unit: Unit) -> dict[str, str]:
    correlation = row["rank_correlation"]
    ranked = "-" if pd.isna(correlation) else f"{correlation:+.2f} ({row['n_rank_correlation']})"
    return {"mean": unit.show(row["mean"]), "regret": _regret(row, unit), "rank corr. (n)": ranked}


def _regret(row: pd.Series[Any], unit: Unit) -> str:
    error = row["regret_standard_error"]
    return unit.show(row["regret"]) + ("" if pd.isna(error) else f" +- {unit.show(error)}")


def criteria_json(
    runs: pd.DataFrame, found: pd.DataFrame, tried: pd.DataFrame, experiments: Sequence[str]
) -> dict[str, Any]:
    """The contents of selection.csv and candidates.csv as plain JSON values; docs/selection.md explains the keys."""
    lines = note_lines(runs)
    return {
        "schema": SELECTION_SCHEMA,
        "command": "selection",
        "folder": runs.attrs["folder"],
        "suite": runs.attrs["plan"].suite,
        "notes": {name: lines.get(name, []) for name in experiments},
        "criteria": rows_of(found),
        "candidates": rows_of(tried),
        "faults": list(runs.attrs["fault_lines"]),
    }
