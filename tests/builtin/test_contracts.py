"""Every component that comes with msda-bench keeps its kind's contract: as it is, and with parameters that matter."""

from __future__ import annotations

import pytest

from msda_bench.api import Component
from msda_bench.plugins import KINDS, discover
from msda_bench.testing import checks, contract
from msda_bench_builtin.aggregators import Sharpmax
from msda_bench_builtin.schemes import Regularised

ENTRIES = [entry for entry in discover().entries if entry.distribution == "msda-bench"]
COMPONENTS: list[Component] = [entry.create({}) for entry in ENTRIES]
COMPONENTS += [Sharpmax(gamma=0.3, scale="code")]
COMPONENTS += [Regularised(by="bnm"), Regularised(by="entropy")]


def test_all_kinds_are_here():
    assert {entry.kind for entry in ENTRIES} == set(KINDS)


@pytest.mark.parametrize(
    ("component", "check"),
    [
        pytest.param(component, check, id=f"{component.kind}-{component.name}-{check}")
        for component in COMPONENTS
        for check in checks(component.kind)
    ],
)
def test_contract(component: Component, check: str):
    getattr(contract(component), check)()
