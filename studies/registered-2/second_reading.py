"""Reads the second registered measurement by its plan, README.md, beside the first.

`PYTHONPATH=studies/registered python studies/registered-2/second_reading.py` prints every number. Tables hold texts, as
pages have them; `numbers` of the first reading gives each a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import margins
import msda_bench as mb
from margins import BETTER, BETTER_BY_MORE, EQUIVALENT, LEVEL, UNDECIDED, WORSE, margin_of
from msda_bench.results.model_selection import select
from reading import MARKS, Texts, print_tables
from study import TRACKS, counted_tasks, interval_text, p_text
from task_gains import PRIMARY, gains_of, overlaps_of, tasks_of

RESULTS = Path(__file__).parents[2] / "results"
NEW = ["AdaBN", "pass-through", "DARN-gamma", "uniform", "ensemble", "best-single"]
ADAPTING = [*PRIMARY, "DARN-gamma"]
FAMILIES = {
    "over SRC": (NEW, "SRC"),
    "over AdaBN": (ADAPTING, "AdaBN"),
    "over pass-through": (ADAPTING, "pass-through"),
    "over uniform": (["DARN-gamma"], "uniform"),
    "over best-single": (["SRC", "uniform", "DARN-gamma", "ensemble"], "best-single"),
}
"""The questions: methods, and what each of them is compared with."""


class Mean(NamedTuple):
    """A mean over tasks of equal weight, its standard error, and Welch's and Satterthwaite's degrees of freedom."""

    value: float
    error: float
    freedom: float

    @property
    def ends(self) -> tuple[float, float, float]:
        """The mean with its 95 % interval."""
        return (self.value, *stats.t.interval(1 - LEVEL, self.freedom, self.value, self.error))

    def p_values(self, margin: float) -> tuple[float, float, float]:
        """Two-sided of 0, two-sided of being beyond the margin, and of equivalence (TOST)."""

        def above(mean: float, bound: float) -> float:
            return float(stats.t.sf((mean - bound) / self.error, self.freedom))

        both = self.value, -self.value
        beyond = 2 * min(above(mean, margin) for mean in both)
        return 2 * above(abs(self.value), 0), min(1.0, beyond), max(above(mean, -margin) for mean in both)


def mean_over_tasks(differences: Any, overlaps: pd.Series[float]) -> Mean:
    """The mean of differences by (task, seed).

    Args:
        differences: in points.
        overlaps: as `tasks_of` has them.
    """
    of = tasks_of(differences, overlaps)
    variances = of["error"] ** 2
    freedom = variances.sum() ** 2 / (variances**2 / of["freedom"]).sum()
    return Mean(of["mean"].mean(), np.sqrt(variances.sum()) / len(of), freedom)


def holm(p_values: pd.Series[float]) -> pd.Series[float]:
    """Holm's correction."""
    return pd.Series(margins.holm([*p_values]), p_values.index)


def verdicts(means: Mapping[str, Mean], margin: float) -> tuple[pd.Series[float], dict[str, str]]:
    """The corrected p-values of a family, and each one's verdict."""
    columns = ["differs", "beyond", "equivalent"]
    p = pd.DataFrame({name: mean.p_values(margin) for name, mean in means.items()}, columns).T.apply(holm)
    found = {}
    for name, mean in means.items():
        differs, beyond, equivalent = p.loc[name] <= LEVEL
        if beyond and mean.value > 0:
            found[name] = BETTER_BY_MORE
        elif equivalent:
            found[name] = EQUIVALENT
        elif not differs:
            found[name] = UNDECIDED
        else:
            found[name] = BETTER if mean.value > 0 else WORSE
    return p["differs"], found


def compared(gains: Any, family: str, overlaps: pd.Series[float], margin: float) -> pd.DataFrame:
    """A question's table: the registered verdict by the variance that allows for shared examples; others beside.

    Args:
        gains: over SRC by (task, seed) and method, of the tasks that count.
        family: one of `FAMILIES`.
        overlaps: as `mean_over_tasks` has them.
        margin: in points.
    """
    names, base = FAMILIES[family]
    over = gains.assign(SRC=0.0)
    differences = {name: over[name] - over[base] for name in names}
    means = {name: mean_over_tasks(of, overlaps) for name, of in differences.items()}
    free = {name: mean_over_tasks(of, 0 * overlaps) for name, of in differences.items()}
    p, found = verdicts(means, margin)
    _, former = verdicts(free, margin)
    rows = {}
    for name, of in differences.items():
        each = of.groupby(level="experiment").mean()
        tasks = Mean(each.mean(), each.sem(), len(each) - 1)
        rows[name] = {
            "gain": interval_text(means[name].ends),
            "p": p_text(p[name]),
            "verdict": found[name],
            "independent seeds": f"{interval_text(free[name].ends)} {MARKS[former[name]]}",
            "tasks as the sample": interval_text(tasks.ends),
            **each.map("{:+.1f}".format).to_dict(),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def read(first: pd.DataFrame, second: pd.DataFrame) -> Texts:
    """The tables of the study, from the runs of `registered` and of `registered-2`, over the tasks recorded whole."""
    counted = counted_tasks(select(first, TRACKS["B"]))
    tables: Texts = {}
    for track in ("A", "B"):
        old = select(first, TRACKS[track])
        new = select(second, TRACKS[track])
        recorded = recorded_tasks(new)
        new = new[new["experiment"].isin(recorded)]
        gains = gains_of(new)[[*NEW, "JOINT"]].join(gains_of(old)[PRIMARY])
        tasks = [task for task in recorded if task in counted]
        margin = round(float(np.mean([margin_of(task) for task in tasks])), 2)
        overlaps = overlaps_of(new).loc[tasks]
        for name in FAMILIES:
            tables[f"{name}, {track}"] = compared(gains.loc[tasks], name, overlaps, margin)
        tables[f"each task, {track}"] = gains.groupby(level="experiment").mean().map("{:+.1f}".format)
        whole = {"tasks": str(len(tasks)), "which": ", ".join(tasks), "margin": f"{margin:.2f}"}
        tables[f"whole, {track}"] = pd.DataFrame({"value": whole})
    return tables


def recorded_tasks(chosen: pd.DataFrame) -> list[str]:
    """The tasks of which every chosen run is recorded."""
    is_recorded = chosen["status"].isin(["ok", "diverged"]).groupby(chosen["experiment"].astype(str)).all()
    return [*is_recorded.index[is_recorded]]


if __name__ == "__main__":
    print_tables(read(mb.load_results(RESULTS / "registered"), mb.load_results(RESULTS / "registered-2")))
