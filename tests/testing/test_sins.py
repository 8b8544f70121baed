"""Every clause of every contract catches its sins with a fitting message, and some sin breaks only this clause."""

from __future__ import annotations

import unittest

import pytest
import torch

from msda_bench.testing import CONTRACTS, ComponentContract, FittedSchemeContract, contract, examine
from tests.testing import (
    test_aggregator,
    test_backbone,
    test_dataset,
    test_discrepancy,
    test_fitted,
    test_metric,
    test_scheme,
    test_validator,
)

MODULES = (
    test_aggregator, test_backbone, test_dataset, test_discrepancy,
    test_fitted, test_metric, test_scheme, test_validator,
)  # fmt: skip
SINS = [sin for module in MODULES for sin in module.SINS]
CLAUSES = [
    (kept, clause)
    for kept in (*CONTRACTS.values(), FittedSchemeContract)
    for clause in sorted({*dir(kept)} - {*dir(ComponentContract)})
    if clause.startswith("test_")
]


@pytest.mark.parametrize("sin", [pytest.param(sin, id=f"{sin.component.kind}-{sin.message}") for sin in SINS])
def test_a_sin_is_caught_and_the_process_state_restored(sin):
    with pytest.raises(AssertionError, match=sin.message):
        getattr(contract(sin.component), f"test_{sin.clause}")()
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(("kept", "clause"), CLAUSES)
def test_each_clause_is_the_only_one_broken_by_some_sin(kept, clause):
    def broken(component):
        found = [finding for finding in examine(component) if finding.outcome == "broken"]
        assert all(finding.reason and "\n" not in finding.reason for finding in found)
        return {finding.check for finding in found}

    sins = [
        sin.component for sin in SINS if isinstance(contract(sin.component), kept) and f"test_{sin.clause}" == clause
    ]
    assert any(broken(sin) == {clause} for sin in reversed(sins))


def test_a_component_that_declares_it_cannot_be_stacked_is_not():
    (branching,) = [sin.component for sin in test_aggregator.SINS if sin.message.startswith("cannot be stacked")]
    alone = type("Alone", (type(branching),), {"stackable": False})()
    with pytest.raises(unittest.SkipTest, match="declares `stackable = False`"):
        contract(alone).test_stacked_runs_equal_each_alone()
