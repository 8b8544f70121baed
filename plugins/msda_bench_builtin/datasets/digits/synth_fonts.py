"""A stand-in for Synthetic Digits, rendered from fonts by the same recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.digits.readers import CLASSES, SIDE
from msda_bench_builtin.datasets.features import Draws
from msda_bench_builtin.datasets.glyphs import bilinear, font_path, fonts_identity, glyphs

_FONTS = (
    "DejaVuSans.ttf",
    "DejaVuSans-Bold.ttf",
    "DejaVuSans-Oblique.ttf",
    "DejaVuSans-BoldOblique.ttf",
    "DejaVuSerif.ttf",
    "DejaVuSerif-Bold.ttf",
    "DejaVuSerif-Italic.ttf",
    "DejaVuSerif-BoldItalic.ttf",
    "DejaVuSansMono.ttf",
    "DejaVuSansMono-Bold.ttf",
    "DejaVuSansMono-Oblique.ttf",
    "STIXGeneral.ttf",
    "STIXGeneralBol.ttf",
    "STIXGeneralItalic.ttf",
    "STIXGeneralBolIta.ttf",
    "cmr10.ttf",
    "cmss10.ttf",
    "cmtt10.ttf",
    "cmb10.ttf",
    "cmti10.ttf",
)
_HEIGHT = 48
"""Pixels of a clean capital H; an image shows its digits at a third to two thirds of this."""
_SQUARE = 80
"""Pixels of a clean digit's square, including margins for its outline."""
_OUTLINE = 3
"""Pixels that an outline adds to a clean digit on each side."""
_AT_ONCE = 500
"""Images that share a stream of random numbers, so that a larger number of images begins with the same ones."""
_COLOURS = (3, 1, 1)
_ONE = (1, 1, 1)
"""Shapes of what is drawn for an image: a colour, or one number for all channels and pixels."""


@dataclass(frozen=True, eq=False)
class _Clean:
    """The digits 0..9 of every font, font by font.

    Attributes:
        ink: (fonts * 10, square, square), 1 for ink.
        outlined: the same, thicker.
        width: (fonts * 10,) pixels of the ink.
    """

    ink: Array
    outlined: Array
    width: Array


def render(count: int, identity: tuple[str | int, ...]) -> Mapping[str, Array]:
    """Pictures of one to three digits, each labelled with the middle one.

    After Ganin and Lempitsky, "Unsupervised Domain Adaptation by Backpropagation" (ICML 2015), section 4.1: one-,
    two- and three-digit numbers of varied font, position, orientation, background and stroke colours, and blur.

    Returns:
        `x` (count, 3, 32, 32) uint8 and `y` (count,) int64.

    Raises:
        DataError: the installed matplotlib does not have a font.
    """
    clean = _clean()
    labels = np.arange(count) % CLASSES
    images = np.empty((count, 3, SIDE, SIDE), np.uint8)
    for start in range(0, count, _AT_ONCE):
        some = labels[start : start + _AT_ONCE]
        images[start : start + _AT_ONCE] = _pictures(clean, some, Draws((*identity, start)))
    return {"x": images, "y": labels}


def identity() -> list[str]:
    """Everything besides this code on which the pictures depend."""
    return fonts_identity(_FONTS)


def _clean() -> _Clean:
    from scipy.ndimage import grey_dilation, uniform_filter

    figures = "".join(map(str, range(CLASSES)))
    sharp = np.concatenate([glyphs(font_path(name), _HEIGHT, _SQUARE, figures) for name in _FONTS])
    across = np.arange(-_OUTLINE, _OUTLINE + 1)
    disc = across[:, None] ** 2 + across**2 <= _OUTLINE**2
    thick = grey_dilation(sharp, footprint=disc[None])
    # Averaged over the pixels that one pixel of a picture covers, so that thin strokes are not missed.
    ink = uniform_filter(sharp, (0, 2, 2))
    outlined = uniform_filter(thick, (0, 2, 2))
    return _Clean(ink, outlined, sharp.any(1).sum(1))


def _pictures(clean: _Clean, labels: Array, draws: Draws) -> Array:
    from scipy.ndimage import gaussian_filter

    n = len(labels)
    between = partial(_between, draws, n)
    ink, outline = _number(clean, labels, draws)
    paper = _background(draws, n)
    base = paper.mean((2, 3), keepdims=True)
    stroke = _apart(between("stroke", 0, 1, *_COLOURS), base)
    edge = _apart(between("edge", 0, 1, *_COLOURS), stroke)
    has_edge = between("has edge", 0, 1, *_ONE) < 0.4  # noqa: PLR2004
    edges = np.where(has_edge, outline[:, None], 0)
    image: Array = paper + edges * (edge - paper)
    image += ink[:, None] * (stroke - image)
    blur = between("blur", 0, 1, *_ONE)
    blurred = gaussian_filter(image, (0, 0, 1.2, 1.2))
    image = (1 - blur) * image + blur * blurred
    level = between("noise level", 0, 0.05, *_ONE)
    image = image + level * draws.normal("noise", image.shape)
    # In 256 steps, so that the last bit of a machine's cosine makes no difference.
    rounded: Array = np.rint(np.clip(image, 0, 1) * 255)
    return rounded.astype(np.uint8)


