"""Foreign text becomes one harmless line before it is shown."""

from __future__ import annotations

import pickle
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from msda_bench.errors import BenchError, StoreError, printable

HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's controls, formats such as bidirectional overrides, lone surrogates, and breaks of lines and paragraphs."""


@given(st.text() | st.integers(0, 10**6).map("x\u202e ".__mul__), st.integers(3, 300))
def test_terminal_controls_are_removed_and_other_text_stays(text: str, most: int) -> None:
    shown = printable(text, most)
    assert shown.isprintable()
    assert shown == printable(shown, most)
    assert not HARMFUL & {unicodedata.category(char) for char in shown}
    assert len(shown) <= most
    if text.isprintable():
        assert shown == (text if len(text) <= most else f"{text[: most - 3]}...")


def test_window_titles_and_reversed_names_become_plain_text() -> None:
    assert printable("a\x1b]0;own\x07b\r\nc\u202ed\u2066e\x9bf") == "a ]0;own b c d e f"
    assert printable("é ü 中 ∑") == "é ü 中 ∑"
    assert printable(7) == "7"


def test_every_displayed_error_is_printable() -> None:
    error = StoreError("a\x1b[31m", "b\nc")
    assert error.lines == ("a [31m", "b c")
    assert str(error) == "a [31m\nb c"
    assert pickle.loads(pickle.dumps(error)).lines == error.lines  # noqa: S301
    assert len(BenchError("x" * 100_000).lines[0]) < 10_000
