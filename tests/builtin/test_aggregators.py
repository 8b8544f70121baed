"""Aggregators agree with scipy, with the minimum of their bound on the simplex and with plain recursions."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench_builtin.aggregators import (
    GroupDro,
    Hardmax,
    LogSumExp,
    Sharpmax,
    Size,
    Softmax,
    Sparsemax,
    TopK,
    Uniform,
    Wadn,
)
from msda_bench_builtin.aggregators.wadn import sized_sharpmax
from tests.builtin.formulas import same_gradient

pytestmark = pytest.mark.usefixtures("double")

EMPTY = torch.zeros(0)
SIZES = np.array([1.6, 0.1, 1.3])
PENALTIES = {
    "softmax": (Softmax(gamma=2.0), EMPTY, lambda a: (a * np.log(a.clip(1e-300))).sum() / 2),
    "sparsemax": (Sparsemax(gamma=2.0), EMPTY, lambda a: (a**2).sum() / 4),
    "topk": (TopK(n=2), EMPTY, lambda a: 0.0),
    "wadn": (Wadn(gamma=2.0), torch.tensor(SIZES), lambda a: np.sqrt((a**2 / SIZES).sum()) / 2),
    "sharpmax": (Sharpmax(gamma=2.0), EMPTY, lambda a: np.sqrt((a**2).sum()) / 2),
}


@pytest.mark.parametrize("risks", [[0.31, 0.12, 0.48], [2.0, 0.3, 0.4]])
@pytest.mark.parametrize("name", PENALTIES)
def test_the_objective_is_the_minimum_of_the_bound(name, risks):
    aggregator, state, penalty = PENALTIES[name]
    gaps = torch.tensor([0.2, 1.1, 0.0])
    found = aggregator(torch.tensor(risks), gaps, 0.5, state)
    g = np.array(risks) + 0.5 * gaps.numpy()
    least = scipy.optimize.minimize(
        lambda a: g @ a + penalty(a),
        np.full(3, 1 / 3),
        bounds=[(0, 1 / 2 if name == "topk" else 1)] * 3,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        tol=1e-12,
    )
    assert found.objective.item() == pytest.approx(least.fun, abs=1e-7)
    assert found.weights.numpy() == pytest.approx(least.x, abs=1e-4)


MADE = {
    "softmax": lambda gamma: Softmax(gamma=gamma),
    "sparsemax": lambda gamma: Sparsemax(gamma=gamma),
    "topk": lambda gamma: TopK(n=1 + int(gamma) % 4),
    "wadn": lambda gamma: Wadn(gamma=gamma),
    "sharpmax": lambda gamma: Sharpmax(gamma=gamma),
    "logsumexp": lambda gamma: LogSumExp(gamma=gamma),
    "uniform": lambda _: Uniform(),
}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.floats(0.01, 50), st.sampled_from([*MADE]))
def test_the_gradient_equals_the_weights(values, gamma, name):
    """The envelope theorem; risks and gaps get alpha and mu alpha."""
    risks = torch.tensor(values, requires_grad=True)
    gaps = risks.detach().square().requires_grad_()
    aggregator = MADE[name](gamma)
    found = aggregator(risks, gaps, 0.7, aggregator.start(torch.ones(len(values))))
    on_risks, on_gaps = torch.autograd.grad(found.objective, (risks, gaps))
    assert torch.allclose(on_risks, found.weights)
    assert torch.allclose(on_gaps, 0.7 * found.weights)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0.05, 20)), min_size=1, max_size=10))
def test_sized_sharpmax_agrees_with_bisection(pairs):
    z, sizes = (torch.tensor(part) for part in zip(*pairs, strict=True))
    low, high = z.max().item() - sizes.min().item() ** -0.5 - 1e3, z.max().item()
    for _ in range(200):
        nu = (low + high) / 2
        below = (sizes * (z - nu).clamp(min=0).square()).sum() > 1
        low, high = (nu, high) if below else (low, nu)
    weights = sizes * (z - low).clamp(min=0)
    assert torch.allclose(sized_sharpmax(z, sizes), weights / weights.sum(), atol=1e-7)


FOUR = [3.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("aggregator", "sizes", "risks", "gaps", "objective", "weights"),
    [
        (Uniform(), [1] * 3, [1.0, 2.0, 1.2], [5.0, 2.0, 1.0], 8.2 / 3, [1 / 3] * 3),
        (Hardmax(), [1] * 3, [1.0, 2.0, 1.2], [5.0, 2.0, 1.0], 3.5, [1, 0, 0]),
        # The largest risk and the smallest gap.
        (Hardmax(form="code"), [1] * 3, [1.0, 2.0, 1.2], [5.0, 2.0, 1.0], 2 + 0.5 * 1, [0, 1, 0]),
        (Hardmax(), [1] * 3, [2.0, 2.0, 1.0], [0.0] * 3, 2, [0.5, 0.5, 0]),
        (Hardmax(form="code"), [1] * 3, [2.0, 2.0, 1.0], [0.0] * 3, 2, [0.5, 0.5, 0]),
        (TopK(n=1), [1] * 4, FOUR, [0.0] * 4, 1, [0, 1, 0, 0]),
        (TopK(n=2), [1] * 4, FOUR, [0.0] * 4, 1.5, [0, 0.5, 0.25, 0.25]),
        (TopK(n=9), [1] * 4, FOUR, [0.0] * 4, 2, [0.25] * 4),
        (Size(), [100, 300], [1.0, 2.0], [0.0, 4.0], 0.25 * 1 + 0.75 * 4, [0.25, 0.75]),
        (Wadn(), [100, 200, 300], [0.4] * 3, [0.0] * 3, 0.4 + 3**-0.5, [1 / 6, 2 / 6, 3 / 6]),
    ],
)
def test_simple_rules_give_their_weights(aggregator, sizes, risks, gaps, objective, weights):
    state = aggregator.start(torch.tensor(sizes).double())
    found = aggregator(torch.tensor(risks), torch.tensor(gaps), 0.5, state)
    assert found.objective.item() == pytest.approx(objective)
    assert found.weights.tolist() == pytest.approx(weights)


@pytest.mark.parametrize("values", [[0.2, 0.7], [0.1, 0.5, 0.9]])
def test_logsumexp_equals_scipys_and_softmax_is_its_mirror_image(values):
    g = torch.tensor(values)
    worst, best = LogSumExp(gamma=3.0)(g, 2 * g, 0.5, EMPTY), Softmax(gamma=3.0)(-g, -2 * g, 0.5, EMPTY)
    assert worst.objective.item() == pytest.approx(scipy.special.logsumexp(3 * 2 * g.numpy()) / 3)
    assert worst.weights.tolist() == pytest.approx(scipy.special.softmax(3 * 2 * g.numpy()))
    assert torch.equal(best.weights, worst.weights)
    assert best.objective == -worst.objective


def test_the_codes_sharpmax_objective_is_gamma_times_the_texts():
    risks, gaps = torch.tensor([[0.3, 0.9, 1.4], [0.5, 0.2, 0.1]], requires_grad=True).unbind()
    text, code = (Sharpmax(gamma=0.1, scale=scale)(risks, gaps, 0.5, EMPTY) for scale in ("text", "code"))
    assert torch.equal(text.weights, code.weights)
    # gamma (<g, alpha> + ||alpha|| / gamma), as the released code has it.
    g = (risks + 0.5 * gaps).detach()
    assert code.objective.item() == pytest.approx((0.1 * g @ text.weights + text.weights.norm()).item())
    same_gradient(code.objective, 0.1 * text.objective, (risks, gaps))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.floats(0, 5), min_size=3, max_size=3), min_size=1, max_size=6), st.floats(0.001, 2))
def test_group_dro_equals_its_recursion(steps, eta):
    aggregator = GroupDro(eta=eta)
    state = aggregator.start(torch.ones(3))
    q = torch.full((3,), 1 / 3)
    for step in steps:
        risks = torch.tensor(step, requires_grad=True)
        gaps = risks.detach().flip(0)
        objective, weights, state = aggregator(risks, gaps, 0.5, state)
        g = risks.detach() + 0.5 * gaps
        q = q * torch.exp(eta * g)
        q = q / q.sum()
        assert torch.allclose(weights, q, atol=1e-6)
        assert objective.item() == pytest.approx((q @ g).item(), abs=1e-6)
        assert torch.equal(torch.autograd.grad(objective, risks)[0], weights)
