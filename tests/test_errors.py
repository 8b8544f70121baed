"""Any exception is described, whatever its class does, and only the user's Ctrl-C passes."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.errors import Interrupted, describe, one_line, pass_interrupt


class Nameless(type):
    @property
    def __name__(cls) -> str:
        raise GeneratorExit


class Sly(str):
    __slots__ = ()

    def __getitem__(self, _: object) -> str:
        raise KeyError

    __len__ = None  # type: ignore[assignment]
    split = encode = isprintable = __getitem__  # type: ignore[assignment]

    def __iter__(self) -> Iterator[str]:
        raise KeyError


def hostile(text: object, meta: type = type) -> BaseException:
    """An exception of a class `Hostile` whose `str()` is the text, or raises it."""

    def to_text(_: object) -> object:
        if isinstance(text, BaseException):
            raise text
        return text

    made: BaseException = meta("Hostile", (BaseException,), {"__str__": to_text})()
    return made


UNREADABLE = "its message cannot be read, since its __str__ raises"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\nb\x1b[31m\u202e\udcff c"), "ValueError: a b [31m c"),
        (MemoryError(), "MemoryError: no message"),
        (type("Bad\nName\x07", (Exception,), {})("x"), "Bad Name: x"),
        (hostile(RuntimeError("again")), f"Hostile: {UNREADABLE}"),
        (hostile(SystemExit(7)), f"Hostile: {UNREADABLE}"),
        (hostile(Sly("sly")), "Hostile: sly"),
        (hostile(None), f"Hostile: {UNREADABLE}"),
        (hostile("x", Nameless), "Hostile: x"),
    ],
)
def test_every_exception_has_a_line(error: BaseException, line: str) -> None:
    assert describe(error) == line


@given(st.text(st.characters()) | st.integers(0, 10**7).map("x ".__mul__), st.integers(10, 600))
def test_a_line_is_printable_and_of_bounded_length(text: str, longest: int) -> None:
    line = one_line(text, longest)
    assert line.isprintable()
    assert len(line) <= longest
    assert line == one_line(line, longest)


def test_ctrl_c_passes_and_a_plugins_own_interrupt_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Interrupted):
        pass_interrupt(Interrupted())
    with pytest.raises(KeyboardInterrupt):  # under Python's own handler it may be the user's
        pass_interrupt(KeyboardInterrupt())
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    for error in (KeyboardInterrupt(), GeneratorExit(), SystemExit(), BaseException()):
        pass_interrupt(error)
