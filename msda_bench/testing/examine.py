"""Holds one component to its kind's contract, clause by clause, without a test runner."""

from __future__ import annotations

import traceback
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msda_bench.api import Component
from msda_bench.errors import describe, message_of, pass_interrupt, printable
from msda_bench.plugins.process_state import put_back
from msda_bench.testing.catalogue import checks, contract

_LONGEST = 2000
"""Characters of a reason: a broken clause says what the contract asks for, too."""


@dataclass(frozen=True)
class Finding:
    """What became of one clause of a contract.

    Attributes:
        check: the name of the contract's method.
        outcome: kept, broken, or skipped where it does not apply or cannot be looked at here.
        reason: one line on why it is broken or skipped.
    """

    check: str
    outcome: Literal["kept", "broken", "skipped"]
    reason: str = ""

    @property
    def clause(self) -> str:
        """The clause in words, such as "weights lie on the simplex"."""
        return self.check.removeprefix("test_").replace("_", " ")


def examine(component: Component) -> Iterator[Finding]:
    """The findings of each clause, in alphabetical order; what a clause left changed in the process is put back."""
    kept = contract(component)
    for check in checks(component.kind):
        with put_back():
            yield _finding(kept, check)


def _finding(kept: object, check: str) -> Finding:
    try:
        getattr(kept, check)()
    except unittest.SkipTest as why:
        return Finding(check, "skipped", _one_line(why))
    except AssertionError as broken:
        return Finding(check, "broken", _one_line(broken))
    except BaseException as error:  # noqa: BLE001 - a stranger's code may raise anything
        pass_interrupt(error)
        return Finding(check, "broken", f"{describe(error)} ({_place(error)})")
    return Finding(check, "kept")


def _one_line(error: BaseException) -> str:
    # pytest, where it rewrites assertions, adds lines below the message.
    try:
        lines = str(error).strip().splitlines()
    except BaseException as fault:  # noqa: BLE001 - a stranger's message may raise anything
        pass_interrupt(fault)
        return message_of(error)
    return printable(lines[0], _LONGEST) if lines else "no message"


def _place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"
