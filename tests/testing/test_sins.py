"""Every clause of every contract catches its sins with a fitting message, and some sin breaks only this clause."""

from __future__ import annotations

import itertools
import unittest

import pytest
import torch
from torch import nn

from msda_bench.api import component
from msda_bench.testing import CONTRACTS, ComponentContract, FittedSchemeContract, contract, examine, toy
from tests.engine.simulated import simulate
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
    if clause.startswith("test_") and clause != "test_recorded_steps_are_the_hosts"  # which takes a GPU; see below
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


class Counting(nn.Module):
    """Counts its calls in Python, which a CUDA graph does not."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


@component
class CountingNetwork(test_backbone.OneLayer):
    """A network with a layer that counts."""

    name = "counting_network"

    def build(self, task, input, files=None):
        network = super().build(task, input, files)
        return network._replace(features=nn.Sequential(network.features, Counting()))


@component
class CountingScheme(test_scheme.Plain):
    """A scheme whose steps count."""

    name = "counting_scheme"

    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        return step._replace(objective=step.objective * next(COUNTER))


COUNTER = itertools.count(1)


@pytest.mark.parametrize(
    ("sincere", "counting"), [(test_backbone.OneLayer, CountingNetwork), (test_scheme.Plain, CountingScheme)]
)
def test_a_capturable_component_that_counts_its_calls_is_caught_on_a_gpu(monkeypatch, sincere, counting):
    """With the simulated graph; without a GPU the clause is skipped, and says what it takes."""
    clauses = []
    for cls in (sincere, counting):
        declared = type(cls.__name__, (cls,), {"capturable": True})()
        clauses.append(contract(declared).test_recorded_steps_are_the_hosts)
        with pytest.raises(unittest.SkipTest, match="does not declare"):
            contract(cls()).test_recorded_steps_are_the_hosts()
    if toy.gpu() is None:
        with pytest.raises(unittest.SkipTest, match="takes a GPU to check"):
            clauses[0]()
        graphs = simulate(monkeypatch)
        monkeypatch.setattr(toy, "gpu", lambda: torch.device("cpu"))
    clauses[0]()
    assert toy.gpu().type == "cuda" or graphs
    with pytest.raises(AssertionError, match=r"replayed (steps|passes) are not"):
        clauses[1]()
