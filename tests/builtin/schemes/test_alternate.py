"""The critic's own steps, then the network's."""

from __future__ import annotations

import pytest
import torch

from msda_bench.api import PluginError
from msda_bench_builtin.aggregators import GroupDro
from msda_bench_builtin.discrepancies import Mmd, ProxyADistance, Wasserstein
from msda_bench_builtin.schemes import Adapt, Alternate
from tests.builtin.schemes.small_run import SmallRun


def test_the_critics_phase_trains_only_the_critics() -> None:
    run = SmallRun(Alternate(), ProxyADistance(), GroupDro())
    critic, network = run.scheme.stages[0].phases[0], run.scheme.stages[0].phases[-1]
    assert [phase.name for phase in run.scheme.stages[0].phases] == ["critic"] * 5 + ["network"]
    assert critic.trains == ("critic",)
    assert set(network.trains) == {"features", "predictor"}
    taken = run.step(critic)
    assert torch.equal(taken.state, run.state)
    torch.autograd.backward(taken.objective)
    assert all(value.grad is None for name in network.trains for value in run.modules[name].parameters())
    assert all(value.grad is not None for value in run.modules["critic"].parameters())


def test_the_networks_phase_equals_the_step_of_adapt() -> None:
    one, other = (SmallRun(scheme, ProxyADistance(), GroupDro()) for scheme in (Alternate(), Adapt()))
    taken, expected = one.step(one.scheme.stages[0].phases[-1]), other.step(other.scheme.stages[0].phases[0])
    for mine, theirs in zip(taken[:5], expected[:5], strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(taken.state, one.state)


def test_critics_raise_the_distance_and_the_network_lowers_it() -> None:
    run = SmallRun(Alternate(), Wasserstein(hidden=(8,)), mu=1.0)
    critic, network = run.scheme.stages[0].phases[0], run.scheme.stages[0].phases[-1]
    start = run.step(critic).gaps.sum()
    for _ in range(12):
        run.descend(critic, 0.05)
    raised = run.step(critic).gaps.sum()
    for _ in range(6):
        run.descend(network, 0.1)
    assert raised > start + 0.1
    assert run.step(network).objective < run.step(network).risks.mean() + raised / 3


def test_a_discrepancy_without_a_critic_is_named() -> None:
    with pytest.raises(PluginError, match="discrepancy 'mmd' has none; use scheme 'adapt'"):
        SmallRun(Alternate(), Mmd())
