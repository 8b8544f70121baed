"""How a contract says that a component breaks it: by an exception of its own, since `python -O` drops assertions."""

from __future__ import annotations


class BrokenContractError(AssertionError):
    """A component breaks a clause of its contract; test runners show it as a failed assertion."""


def require(kept: object, failure: str) -> None:
    """Fails with this line if `kept` is false."""
    if not kept:
        raise BrokenContractError(failure)
