"""Every component that comes with msda-bench keeps its kind's contract, with the default parameters."""

from __future__ import annotations

import pytest

from msda_bench.plugins import Entry, discover
from msda_bench.testing import checks, contract

ENTRIES = [entry for entry in discover().entries if entry.distribution == "msda-bench"]


def test_all_kinds_are_here():
    assert {entry.kind for entry in ENTRIES} == {
        "dataset",
        "backbone",
        "discrepancy",
        "aggregator",
        "scheme",
        "validator",
    }


@pytest.mark.parametrize(
    ("entry", "check"),
    [
        pytest.param(entry, check, id=f"{entry.kind}-{entry.name}-{check}")
        for entry in ENTRIES
        for check in checks(entry.kind)
    ],
)
def test_contract(entry: Entry, check: str):
    getattr(contract(entry.create({})), check)()
