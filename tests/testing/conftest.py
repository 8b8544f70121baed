"""Fixtures that run contracts for the tests of the contract kit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msda_bench.api import Component
from msda_bench.testing import contract, examine

Catches = Callable[[Component, str, str], None]
Broken = Callable[[Component], set[str]]


@pytest.fixture
def catches() -> Catches:
    """Asserts that a check of the component's contract fails with this message."""

    def run(component: Component, check: str, message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            getattr(contract(component), check)()

    return run


@pytest.fixture
def broken() -> Broken:
    """The names of the checks that a component breaks; asserts that each reason is one line."""

    def run(component: Component) -> set[str]:
        found = [finding for finding in examine(component) if finding.outcome == "broken"]
        assert all(finding.reason and "\n" not in finding.reason for finding in found)
        return {finding.check for finding in found}

    return run
