"""How the tests of the contract kit run a contract."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msda_bench.api import Component
from msda_bench.testing import contract

Catches = Callable[[Component, str, str], None]


@pytest.fixture
def catches() -> Catches:
    """Asserts that a check of the component's contract fails with this message."""

    def run(component: Component, check: str, message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            getattr(contract(component), check)()

    return run
