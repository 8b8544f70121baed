"""Reads the third registered measurement by its plan, README.md.

`PYTHONPATH=studies/registered:studies/registered-2 python studies/registered-3/third_reading.py` prints every number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import msda_bench as mb
from margins import LEVEL
from msda_bench.results.model_selection import select
from reading import TUNING, Texts, print_tables
from second_reading import Mean, holm, mean_over_tasks, recorded_tasks
from study import interval_text, p_text
from task_gains import gains_of, overlaps_of, tasks_of

RESULTS = Path(__file__).parents[2] / "results"
SECONDS = Path(__file__).with_name("seconds.csv")
BY = "source_accuracy"
ADAPTING = ["MCC", "BNM", "MMD", "DARN", "AdaBN"]
STANDARDISED = [f"{name}-domain" for name in ADAPTING]
DEEP = ["SRC", *ADAPTING, "SRC-domain", *STANDARDISED]
HOW = ["domain", "CORAL", "SA", "OT", "JDOT"]
LOGISTIC = [f"logistic-{how}" for how in HOW]
BOOSTING = [f"boosting-{how}" for how in HOW]
SHALLOW = [*LOGISTIC, *BOOSTING]
PLAIN = (
    dict.fromkeys([*ADAPTING, "SRC-domain", *STANDARDISED], "SRC")
    | dict.fromkeys(LOGISTIC, "logistic")
    | dict.fromkeys(BOOSTING, "boosting")
)
"""The row without adaptation of each row that adapts."""


def tasks_with_headroom(runs: pd.DataFrame, tasks: Iterable[str]) -> list[str]:
    """The tasks where the whole interval of JOINT less SRC is above zero."""
    headroom = gains_of(runs)["JOINT"]
    overlaps = overlaps_of(runs)
    found = []
    for task in tasks:
        _, low, _ = mean_over_tasks(headroom.loc[[task]], overlaps).ends
        if low > 0:
            found.append(task)
    return found


def best_shallow(runs: pd.DataFrame, tasks: Iterable[str]) -> str:
    """The shallow row that is best at the tuning seeds, over the tasks that have one, at the settings chosen there."""
    place = ["experiment", "method", "target"]
    tried = runs[runs["seed"].isin(TUNING) & runs["experiment"].isin([*tasks])]
    tried = tried[tried["method"].isin(["logistic", *LOGISTIC, "boosting", *BOOSTING])]
    means = tried.groupby([*place, "candidate"], observed=True)[[f"validator:{BY}", "score"]].mean().dropna()
    chosen = means.loc[means.groupby(place, observed=True)[f"validator:{BY}"].idxmax(), "score"]
    by_task = chosen.groupby(["experiment", "method"], observed=True).mean().unstack()
    return str(by_task.dropna(axis="columns").mean().idxmax())


def family(scores: Any, pairs: dict[str, str], overlaps: pd.Series[float]) -> pd.DataFrame:
    """The means of differences, a row less another, over the tasks that have both; Holm's correction over all rows."""
    rows, means = {}, {}
    for name, base in pairs.items():
        differences = (scores[name] - scores[base]).dropna()
        if differences.empty:
            continue  # no task recorded so far has this row
        means[name] = mean_over_tasks(differences, overlaps)
        each = differences.groupby(level="experiment").mean()
        tasks = Mean(each.mean(), each.sem(), len(each) - 1)
        rows[name] = {
            "less": base,
            "gain": interval_text(means[name].ends),
            "tasks": str(len(each)),
            "tasks as sample": interval_text(tasks.ends) if len(each) > 1 else "",
        }
    p_values = corrected(means)
    for name, mean in means.items():
        p = p_values[name]
        rows[name]["p"] = p_text(p)
        rows[name]["verdict"] = "undecided"
        if p <= LEVEL:
            rows[name]["verdict"] = "better" if mean.value > 0 else "worse"
    return pd.DataFrame.from_dict(rows, orient="index")


def corrected(means: Mapping[str, Mean]) -> pd.Series[float]:
    """The two-sided p of each mean after Holm's correction over all of them."""
    return holm(pd.Series({name: mean.p_values(0)[0] for name, mean in means.items()}))


