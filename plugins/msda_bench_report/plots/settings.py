"""Draws how settings are selected: the regret of each criterion, and the score as a function of a parameter."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pandas as pd

from msda_bench.results.criteria import ALL
from msda_bench.results.frame import AVERAGE
from msda_bench.suite.plan import ORACLE
from msda_bench_report.plots import parts
from msda_bench_report.plots.parts import BLUE, KINDS, ROW, WIDTH, Chart, layered, tips


def regrets(criteria: str | Path | pd.DataFrame) -> Chart:
    """Draws the regret of selecting with each criterion, mean over methods with its standard error.

    Args:
        criteria: a result folder, or a frame from `criteria`; the mean over targets, or the only target, is drawn.

    Raises:
        ValueError: no criterion has a regret.
    """
    criteria = KINDS["criteria"].take(criteria)
    whole = criteria[(criteria["method"] == ALL) & (criteria["criterion"] != ORACLE)]
    several = whole.groupby("experiment")["target"].transform("nunique") > 1
    rows = whole[((whole["target"] == AVERAGE) | ~several) & whole["regret"].notna()]
    return parts.panels("criteria", rows.drop(columns="method"), ("experiment",), _regrets)


def _regrets(criteria: pd.DataFrame) -> Chart:
    error = criteria["regret_standard_error"].astype(float).fillna(0)
    rows = criteria[["criterion", "mean", "regret", "regret_standard_error", "rank_correlation"]]
    rows = rows.assign(low=criteria["regret"] - error, high=criteria["regret"] + error)
    base = alt.Chart().encode(y=parts.rows_of("criterion", "regret", labelLimit=170))
    bars = base.mark_rule(strokeWidth=3, color=BLUE)
    dots = base.mark_point(filled=True, size=80, opacity=1, color=BLUE)
    seen = tips("criterion", "mean regret regret_standard_error rank_correlation")
    bars = bars.encode(x=alt.X("low:Q", title="regret to the oracle"), x2=alt.X2("high:Q"))
    return layered(rows, bars, dots.encode(x=alt.X("regret:Q"), tooltip=seen), width=2 * WIDTH, height=alt.Step(ROW))


def sensitivity(candidates: str | Path | pd.DataFrame) -> Chart:
    """Draws the mean score on the target of every candidate by each of its parameters, one panel per parameter.

    Args:
        candidates: a result folder, or a frame from `sensitivity`: `experiment, method, parameter, value, score`.

    Raises:
        ValueError: the frame is empty.
    """
    return parts.panels("candidates", KINDS["candidates"].take(candidates), ("experiment", "parameter"), _sensitivity)


def _sensitivity(rows: pd.DataFrame) -> Chart:
    up = alt.Y("score:Q", title="score on the target", scale=alt.Scale(zero=False, padding=8))
    base = alt.Chart().encode(x=alt.X("value:Q", title=None, scale=parts.scale_of(rows["value"], padding=8)))
    look = parts.by_method(parts.names(rows, "method"))
    dots = base.mark_point(filled=True, size=40)
    dots = dots.encode(y=up, color=look["color"], tooltip=tips("method", "value score"))
    line = base.mark_line(strokeWidth=1.5).encode(y=alt.Y("mean(score):Q"), **look)
    marks = rows[["method", "value", "score"]], dots, line
    return layered(*marks, steps=parts.only_shown(), width=WIDTH, height=190)
