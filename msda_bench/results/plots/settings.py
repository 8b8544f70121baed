"""Charts of selecting settings: what each criterion costs, and how the score depends on a parameter."""

from __future__ import annotations

import altair as alt
import pandas as pd

from msda_bench.results.frame import AVERAGE
from msda_bench.results.plots import parts
from msda_bench.results.plots.parts import BLUE, ROW, WIDTH, Chart, layered, tips
from msda_bench.suite.plan import ORACLE


def regrets(criteria: pd.DataFrame) -> Chart:
    """What is lost on the target by selecting with each criterion, mean over methods with its standard error.

    Args:
        criteria: of `criteria`; the rows of all methods and of the mean over targets, or the only target, are drawn.

    Raises:
        ValueError: there are no such rows.
    """
    whole = criteria[(criteria["method"] == "all methods") & (criteria["criterion"] != ORACLE)]
    several = whole.groupby("experiment")["target"].transform("nunique") > 1
    rows = whole[((whole["target"] == AVERAGE) | ~several) & whole["regret"].notna()]
    return parts.panels(rows.drop(columns="method"), ("experiment",), _regrets)


def _regrets(rows: pd.DataFrame) -> Chart:
    found = rows[["criterion", "mean", "regret", "regret_standard_error", "rank_correlation"]]
    error = found["regret_standard_error"].astype(float).fillna(0)
    found = found.assign(low=found["regret"] - error, high=found["regret"] + error)
    up = parts.rows_of("criterion", "regret", labelLimit=170)
    seen = tips("criterion", "mean regret regret_standard_error rank_correlation")
    bars = alt.Chart().mark_rule(strokeWidth=3, color=BLUE)
    bars = bars.encode(x=alt.X("low:Q", title="regret to the oracle"), x2="high:Q", y=up)
    dots = alt.Chart().mark_point(filled=True, size=80, opacity=1, color=BLUE).encode(x="regret:Q", y=up, tooltip=seen)
    return layered(found, bars, dots).properties(width=2 * WIDTH, height=alt.Step(ROW))


def sensitivity(candidates: pd.DataFrame) -> Chart:
    """The mean score on the target of every candidate by one of its parameters; a panel a parameter.

    Args:
        candidates: of `sensitivity`: `experiment, method, parameter, value, score`.

    Raises:
        ValueError: there are none.
    """
    return parts.panels(candidates, ("experiment", "parameter"), _sensitivity)


def _sensitivity(rows: pd.DataFrame) -> Chart:
    across = alt.X("value:Q", title=None, scale=parts.scale_of(rows["value"], padding=8))
    up = alt.Y("score:Q", title="score on the target", scale=alt.Scale(zero=False, padding=8))
    look = parts.by_method(parts.names(rows, "method"))
    dots = alt.Chart().mark_point(filled=True, size=40)
    dots = dots.encode(x=across, y=up, color=look["color"], tooltip=tips("method", "value score"))
    line = alt.Chart().mark_line(strokeWidth=1.5).encode(x=across, y="mean(score):Q", **look)
    layers = layered(rows[["method", "value", "score"]], dots, line).transform_filter(parts.SHOWN)
    return layers.properties(width=WIDTH, height=190)
