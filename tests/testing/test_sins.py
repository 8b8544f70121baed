"""Every clause of every contract catches its sins with a fitting message, and some sin breaks only this clause."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import unittest

import pytest
import torch

from msda_bench.functional import reverse_gradient
from msda_bench.testing import CONTRACTS, ComponentContract, PredictorContract, contract, toy
from tests.engine.simulated import simulate
from tests.own import broken
from tests.testing import sins_of_inputs, sins_of_parts, sins_of_schemes
from tests.testing.sins import Stacked, sins

SINS = [*sins_of_parts.SINS, *sins_of_schemes.SINS, *sins_of_inputs.SINS]
CLAUSES = [
    (kept, clause)
    for kept in (*CONTRACTS.values(), PredictorContract)
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
    def breaks(component):
        found = broken(component)
        assert all(finding.reason and "\n" not in finding.reason for finding in found)
        return {finding.check for finding in found}

    sins = [
        sin.component for sin in SINS if isinstance(contract(sin.component), kept) and f"test_{sin.clause}" == clause
    ]
    assert any(breaks(sin) == {clause} for sin in reversed(sins))


def test_a_component_that_declares_it_cannot_be_stacked_is_not():
    (branching,) = [
        sin.component for sin in sins_of_parts.SINS if sin.message == "cannot be stacked.*`stackable = False`"
    ]
    alone = type("Alone", (type(branching),), {"stackable": False})()
    with pytest.raises(unittest.SkipTest, match="declares `stackable = False`"):
        contract(alone).test_stacked_runs_equal_each_alone()


@pytest.mark.parametrize("reversal", [reverse_gradient, Stacked.apply])
def test_the_reversals_that_the_kit_names_can_be_stacked(reversal):
    (sin,) = sins(sins_of_schemes.Spoiled, {"": {"": sins_of_schemes.objective(reversal)}})
    contract(sin.component).test_stacked_runs_equal_each_alone()


OFF_THE_SIMPLEX = """
    from msda_bench.api import Aggregate, Aggregator, component, hookimpl

    @component
    class Ones(Aggregator):
        '''Weights of one.'''
        name = "ones"

        def __call__(self, risks, gaps, mu, state):
            return Aggregate((risks + mu * gaps).sum(), risks.detach() * 0 + 1, state)

    @hookimpl
    def msda_aggregators():
        return [Ones]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("optimised", "component", "code"), [("-O", "ones", 1), ("-OO", "uniform", 0)])
def test_contracts_hold_where_python_drops_assertions(install, site, tmp_path, optimised, component, code):
    install("ones-stranger", OFF_THE_SIMPLEX)
    (tmp_path / "random.py").write_text("raise SystemExit('the random.py of the user was run')")
    words = [sys.executable, optimised, "-m", "msda_bench", "check", component]
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (code, "")
    assert ("the sum of the weights of 2 sources is 2; the contract asks for" in done.stdout) == bool(code)
    verdict = f"aggregator {component} {'breaks' if code else 'keeps'} its contract: "
    assert done.stdout.splitlines()[-1].startswith(verdict)


COUNTER = itertools.count(1)
"""A count of calls in Python, which a CUDA graph does not repeat."""


@pytest.mark.parametrize(
    ("base", "counts", "message"),
    [
        (sins_of_inputs.SpoiledNetwork, sins_of_inputs.more(lambda x: x * next(COUNTER)), "replayed passes are not"),
        (
            sins_of_schemes.Spoiled,
            {"spoil": staticmethod(sins_of_schemes.objective(lambda x: x * next(COUNTER)))},
            "replayed steps are not",
        ),
    ],
)
def test_a_capturable_component_that_counts_its_calls_is_caught_on_a_gpu(monkeypatch, base, counts, message):
    """With the simulated graph; without a GPU the clause is skipped, and says what it takes."""
    declared = {"capturable": True}
    members = {"does not declare": {}, "sincere": declared, message: counts | declared}
    undeclared, sincere, counting = (
        contract(sin.component).test_recorded_steps_are_the_hosts for sin in sins(base, {"": members})
    )
    with pytest.raises(unittest.SkipTest, match="does not declare"):
        undeclared()
    if toy.gpu() is None:
        with pytest.raises(unittest.SkipTest, match="takes a GPU to check"):
            sincere()
        graphs = simulate(monkeypatch)
        monkeypatch.setattr(toy, "gpu", lambda: torch.device("cpu"))
    sincere()
    assert toy.gpu().type == "cuda" or graphs
    with pytest.raises(AssertionError, match=message):
        counting()