def what_is_left(scores: Any, overlaps: pd.Series[float]) -> pd.DataFrame:
    """Each method's gain without and with domains standardised, and the difference of the two."""
    rows = {}
    for name in ADAPTING:
        before = scores[name] - scores["SRC"]
        after = scores[f"{name}-domain"] - scores["SRC-domain"]
        columns = {"gain": before, "gain, standardised": after, "difference": after - before}
        rows[name] = {title: interval_text(mean_over_tasks(of, overlaps).ends) for title, of in columns.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def gains_by_task(scores: Any, overlaps: pd.Series[float], shallow: str) -> pd.DataFrame:
    """The differences of Q1 to Q4 in each task, with intervals and without tests: `ROW less BASE` by task."""
    pairs = [("SRC-domain", "SRC")]
    pairs += [(name, "SRC") for name in ADAPTING]
    pairs += [(name, "SRC-domain") for name in STANDARDISED]
    pairs += [(name, PLAIN[name]) for name in SHALLOW]
    pairs += [(name, shallow) for name in DEEP]
    rows = {}
    for name, base in pairs:
        differences = (scores[name] - scores[base]).dropna()
        means = means_by_task(differences, overlaps)
        rows[f"{name} less {base}"] = {task: interval_text(mean.ends) for task, mean in means.items()}
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def means_by_task(differences: Any, overlaps: pd.Series[float]) -> dict[str, Mean]:
    """The mean of each task, with its error."""
    return {str(task): Mean(*row) for task, row in tasks_of(differences, overlaps).iterrows()}


def in_each_task(scores: Any, overlaps: pd.Series[float]) -> pd.DataFrame:
    """Of each task the best adapting row by its mean gain over its plain row, and which are above theirs after Holm."""
    rows = {}
    for task in dict.fromkeys(scores.index.get_level_values("experiment")):
        mine = scores.loc[[task]]
        means: dict[str, Mean] = {}
        for name, base in PLAIN.items():
            if name in mine and mine[name].notna().all():
                means[name] = means_by_task(mine[name] - mine[base], overlaps)[task]
        p_values = corrected(means)
        above = [name for name, mean in means.items() if mean.value > 0 and p_values[name] <= LEVEL]
        rows[task] = {
            "deep": best(means, DEEP),
            "shallow": best(means, SHALLOW),
            "above their plain row": ", ".join(above) or "none",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def best(means: dict[str, Mean], names: Iterable[str]) -> str:
    """The row with the largest mean gain, and its interval."""
    known = {name: means[name] for name in names if name in means}
    if not known:
        return ""
    name = max(known, key=lambda name: known[name].value)
    return f"{name} {interval_text(known[name].ends)}"


def median_seconds(tasks: Iterable[str]) -> pd.DataFrame:
    """The median seconds of a run that trains alone, by row and task; see `seconds.py`."""
    measured = pd.read_csv(SECONDS)
    measured = measured[measured["task"].isin([*tasks])]
    return measured.groupby(["method", "task"])["seconds"].median().unstack()


def cost(tasks: Iterable[str]) -> pd.Series[float]:
    """How many times longer than logistic regression a row trains alone; geometric mean over the tasks."""
    medians = median_seconds(tasks)
    ratios = medians / medians.loc["logistic"]
    return np.exp(np.log(ratios).mean(axis="columns"))


def read(runs: pd.DataFrame) -> Texts:
    """The tables of the study: of each task recorded whole, and means over those of them that have headroom."""
    chosen = select(runs, BY)
    recorded = recorded_tasks(chosen)
    chosen = chosen[chosen["experiment"].isin(recorded)]
    tasks = tasks_with_headroom(chosen, recorded)
    scores = scores_of(chosen)
    overlaps = overlaps_of(chosen)
    tables: Texts = {}
    named = {"recorded": ", ".join(recorded), "in the means": ", ".join(tasks) or "none"}
    if tasks:
        tables = means_of(runs, scores.loc[tasks], overlaps)
        shallow = tables["best shallow row"]["value"].item()
        tables["by task"] = gains_by_task(scores, overlaps, shallow)
        with_shallow = tasks_with_shallow_rows(scores.loc[tasks])
        if with_shallow:
            tables["over logistic"] = over_logistic(scores.loc[with_shallow], overlaps)
            named["of these with shallow rows"] = ", ".join(with_shallow)
    return {
        "tasks": pd.DataFrame({"value": named}),
        **tables,
        "Q5": in_each_task(scores, overlaps),
        "seconds": median_seconds(recorded).map("{:.2f}".format, na_action="ignore").fillna(""),
        "each task": scores.groupby(level="experiment").mean().T.map("{:.1f}".format),
    }


def tasks_with_shallow_rows(scores: Any) -> list[str]:
    """The tasks with shallow rows, in order."""
    tasks = dict.fromkeys(scores.index.get_level_values("experiment"))
    return [task for task in tasks if scores.loc[task, "logistic"].notna().all()]


def over_logistic(scores: Any, overlaps: pd.Series[float]) -> pd.DataFrame:
    """What each row gains over logistic regression and how many times longer it trains, over tasks with both."""
    tasks = [*dict.fromkeys(scores.index.get_level_values("experiment"))]
    others = [row for row in [*DEEP, *LOGISTIC, "boosting", *BOOSTING] if row in scores]
    gains = family(scores, dict.fromkeys(others, "logistic"), overlaps)
    gains = gains[gains["tasks"] == str(len(tasks))]  # means of other tasks cannot stand beside these
    times = cost(tasks).reindex(gains.index).map("{:.1f}".format)
    return gains[["gain", "tasks"]].assign(times=times)


def scores_of(chosen: pd.DataFrame) -> Any:
    """The score of each row by task, target and seed."""
    gains = gains_of(chosen)
    return gains.drop(columns="SRC").add(gains["SRC"], axis=0).assign(SRC=gains["SRC"])


def means_of(runs: pd.DataFrame, scores: Any, overlaps: pd.Series[float]) -> Texts:
    """The answers that are means over tasks."""
    with_shallow = tasks_with_shallow_rows(scores)
    shallow = best_shallow(runs, with_shallow)
    return {
        "best shallow row": pd.DataFrame({"value": {"at the tuning seeds": shallow}}),
        "Q1": family(scores, {"SRC-domain": "SRC"}, overlaps),
        "Q2": family(scores, dict.fromkeys(STANDARDISED, "SRC-domain"), overlaps),
        "Q2, beside": what_is_left(scores, overlaps),
        "Q3": family(scores, {name: PLAIN[name] for name in SHALLOW}, overlaps),
        "Q4": family(scores.loc[with_shallow], dict.fromkeys(DEEP, shallow), overlaps),
    }


if __name__ == "__main__":
    print_tables(read(mb.load_results(RESULTS / "registered-3")))
