"""Figures in the page's own units and colours: one unit is a pixel of the page, colours are names that it resolves."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msda_bench.report.html.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010101"
MUTED = "#020202"
LINE = "#030303"
PAPER = "#040404"
"""Colours that stand for the page's own, whatever its theme."""
ROLES = {INK: "currentColor", MUTED: "var(--muted)", LINE: "var(--line)", PAPER: "var(--paper)"}
WIDTH = 380
FONT = 11
LABEL = 16
"""Characters of a name in a figure; the rest shows when pointed at."""
_TICK_GAP = 4


def hue(number: int) -> str:
    """The colour that stands for --hue-N."""
    return f"#0500{number:02x}"


def resolve(colour: str) -> str:
    """What the page writes for a colour of a figure."""
    if colour in ROLES:
        return ROLES[colour]
    return f"var(--hue-{int(colour[-2:], 16)})" if colour.startswith("#0500") else colour


@dataclass
class Canvas:
    """A figure being drawn.

    Attributes:
        figure: matplotlib's.
        width: in pixels.
        height: in pixels.
        texts: what stands for each text until the figure is SVG: matplotlib sees no stranger's name, which might hold
            its mathematics, control characters or letters that its fonts lack.
        tips: by series, what a reader sees who points at its marks, in the order of the marks.
    """

    figure: Figure
    width: float
    height: float
    texts: dict[str, str] = field(default_factory=dict)
    tips: dict[str, list[str]] = field(default_factory=dict)

    def say(self, text: str) -> str:
        """A stand-in for a text, to be given to matplotlib."""
        token = f"@{len(self.texts)}@"
        self.texts[token] = text
        return token

    def axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Axes with margins in pixels."""
        inside = (self.width - left - right, self.height - top - bottom)
        axes = self.figure.add_axes(
            (left / self.width, bottom / self.height, inside[0] / self.width, inside[1] / self.height), facecolor="none"
        )
        for side in axes.spines.values():
            side.set_visible(False)
        axes.tick_params(length=0, pad=_TICK_GAP, colors=MUTED, labelsize=FONT)
        return axes

    def mark(self, artist: Any, series: int, tips: list[str] | None = None) -> None:
        """Ties what was drawn to a method, with a line for each mark."""
        name = f"series-{series}" if tips is None else f"series-{series}-{len(self.tips)}"
        artist.set_gid(name)
        if tips is not None:
            self.tips[name] = tips


def room_for(names: Iterable[str]) -> float:
    """Pixels that the longest of some names takes at the side of a figure."""
    return max((sum(map(_advance, plain(name, LABEL))) for name in names), default=0.0) + 2 * _TICK_GAP


def _advance(character: str) -> float:
    """Pixels that a character takes, about: the reader's font is not known here."""
    if unicodedata.east_asian_width(character) in "WF":
        return FONT
    if character in "mwMW@%…":
        return 0.87 * FONT
    return (0.69 if character.isupper() else 0.57) * FONT


def label_rows(axes: Axes, places: Iterable[float], labels: Iterable[str]) -> None:
    """Writes labels at the left of an axes' rows; as ticks, of five artists each, they would take longer."""
    axes.set_yticks([])
    across = axes.get_yaxis_transform()
    for place, label in zip(places, labels, strict=True):
        offset = (-_TICK_GAP, 0)
        axes.annotate(label, (0, place), offset, across, "offset points", ha="right", va="center_baseline", color=INK)


def label_below(axes: Axes, text: str) -> None:
    """Names the horizontal axis, at a place that needs no measuring of tick labels, which takes long."""
    axes.annotate(
        text, (0.5, 0), (0, -2 * FONT - 2 * _TICK_GAP), "axes fraction", "offset points", ha="center", color=MUTED
    )


def head_above(axes: Axes, text: str) -> None:
    """Names a plot at its upper left corner."""
    axes.annotate(text, (0, 1), (0, _TICK_GAP), "axes fraction", "offset points", color=MUTED)


def new_canvas(height: float, width: float = WIDTH) -> Canvas:
    """An empty figure."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72), facecolor="none", edgecolor="none")
    FigureCanvasSVG(figure)  # without pyplot, which would pick a window system and keep global state
    return Canvas(figure, width, height)


@contextmanager
def drawing() -> Iterator[None]:
    """The settings that figures are drawn under: the same records give the same bytes, and text stays text."""
    from matplotlib import rc, rc_context, rcdefaults

    with rc_context():
        rcdefaults()  # whatever the reader's own settings are
        rc("svg", hashsalt="msda-bench", fonttype="none")
        rc("text", parse_math=False)
        rc("font", size=FONT)
        rc("path", simplify=False)
        rc("image", composite_image=False)
        rc("axes", titley=1.0)  # or each drawing looks for a place for a title that is not there
        rc("axes.formatter", useoffset=False)
        yield
