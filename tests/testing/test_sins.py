"""Every clause of every contract catches its sins with a fitting message, and some sin breaks only this clause."""

from __future__ import annotations

import pytest
import torch

from msda_bench.testing import CONTRACTS, ComponentContract, checks
from tests.testing import (
    test_aggregator,
    test_backbone,
    test_dataset,
    test_discrepancy,
    test_metric,
    test_scheme,
    test_validator,
)

MODULES = (test_aggregator, test_backbone, test_dataset, test_discrepancy, test_metric, test_scheme, test_validator)
SINS = [
    (cls, clause, message)
    for module in MODULES
    for cls in vars(module).values()
    if isinstance(cls, type)
    for clause, message in vars(cls).get("broken", ())
]
CLAUSES = [(kind, clause) for kind in CONTRACTS for clause in sorted({*checks(kind)} - {*dir(ComponentContract)})]


@pytest.mark.parametrize(
    ("sin", "clause", "message"),
    [pytest.param(*row, id=f"{row[0].kind}-{row[1]}-{row[0].__name__}") for row in SINS],
)
def test_a_sin_is_caught_and_the_process_state_restored(catches, sin, clause, message):
    catches(sin(), f"test_{clause}", message)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(("kind", "clause"), CLAUSES)
def test_each_clause_is_the_only_one_broken_by_some_sin(broken, kind, clause):
    sins = [sin for sin, broken_clause, _ in SINS if sin.kind == kind and f"test_{broken_clause}" == clause]
    assert any(broken(sin()) == {clause} for sin in reversed(sins))
