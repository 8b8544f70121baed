"""Charts of selecting settings: what each criterion costs, and how the score depends on a parameter."""

from __future__ import annotations

import altair as alt
import pandas as pd

from msda_bench.results.plots.parts import ROW, WIDTH, Chart, colours, data, names, only_shown, panels, scale_of


def regrets(criteria: pd.DataFrame) -> Chart:
    """What is lost on the target by selecting with each criterion, mean over methods with its standard error.

    Args:
        criteria: the columns of selection.csv; the rows of `all methods` and of the mean over targets are drawn.
    """
    whole = criteria[(criteria["method"] == "all methods") & (criteria["criterion"] != "oracle")]
    several = whole.groupby("experiment")["target"].transform("nunique") > 1
    return panels(whole[(whole["target"] == "average") | ~several], ("experiment",), _regrets)


def _regrets(rows: pd.DataFrame) -> Chart:
    found = rows[["criterion", "mean", "regret", "regret_standard_error", "rank_correlation"]]
    found = found.assign(
        low=found["regret"] - found["regret_standard_error"].fillna(0),
        high=found["regret"] + found["regret_standard_error"].fillna(0),
    )
    axis = alt.Axis(title=None, labelLimit=160, ticks=False, domain=False)
    up = alt.Y("criterion:N", sort=alt.EncodingSortField(field="regret", op="min", order="ascending"), axis=axis)
    tips = [
        "criterion:N",
        *(
            alt.Tooltip(f"{name}:Q", format=".4~g")
            for name in ("mean", "regret", "regret_standard_error", "rank_correlation")
        ),
    ]
    base = alt.Chart()
    bars = base.mark_rule(strokeWidth=3, color="#2580bd").encode(
        x=alt.X("low:Q", title="regret to the oracle"), x2="high:Q", y=up
    )
    dots = base.mark_point(filled=True, size=80, opacity=1, color="#2580bd").encode(x="regret:Q", y=up, tooltip=tips)
    return alt.layer(bars, dots, data=data(found)).properties(width=2 * WIDTH, height=alt.Step(ROW))


def sensitivity(candidates: pd.DataFrame) -> Chart:
    """The mean score on the target of every candidate by one of its parameters; a panel a parameter.

    Args:
        candidates: `experiment, method, parameter, value, score`, a row for each candidate and each number it sets.
    """
    return panels(candidates, ("experiment", "parameter"), _sensitivity)


def _sensitivity(rows: pd.DataFrame) -> Chart:
    methods = names(rows, "method")
    base = alt.Chart()
    across = alt.X("value:Q", title=None, scale=scale_of(rows["value"], padding=8))
    up = alt.Y("score:Q", title="score on the target", scale=alt.Scale(zero=False, padding=8))
    colour = colours(methods)
    dots = base.mark_point(filled=True, size=40).encode(
        x=across, y=up, color=colour, tooltip=["method:N", "value:Q", alt.Tooltip("score:Q", format=".4~g")]
    )
    line = base.mark_line(strokeWidth=1.5).encode(x=across, y="mean(score):Q", color=colour)
    found = rows[["method", "value", "score"]]
    return only_shown(alt.layer(dots, line, data=data(found))).properties(width=WIDTH, height=190)
