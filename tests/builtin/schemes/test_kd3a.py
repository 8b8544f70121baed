"""KD3A agrees with plain loops over examples, models and orders of the sources."""

from __future__ import annotations

from itertools import permutations, product

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import Carried, Network, PluginError, Sizes, TargetPass
from msda_bench.functional import split_key, uniform
from msda_bench_builtin.schemes import Kd3a
from msda_bench_builtin.schemes.kd3a import shapley, vote
from tests.builtin.gradients import same_gradient
from tests.builtin.schemes.small_run import CLASSES, B, D, K, SmallRun

SIZES = Sizes((B,) * K, B, D, CLASSES)


def one_vote(answers: list[list[float]], gate: float) -> tuple[int, float, bool]:
    """The consensus of some models' probabilities for one example: class, sum, and whether any model is certain."""
    tops = [max(answer) for answer in answers]
    sure = [top > gate for top in tops]
    sums = [0.0] * len(answers[0])
    for answer, top, passes in zip(answers, tops, sure, strict=True):
        if passes or not any(sure):
            sums[answer.index(top)] += top
    return sums.index(max(sums)), max(sums), any(sure)


@pytest.mark.parametrize("gate", [0.0, 0.6])
def test_the_vote_and_each_subsets_quality_equal_plain_loops(gate: float) -> None:
    generator = torch.Generator().manual_seed(4)
    knowledge = torch.softmax(3 * torch.randn(K, 9, CLASSES, dtype=torch.float64, generator=generator), -1)
    consensus, passed, qualities = vote(knowledge, gate)
    for place in range(9):
        winner, _, sure = one_vote(knowledge[:, place].tolist(), gate)
        assert consensus[place].tolist() == [float(c == winner) for c in range(CLASSES)]
        assert bool(passed[place]) == sure
        for row, chosen in enumerate(product((False, True), repeat=K)):
            answers = [knowledge[i, place].tolist() for i in range(K) if chosen[i]]
            _, quality, sure = one_vote(answers, gate) if answers else (0, 0.0, False)
            assert float(qualities[row, place]) == pytest.approx(quality * sure)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_consensus_focus_equals_the_mean_over_all_orders(k: int) -> None:
    values = torch.rand(2**k, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
    rows = {chosen: row for row, chosen in enumerate(product((0, 1), repeat=k))}
    gains = [[] for _ in range(k)]  # type: list[list[float]]
    for order in permutations(range(k)):
        here = [0] * k
        for player in order:
            before = values[rows[tuple(here)]]
            here[player] = 1
            gains[player].append(float(values[rows[tuple(here)]] - before))
    assert shapley(values, k).tolist() == pytest.approx([sum(each) / len(each) for each in gains])


def started(scheme: Kd3a) -> SmallRun:
    run = SmallRun(scheme)
    run.batch = run.batch._replace(carried=dict(scheme.carry(run.parts, SIZES, scheme.stages[0])))
    return run


def extractors(run: SmallRun) -> list[Tensor]:
    """The first weight of each model's current extractor, with the target's last."""
    names = [*(f"critic.features.{i}.0.weight" for i in range(K)), "features.0.weight"]
    return [run.parts.weights[name] + run.batch.carried[name] for name in names]


def after_epoch(run: SmallRun) -> Carried:
    nothing = TargetPass(torch.zeros(B, D), torch.zeros(B, CLASSES), run.batch.key)
    given = run.batch.carried
    return {**given, **run.scheme.at_epoch(run.parts, nothing, given, run.scheme.stages[0])}


def test_each_model_learns_from_its_own_labels() -> None:
    """With one initial extractor, sources learn from labels and the target from the consensus on mixed examples."""
    run = started(Kd3a(gate=0.0, gate_end=0.0))
    assert all(torch.allclose(one, run.modules["features"][0].weight) for one in extractors(run))
    step = run.step(run.scheme.stages[0].phases[0])
    critic, target = run.modules["critic"], run.x[K * B :]

    def local(i: int, x: Tensor) -> Tensor:
        found: Tensor = critic["predictor"][i](run.modules["features"](x))  # all extractors are equal at the start
        return found

    risks = [nn.functional.cross_entropy(local(i, run.x[i * B : (i + 1) * B]), run.batch.y[i]) for i in range(K)]
    assert torch.allclose(step.risks, torch.stack(risks))
    same_gradient(step.objective, torch.stack(risks).sum(), critic["predictor"].parameters())

    consensus, _, _ = vote(torch.softmax(torch.stack([local(i, target) for i in range(K)]), -1), 0.0)
    first, second = split_key(run.batch.key, torch.arange(2, dtype=torch.int32)).unbind()
    share, others = float(uniform(first, (3,)).median()), uniform(second, (B,)).argsort().tolist()
    total = torch.zeros((), dtype=torch.float64)
    for place, other in enumerate(others):
        mixed = share * target[place] + (1 - share) * target[other]
        logs = torch.log_softmax(run.modules["predictor"](run.modules["features"](mixed)), -1)
        label = share * consensus[place] + (1 - share) * consensus[other]
        total = total - (label * logs).sum() / B
    own = [*run.modules["features"].parameters(), *run.modules["predictor"].parameters()]
    same_gradient(step.objective, total, own)


def test_examples_of_which_no_model_is_certain_get_no_label() -> None:
    run = started(Kd3a(gate=0.999, gate_end=0.999))
    step = run.step(run.scheme.stages[0].phases[0])
    gradients = torch.autograd.grad(step.objective, list(run.modules["predictor"].parameters()))
    assert not any(gradient.any() for gradient in gradients)
    assert [step.carried[name].tolist() for name in ("focus", "passed", "seen")] == [[0.0] * K, 0.0, B]


def test_an_epoch_ends_with_the_average_that_is_tested() -> None:
    run = started(Kd3a(gate=0.0, gate_end=0.0, mixup=False))
    run.batch = run.batch._replace(carried=after_epoch(run))  # the first epoch begins, and nothing changes
    assert run.batch.carried["alpha"].tolist() == [1 / (K + 1)] * (K + 1)
    for epoch in range(2):
        before, sums = run.batch.carried["alpha"], torch.zeros(K, dtype=torch.float64)
        for _ in range(3):
            step = run.step(run.scheme.stages[0].phases[0])
            sums += step.carried["focus"] - run.batch.carried["focus"]
            run.descend(run.scheme.stages[0].phases[0], 0.3)
            run.batch = run.batch._replace(carried={**run.batch.carried, **step.carried})
        assert int(run.batch.carried["seen"]) == 3 * B
        now = torch.cat([(1 - 1 / (K + 1)) * sums / sums.sum(), torch.tensor([1 / (K + 1)]).double()])
        alpha = 0.9 * before + 0.1 * now if epoch else now
        apart = extractors(run)
        assert not torch.allclose(apart[0], apart[1])
        features, _ = run.scheme.predict(run.parts, run.x, run.batch.carried)
        run.batch = run.batch._replace(carried=after_epoch(run))
        assert torch.allclose(run.batch.carried["alpha"], alpha)
        mean = sum(float(share) * one for share, one in zip(alpha, apart, strict=True))
        assert all(torch.allclose(one, mean) for one in extractors(run))  # type: ignore[arg-type]
        again, _ = run.scheme.predict(run.parts, run.x, run.batch.carried)
        assert torch.allclose(features, again)


def test_too_many_sources_for_all_subsets_are_refused() -> None:
    network = Network(nn.Linear(2, 2), nn.Linear(2, 2), 2)
    with pytest.raises(PluginError, match="at most 12, not 13"):
        Kd3a().build(network, 13, None)
