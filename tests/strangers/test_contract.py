"""The strangers' schemes keep the contract."""

from __future__ import annotations

import pytest

from msda_bench.testing import examine
from tests.strangers.heads import Heads
from tests.strangers.source_free import SourceFree
from tests.strangers.teacher import Teacher


@pytest.mark.parametrize("scheme", [Heads, Teacher, SourceFree])
def test_a_strangers_scheme_keeps_the_contract(scheme: type) -> None:
    found = list(examine(scheme()))
    assert [finding for finding in found if finding.outcome == "broken"] == []
    assert sum(finding.outcome == "kept" for finding in found) >= 15
