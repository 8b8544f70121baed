"""Foreign text becomes one harmless line before it is shown, and errors name a file and line of their author."""

import importlib
import pickle
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.errors import BenchError, DataError, Interrupted, StoreError, message_of, printable
from msda_bench.plugin_errors import OWN, packages_of, place, plugin_errors

HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's controls, formats such as bidirectional overrides, lone surrogates, and breaks of lines and paragraphs."""


@given(st.text() | st.integers(0, 10**6).map("x\u202e ".__mul__), st.integers(3, 300))
def test_terminal_controls_are_removed_and_other_text_stays(text, most):
    shown = printable(text, most)
    assert shown.isprintable()
    assert shown == printable(shown, most)
    assert not HARMFUL & {unicodedata.category(char) for char in shown}
    assert len(shown) <= most
    if text.isprintable():
        assert shown == (text if len(text) <= most else f"{text[: most - 3]}...")


def test_window_titles_and_reversed_names_become_plain_text():
    assert printable("a\x1b]0;own\x07b\r\nc\u202ed\u2066e\x9bf") == "a ]0;own b c d e f"
    assert printable("é ü 中 ∑") == "é ü 中 ∑"
    assert printable(7) == "7"


def test_every_displayed_error_is_printable():
    error = StoreError("a\x1b[31m", "b\nc")
    assert error.lines == ("a [31m", "b c")
    assert str(error) == "a [31m\nb c"
    assert pickle.loads(pickle.dumps(error)).lines == error.lines  # noqa: S301
    assert len(BenchError("x" * 100_000).lines[0]) < 10_000


def test_many_controls_do_not_hide_what_follows_and_endless_ones_are_not_read_to_the_end():
    assert DataError("\x1b" * 9000 + "the end").lines == ("the end",)
    assert message_of(ValueError("\x1b" * 900 + "the end")) == "the end"
    assert message_of(ValueError("\x1b" * 20_000 + "the end")) == "..."


CODE = """
    import torch
    from msda_bench.functional import sharpmax

    def in_torch():
        return torch.zeros(2) @ torch.zeros(3)

    def in_ours():
        return sharpmax("no tensor")

    def deeper(function):
        return apply(function)

    def apply(function):
        return function()
"""


@pytest.fixture
def theirs(install):
    install("their-plugin", CODE, version="2.0")
    return importlib.import_module("their_plugin")


def raised(function):
    with pytest.raises((ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError)) as caught:
        function()
    return caught.value


def test_the_innermost_line_of_the_author_is_named_instead_of_a_librarys(theirs):
    packages = packages_of(["their-plugin", "nowhere-installed"])
    assert packages == {"their_plugin", OWN}
    assert packages_of(["msda-bench"]) == {"msda_bench_builtin", OWN}
    for function, where in (
        (theirs.in_torch, "their_plugin.py:6"),
        (theirs.in_ours, "their_plugin.py:9"),
        (lambda: theirs.deeper(lambda: torch.zeros(2) @ torch.zeros(3)), "their_plugin.py:15"),
        (lambda: 1 / 0, None),
    ):
        assert place(raised(function), packages) == where


def test_only_the_users_interrupt_and_mistakes_that_have_a_line_pass():
    for error in (Interrupted(), KeyboardInterrupt(), DataError("a line"), AssertionError()):
        with pytest.raises(type(error)) as caught, plugin_errors((), passing=(AssertionError,)):
            raise error
        assert caught.value is error
