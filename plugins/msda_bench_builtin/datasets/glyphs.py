"""Letters and digits drawn from fonts."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from msda_bench.api import Array, DataError

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font


LETTERS = string.ascii_uppercase
_LARGE = 100
"""Points at which the height of an H is measured."""


def font_path(name: str) -> Path:
    """The font file of that name in matplotlib.

    Raises:
        DataError: this matplotlib does not contain it.
    """
    import matplotlib as mpl

    path = Path(mpl.get_data_path(), "fonts", "ttf", name)
    if not path.is_file():
        raise DataError(f"{path}: matplotlib {mpl.__version__} does not have this font; install the pinned release")
    return path


def fonts_identity(names: Iterable[str]) -> list[str]:
    """What drawn letters depend on besides our code: the version of the library that draws, and the fonts' bytes."""
    from matplotlib.ft2font import __freetype_version__

    fonts = [hashlib.sha256(font_path(name).read_bytes()).hexdigest() for name in names]
    return [__freetype_version__, *fonts]


def glyphs(path: Path, height: float, side: int, characters: str = LETTERS) -> Array:
    """Characters of a font, unhinted and smoothed, each with its ink in the middle of a square.

    Args:
        path: a TrueType font.
        height: of an H, in pixels.
        side: of the square, in pixels.
        characters: of the font.

    Returns:
        (characters, side, side) float64, 0 for paper and 1 for ink.

    Raises:
        DataError: the font does not have a character, or one does not fit the square.
    """
    from matplotlib.ft2font import FT2Font

    font = FT2Font(str(path))
    font.set_size(_LARGE, 72)
    measured = len(_ink(font, "H", path))
    font.set_size(_LARGE * height / measured, 72)
    squares = []
    for letter in characters:
        ink = _ink(font, letter, path)
        squares.append(_centred(ink, side, f"{path}: letter {letter}"))
    return np.stack(squares)


def _ink(font: FT2Font, letter: str, path: Path) -> Array:
    """The smallest rectangle that contains a letter."""
    from matplotlib.ft2font import LoadFlags

    if not font.get_char_index(ord(letter)):
        raise DataError(f"{path}: the font has no letter {letter}; install the pinned release of matplotlib")
    font.set_text(letter, 0.0, flags=LoadFlags.NO_HINTING)
    font.draw_glyphs_to_bitmap(antialiased=True)
    image = np.asarray(font.get_image())
    rows = np.flatnonzero(image.any(1))
    columns = np.flatnonzero(image.any(0))
    return image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] / 255


def _centred(ink: Array, side: int, what: str) -> Array:
    height, width = ink.shape
    if max(height, width) > side:
        raise DataError(f"{what} is {max(height, width)} pixels long and does not fit {side}")
    top = (side - height) // 2
    left = (side - width) // 2
    square = np.zeros((side, side))
    square[top : top + height, left : left + width] = ink
    return square


def bilinear(images: Array, which: Array, row: Array, column: Array) -> Array:
    """Values (n, h, w) of images[which[i]] at (row[i], column[i]), interpolated; outside, those of the edge."""
    last = images.shape[1] - 1
    row = np.clip(row, 0, last)
    column = np.clip(column, 0, last)
    top = np.minimum(row.astype(np.int64), last - 1)
    left = np.minimum(column.astype(np.int64), last - 1)
    down = row - top
    right = column - left
    i = which[:, None, None]
    upper = images[i, top, left] * (1 - right) + images[i, top, left + 1] * right
    lower = images[i, top + 1, left] * (1 - right) + images[i, top + 1, left + 1] * right
    values: Array = upper * (1 - down) + lower * down
    return values
