"""Draws how the inputs of domains differ: two principal components, coloured by domain."""

from __future__ import annotations

import numpy as np
import pandas as pd

from msda_bench.store.shift import Shift
from msda_bench_report.plots import parts
from msda_bench_report.plots.parts import GREY, HUES, WIDTH, layered, tips
from msda_bench_report.plots.vega import Layer, Spec, channel

MOST_COLOURED = 14
"""The number of domains with a colour and a shape of their own: those farthest from the others."""
_MOST_NAMED = 8
"""The number of domains up to which names stand beside their middles."""
OTHERS = "other domains"
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left")


def middles(shift: Shift) -> pd.DataFrame:
    """Where each domain lies.

    Returns:
        A row for each domain, the one farthest from the others first: `domain`, `rows` (its points), `first` and
        `second` (the mean of its points) and `distance`, of that from the mean of the other domains' means, as a
        multiple of the spread of rows within domains (the root of the mean squared distance from their mean).
    """
    points = [np.asarray(cloud.points, float) for cloud in shift.clouds]
    centres = np.array([some.mean(axis=0) for some in points])
    from_centre = np.concatenate([some - centre for some, centre in zip(points, centres, strict=True)])
    within = (from_centre**2).sum(axis=1).mean()
    others = (centres.sum(axis=0) - centres) / (len(centres) - 1)
    away = np.sqrt(((centres - others) ** 2).sum(axis=1) / max(within, 1e-300))
    frame = pd.DataFrame(
        {
            "domain": [cloud.domain for cloud in shift.clouds],
            "rows": [len(some) for some in points],
            "first": centres[:, 0],
            "second": centres[:, 1],
            "distance": away,
        }
    )
    return frame.sort_values("distance", ascending=False, kind="stable")


def shift(picture: Shift) -> Spec:
    """Draws each row of a picture as a point, and the middle of each domain as a large mark."""
    clouds = []
    for cloud in picture.clouds:
        points = pd.DataFrame(cloud.points, columns=["first", "second"])
        clouds.append(points.assign(domain=cloud.domain, rows=0, distance=float("nan"), is_middle=False))
    centres = middles(picture).assign(is_middle=True)
    frame = pd.concat([*clouds, centres])
    is_coloured = frame["domain"].isin(centres["domain"].head(MOST_COLOURED))
    frame = frame.assign(group=frame["domain"].where(is_coloured, OTHERS))
    is_named = len(centres) <= _MOST_NAMED
    return parts.panels("shift", frame, (), lambda frame: _shift(frame, picture, is_named=is_named))


def _shift(frame: pd.DataFrame, picture: Shift, *, is_named: bool) -> Spec:
    domains = sorted(parts.names(frame, "group"), key=lambda name: name == OTHERS)
    hues = [GREY if name == OTHERS else HUES[place % len(HUES)] for place, name in enumerate(domains)]
    # As many shapes as colours, and the second round begins with another one, so that no pair comes twice.
    shapes = [_SHAPES[(place + place // len(HUES)) % len(_SHAPES)] for place in range(len(domains))]
    below = parts.legend(3, symbolOpacity=1)
    look = {
        "color": channel("group:N", legend=below, scale={"domain": domains, "range": hues}),
        "shape": channel("group:N", legend=below, scale={"domain": domains, "range": shapes}),
    }
    scale = {"zero": False, "nice": False, "padding": 12}
    first, second = (f"{100 * share:.0f} % of the variance" for share in picture.explained)
    across = channel("first:Q", title=f"component 1, {first}", scale=scale)
    up = channel("second:Q", title=f"component 2, {second}", scale=scale)
    base = Layer().encode(x=across, y=up)
    points = base.filter("!datum.is_middle").dots(16, opacity=0.45).encode(**look)
    middle = base.filter("datum.is_middle")
    centres = middle.dots(190, opacity=1).encode(**look, tooltip=tips("domain", "rows distance"))
    marks = [points, centres]
    if is_named:
        marks.append(middle.draw("text", dy=-13, fontWeight=600).encode(text=channel("domain:N")))
    return layered(frame, *marks, width=WIDTH, height=260)