def _number(clean: _Clean, labels: Array, draws: Draws) -> tuple[Array, Array]:
    """Ink and outline (n, 32, 32) of numbers whose middle digit is the label."""
    n = len(labels)
    between = partial(_between, draws, n)
    row, column = _distorted_grid(draws, n)
    font = np.floor(draws.uniform("font", (n,)) * len(_FONTS)).astype(np.int64)
    centre = font * CLASSES + labels
    gap = between("gap", 0.06, 0.25, 1, 1) * _HEIGHT
    middle = (_SQUARE - 1) / 2
    at = (row + middle, column + middle)
    # A filter's rounding leaves numbers just below 0.
    ink = np.maximum(0, bilinear(clean.ink, centre, *at))
    outline = np.maximum(0, bilinear(clean.outlined, centre, *at))
    for side in (-1, 1):
        digit = np.floor(draws.uniform(f"digit {side}", (n,)) * CLASSES).astype(np.int64)
        neighbour = font * CLASSES + digit
        there = draws.uniform(f"there {side}", (n, 1, 1)) < 0.5  # noqa: PLR2004
        widths = clean.width[neighbour] + clean.width[centre]
        away = side * (gap + widths[:, None, None] / 2)
        at = (row + middle, column - away + middle)
        ink = np.maximum(ink, there * bilinear(clean.ink, neighbour, *at))
        outline = np.maximum(outline, there * bilinear(clean.outlined, neighbour, *at))
    return ink, outline


def _distorted_grid(draws: Draws, n: int) -> tuple[Array, Array]:
    """Row and column (n, 32, 32) of each pixel in the middle digit's clean square, from that square's middle."""
    between = partial(_between, draws, n)
    height = np.exp(between("height", np.log(0.5), np.log(0.85), 1, 1))
    zoom = _HEIGHT / height / SIDE
    angle = np.deg2rad(between("angle", -15, 15, 1, 1))
    shear = between("shear", -0.2, 0.2, 1, 1)
    aspect = np.exp(between("aspect", -0.1, 0.1, 1, 1))
    grid = np.arange(SIDE) - (SIDE - 1) / 2
    x = grid[None, None, :] - between("right", -0.08, 0.08, 1, 1) * SIDE
    y = grid[None, :, None] - between("down", -0.08, 0.08, 1, 1) * SIDE
    along = np.cos(angle) * x + np.sin(angle) * y
    across = np.cos(angle) * y - np.sin(angle) * x
    row = across * zoom / aspect
    column = along * zoom * aspect + shear * row
    return row, column


def _background(draws: Draws, n: int) -> Array:
    """Papers (n, 3, 32, 32): a colour that fades across the picture, under some bars of other colours."""
    between = partial(_between, draws, n)
    grid = (np.arange(SIDE) - (SIDE - 1) / 2) / SIDE
    rows = grid[None, :, None]
    columns = grid[None, None, :]
    direction = between("fade direction", 0, 2 * np.pi, 1, 1)
    along = np.cos(direction) * columns + np.sin(direction) * rows
    fade = between("fade", -0.3, 0.3, *_COLOURS)
    paper: Array = between("paper", 0, 1, *_COLOURS) + fade * along[:, None]
    for bar in ("bar 0", "bar 1"):
        direction = between(f"{bar} direction", 0, 2 * np.pi, 1, 1)
        along = np.cos(direction) * columns + np.sin(direction) * rows
        distance = abs(along - between(f"{bar} place", -0.6, 0.6, 1, 1))
        half = between(f"{bar} width", 0.02, 0.2, 1, 1)
        soft = np.clip((half - distance) * SIDE + 0.5, 0, 1)
        there = between(f"{bar} there", 0, 1, 1, 1) < 0.3  # noqa: PLR2004
        strength = between(f"{bar} strength", 0.1, 0.6, 1, 1)
        colour = between(f"{bar} colour", 0, 1, *_COLOURS)
        paper += (soft * there * strength)[:, None] * (colour - paper)
    return paper


def _between(draws: Draws, n: int, purpose: str, low: float, high: float, *shape: int) -> Array:
    return low + (high - low) * draws.uniform(purpose, (n, *shape))


def _apart(colours: Array, others: Array) -> Array:
    """Colours, moved away if they are too close to the others."""
    near = abs(colours - others).max(1, keepdims=True) < 0.35  # noqa: PLR2004
    step = np.where(others < 0.5, 0.45, -0.45)  # noqa: PLR2004
    return np.where(near, others + step, colours)
