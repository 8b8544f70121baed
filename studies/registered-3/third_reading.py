"""Reads the third registered measurement by its plan, README.md.

`PYTHONPATH=studies/registered:studies/registered-2 python studies/registered-3/third_reading.py` prints every number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import msda_bench as mb
from margins import LEVEL
from msda_bench.results.model_selection import select
from reading import SMALLEST_P, TUNING, Texts
from second_reading import Mean, holm, mean_over_tasks
from task_gains import gains_of, overlaps_of, tasks_of

RESULTS = Path(__file__).parents[2] / "results"
SECONDS = Path(__file__).with_name("seconds.csv")
BY = "source_accuracy"
ADAPTING = ["MCC", "BNM", "MMD", "DARN", "AdaBN"]
STANDARDISED = [f"{name}-domain" for name in ADAPTING]
DEEP = ["SRC", *ADAPTING, "SRC-domain", *STANDARDISED]
HOW = ["domain", "CORAL", "SA", "OT", "JDOT"]
LOGISTIC, BOOSTING = ([f"{plain}-{how}" for how in HOW] for plain in ("logistic", "boosting"))
PLAIN = (
    dict.fromkeys([*ADAPTING, "SRC-domain", *STANDARDISED], "SRC")
    | dict.fromkeys(LOGISTIC, "logistic")
    | dict.fromkeys(BOOSTING, "boosting")
)
"""The row without adaptation of each row that adapts."""


def recorded_tasks(runs: pd.DataFrame) -> list[str]:
    """The tasks of which every chosen run is recorded."""
    is_recorded = runs["status"].isin(["ok", "diverged"]).groupby(runs["experiment"].astype(str)).all()
    return [*is_recorded.index[is_recorded]]


def tasks_with_headroom(runs: pd.DataFrame, tasks: Iterable[str]) -> list[str]:
    """Those of some tasks where the interval of JOINT less SRC is not below zero or around it."""
    gains, overlaps = gains_of(runs), overlaps_of(runs)
    return [task for task in tasks if mean_over_tasks(gains.loc[[task], "JOINT"], overlaps).ends[1] > 0]


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
        beside = interval(tasks.ends) if len(each) > 1 else ""
        rows[name] = {
            "less": base,
            "gain": interval(means[name].ends),
            "tasks": str(len(each)),
            "tasks as sample": beside,
        }
    corrected = holm(pd.Series({name: mean.p_values(0)[0] for name, mean in means.items()}))
    for name, p in corrected.items():
        rows[str(name)]["p"] = f"{p:.3f}" if p >= SMALLEST_P else "< 0.001"
        above = "better" if means[str(name)].value > 0 else "worse"
        rows[str(name)]["verdict"] = above if p <= LEVEL else "undecided"
    return pd.DataFrame.from_dict(rows, orient="index")


def what_is_left(scores: Any, overlaps: pd.Series[float]) -> pd.DataFrame:
    """Each method's gain without and with domains standardised, and the difference of the two."""
    rows = {}
    for name in ADAPTING:
        before = scores[name] - scores["SRC"]
        after = scores[f"{name}-domain"] - scores["SRC-domain"]
        columns = {"gain": before, "gain, standardised": after, "difference": after - before}
        rows[name] = {title: interval(mean_over_tasks(of, overlaps).ends) for title, of in columns.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def gains_by_task(scores: Any, overlaps: pd.Series[float], shallow: str) -> pd.DataFrame:
    """The differences of Q1 to Q4 in each task, with intervals and without tests: `ROW less BASE` by task."""
    pairs = [
        ("SRC-domain", "SRC"),
        *((name, "SRC") for name in ADAPTING),
        *((name, "SRC-domain") for name in STANDARDISED),
    ]
    pairs += [(name, PLAIN[name]) for name in [*LOGISTIC, *BOOSTING]]
    pairs += [(name, shallow) for name in DEEP]
    rows = {}
    for name, base in pairs:
        differences = (scores[name] - scores[base]).dropna()
        gains = tasks_of(differences, overlaps)
        rows[f"{name} less {base}"] = {
            task: interval(Mean(row["mean"], row["error"], row["freedom"]).ends) for task, row in gains.iterrows()
        }
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def in_each_task(scores: Any, overlaps: pd.Series[float]) -> pd.DataFrame:
    """Of each task the best adapting row by its mean gain over its plain row, and which are above theirs after Holm."""
    rows = {}
    for task in dict.fromkeys(scores.index.get_level_values("experiment")):
        mine = scores.loc[[task]]
        gains = {
            name: mine[name] - mine[base]
            for name, base in PLAIN.items()
            if mine.get(name, mine["SRC"] * np.nan).notna().all()
        }
        of = {name: tasks_of(gain, overlaps).iloc[0] for name, gain in gains.items()}
        means = {name: Mean(row["mean"], row["error"], row["freedom"]) for name, row in of.items()}
        corrected = holm(pd.Series({name: mean.p_values(0)[0] for name, mean in means.items()}))
        above = [name for name, mean in means.items() if mean.value > 0 and corrected[name] <= LEVEL]
        rows[task] = {kind: best(means, names) for kind, names in (("deep", DEEP), ("shallow", [*LOGISTIC, *BOOSTING]))}
        rows[task]["above their plain row"] = ", ".join(above) or "none"
    return pd.DataFrame.from_dict(rows, orient="index")


def best(means: dict[str, Mean], names: Iterable[str]) -> str:
    """The row with the largest mean gain, and its interval."""
    known = {name: means[name] for name in names if name in means}
    if not known:
        return ""
    name = max(known, key=lambda name: known[name].value)
    return f"{name} {interval(known[name].ends)}"


def seconds(tasks: Iterable[str]) -> pd.DataFrame:
    """The median seconds of a run that trains alone, by row and task; see `seconds.py`."""
    measured = pd.read_csv(SECONDS)
    medians = measured[measured["task"].isin([*tasks])].groupby(["method", "task"])["seconds"].median().unstack()
    return medians.map("{:.2f}".format, na_action="ignore").fillna("")


def cost(tasks: Iterable[str]) -> pd.Series[float]:
    """How many times longer than logistic regression a row trains alone; geometric mean over the tasks."""
    measured = pd.read_csv(SECONDS)
    medians = measured.groupby(["method", "task"])["seconds"].median().unstack()[[*tasks]]
    ratios = medians / medians.loc["logistic"]
    return np.exp(np.log(ratios).mean(axis="columns"))


def read(runs: pd.DataFrame) -> Texts:
    """The tables of the study: of each task recorded whole, and means over those of them that have headroom."""
    chosen = select(runs, BY)
    recorded = recorded_tasks(chosen)
    chosen = chosen[chosen["experiment"].isin(recorded)]
    tasks = tasks_with_headroom(chosen, recorded)
    scores, overlaps = scores_of(chosen), overlaps_of(chosen)
    named = {"recorded": ", ".join(recorded), "in the means": ", ".join(tasks) or "none"}
    means = means_of(runs, scores.loc[tasks], overlaps) if tasks else {}
    with_shallow = [task for task in tasks if scores.loc[task, "logistic"].notna().all()]
    if with_shallow:
        others = [row for row in [*DEEP, *LOGISTIC, "boosting", *BOOSTING] if row in scores]
        gains = family(scores.loc[with_shallow], dict.fromkeys(others, "logistic"), overlaps)
        gains = gains[gains["tasks"] == str(len(with_shallow))]  # means of other tasks cannot stand beside these
        times = cost(with_shallow).reindex(gains.index).map("{:.1f}".format)
        named["of these with shallow rows"] = ", ".join(with_shallow)
        means["over logistic"] = gains[["gain", "tasks"]].assign(times=times)
    return {
        "tasks": pd.DataFrame({"value": named}),
        **means,
        **({"by task": gains_by_task(scores, overlaps, means["best shallow row"]["value"].item())} if tasks else {}),
        "Q5": in_each_task(scores, overlaps),
        "seconds": seconds(recorded),
        "each task": scores.groupby(level="experiment").mean().T.map("{:.1f}".format),
    }


def scores_of(chosen: pd.DataFrame) -> Any:
    """The score of each row by task, target and seed."""
    gains = gains_of(chosen)
    return gains.drop(columns="SRC").add(gains["SRC"], axis=0).assign(SRC=gains["SRC"])


def means_of(runs: pd.DataFrame, scores: Any, overlaps: pd.Series[float]) -> Texts:
    """The answers that are means over tasks."""
    tasks = [*dict.fromkeys(scores.index.get_level_values("experiment"))]
    with_shallow = [task for task in tasks if scores.loc[task, "logistic"].notna().all()]
    shallow = best_shallow(runs, with_shallow)
    return {
        "best shallow row": pd.DataFrame({"value": {"at the tuning seeds": shallow}}),
        "Q1": family(scores, {"SRC-domain": "SRC"}, overlaps),
        "Q2": family(scores, dict.fromkeys(STANDARDISED, "SRC-domain"), overlaps),
        "Q2, beside": what_is_left(scores, overlaps),
        "Q3": family(scores, {name: PLAIN[name] for name in [*LOGISTIC, *BOOSTING]}, overlaps),
        "Q4": family(scores.loc[with_shallow], dict.fromkeys(DEEP, shallow), overlaps),
    }


def interval(numbers: tuple[float, float, float]) -> str:
    """A mean with its 95 % interval."""
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*numbers)


if __name__ == "__main__":
    for title, table in read(mb.load_results(RESULTS / "registered-3")).items():
        sys.stdout.write(f"## {title}\n\n{table.to_markdown(disable_numparse=True)}\n\n")
