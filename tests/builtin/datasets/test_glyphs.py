from __future__ import annotations

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench_builtin.datasets.glyphs import LETTERS, font_path, glyphs


def test_an_h_has_the_requested_height():
    found = glyphs(font_path("DejaVuSans.ttf"), 24, 64)
    rows = np.flatnonzero(found[LETTERS.index("H")].max(1) > 0.5)
    assert rows[-1] - rows[0] + 1 == pytest.approx(24, abs=1)


def test_letters_are_centred_with_greys_between_paper_and_ink():
    found = glyphs(font_path("cmmi10.ttf"), 24, 64)
    assert found.shape == (26, 64, 64)
    assert found.min() == 0
    assert found.max() == 1
    for letter in found:
        for ink in (letter.any(0), letter.any(1)):
            assert abs(ink.argmax() - ink[::-1].argmax()) <= 1


def test_a_font_that_matplotlib_lacks_is_named():
    with pytest.raises(
        DataError, match=r"Comic\.ttf: matplotlib .* does not have this font; install the pinned release"
    ):
        font_path("Comic.ttf")


def test_a_font_without_letters_is_named():
    with pytest.raises(DataError, match=r"STIXSizOneSymReg\.ttf: the font has no letter"):
        glyphs(font_path("STIXSizOneSymReg.ttf"), 24, 64)


def test_a_letter_too_large_for_its_square_is_named():
    with pytest.raises(DataError, match=r"DejaVuSans\.ttf: letter A is \d+ pixels long and does not fit 20"):
        glyphs(font_path("DejaVuSans.ttf"), 24, 20)
