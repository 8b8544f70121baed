"""Text from outside is one harmless line before anyone sees it."""

from __future__ import annotations

import pickle
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from msda_bench.errors import BenchError, StoreError, printable

HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's controls, formats such as bidirectional overrides, lone surrogates, and breaks of lines and paragraphs."""


@given(st.text(), st.integers(3, 300))
def test_nothing_that_a_terminal_obeys_is_left_and_the_rest_stays(text: str, most: int) -> None:
    shown = printable(text, most)
    assert not HARMFUL & {unicodedata.category(char) for char in shown}
    assert len(shown) == min(len(text), most)
    kept = text if len(text) <= most else text[: most - 3]
    assert all(now == was for now, was in zip(shown, kept, strict=False) if was.isprintable())
    assert shown.endswith("...") or len(text) <= most


def test_a_title_of_the_window_and_a_turned_name_are_plain_text() -> None:
    assert printable("a\x1b]0;own\x07b\r\nc\u202ed\u2066e\x9bf") == "a ]0;own b  c d e f"
    assert printable("é ü 中 ∑") == "é ü 中 ∑"
    assert printable(7) == "7"


def test_every_error_that_is_shown_is_printable() -> None:
    error = StoreError("a\x1b[31m", "b\nc")
    assert error.lines == ("a [31m", "b c")
    assert str(error) == "a [31m\nb c"
    assert pickle.loads(pickle.dumps(error)).lines == error.lines  # noqa: S301
    assert len(BenchError("x" * 100_000).lines[0]) < 10_000
