"""Every built-in component keeps its contract, with defaults and with other important parameters."""

from __future__ import annotations

import pytest

from msda_bench.api import Component
from msda_bench.plugins import discover
from msda_bench.testing import checks, contract
from msda_bench_builtin.aggregators import Sharpmax
from msda_bench_builtin.datasets import Amazon, Digits, Stress
from msda_bench_builtin.schemes import Regularised, Wjdot

ENTRIES = [entry for entry in discover().entries if entry.distribution == "msda-bench"]
COMPONENTS: list[Component] = [entry.create({}) for entry in ENTRIES]
COMPONENTS += [
    Sharpmax(gamma=0.3, scale="code"),
    *(Regularised(by="bnm"), Regularised(by="entropy"), Wjdot(plan="entropic")),
    Digits(copies="reduced", domains=("mnist_m", "svhn"), train=0.1),
    Digits(domains=("synth_fonts", "mnist_m_made"), train=20, test=10, made_train=30, made_test=20),
    Amazon(train={"books": 100, "default": "all"}, target_train=0.5),
    Stress(protocol="transductive", train="all"),
]


@pytest.mark.parametrize(
    ("component", "check"),
    [
        pytest.param(component, check, id=f"{component.kind}-{component.name}-{number}-{check}")
        for number, component in enumerate(COMPONENTS)
        for check in checks(component)
    ],
)
def test_component_keeps_its_contract(component: Component, check: str):
    getattr(contract(component), check)()
