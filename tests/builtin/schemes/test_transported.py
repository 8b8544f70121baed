"""JCPOT, WBT and WJDOT agree with POT and with scipy's linear programme."""

import dataclasses
import importlib.util
import subprocess
import sys

import numpy as np
import ot
import pytest
import torch
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from torch import nn

from msda_bench.api import FitData, PluginError, TargetPass, Task
from msda_bench.cli.main import main
from msda_bench_builtin.schemes import Jcpot, Wbt, Wjdot, transported
from msda_bench_builtin.schemes.wjdot import exact_transport
from tests.builtin.formulas import B, K, SmallRun, same_gradient, takes
from tests.own import refusal, suite

pytestmark = pytest.mark.usefixtures("double")

TASK = Task("classification", 4)  # no example of the class 2
CENTRES = {0: (0, 0), 1: (4, 0), 3: (0, 5)}


def domain(shares, shift, seed):
    """Examples of three classes, so many of each, moved."""
    rng = np.random.default_rng(seed)
    y = np.repeat(list(shares), list(shares.values()))
    x = np.array([CENTRES[label] for label in y]) + shift + 0.4 * rng.normal(size=(len(y), 2))
    return x.astype(np.float32), y


SOURCES = [domain({0: 12, 1: 8, 3: 10}, 0.0, 1), domain({0: 5, 1: 14, 3: 6}, 0.8, 2)]
TARGET, TRUTH = domain({0: 4, 1: 4, 3: 32}, 1.2, 3)


def fit_data(sources, unit=1.0):
    """Sources, and the target without labels."""
    xs, ys = zip(*sources, strict=True)
    groups = np.repeat(np.arange(len(xs)), [len(y) for y in ys])
    return FitData(unit * np.concatenate(xs), np.concatenate(ys), groups, unit * TARGET)


def answers(scheme, sources, rows):
    """Probabilities of a fitted scheme."""
    return np.exp(scheme.fit(fit_data(sources), TASK, 0)(rows))


def test_jcpot_propagates_labels_by_the_plans_of_pots_class():
    xs, ys = ([part.astype(np.float64) for part in parts] for parts in zip(*SOURCES, strict=True))
    classes, target = np.array([0, 1, 3]), TARGET.astype(np.float64)
    scale = np.sqrt(max(np.square(x[:, None] - target).sum(2).max() for x in xs))
    pots = ot.da.JCPOTTransport(reg_e=0.05, tol=1e-6, log=True)
    pots.fit([x / scale for x in xs], [np.searchsorted(classes, y) for y in ys], target / scale)
    brought = np.zeros((len(target), 3))
    for plan, y in zip(pots.coupling_, ys, strict=True):
        for place, label in enumerate(classes):
            brought[:, place] += plan[y == label].sum(0)
    found = answers(Jcpot(reg=0.05, iterations=100), SOURCES, TARGET)
    assert np.allclose(found[:, classes], brought / brought.sum(1, keepdims=True), atol=1e-6)
    assert found[:, 2].max() == pytest.approx(1e-6)
    # The target's shares of classes, 10, 10 and 80 %, where the sources' are about 30, 40 and 30 %.
    assert pots.proportions_ == pytest.approx([0.1, 0.1, 0.8], abs=0.05)
    assert (found.argmax(1) == TRUTH).all()
    assert np.array_equal(answers(Jcpot(reg=0.05, iterations=100), SOURCES, TARGET[:3] + 0.001), found[:3])


def test_jcpot_refuses_a_source_without_a_class():
    with pytest.raises(PluginError, match=r"'jcpot' needs every class in every source; source 2 lacks \[3\]\."):
        answers(Jcpot(), [SOURCES[0], domain({0: 5, 1: 5}, 0.8, 2)], TARGET)


def test_wbt_moves_the_barycentre_of_each_class():
    """By scikit-learn, from points that POT's class has moved to the target."""
    points, labels = [], []
    for label in CENTRES:
        given = [x[y == label].astype(np.float64) for x, y in SOURCES]
        start = np.concatenate(given)
        for _ in range(10):  # the means of the images of each point under the exact plans from it
            images = [ot.emd([], [], ot.dist(start, x)) @ x * len(start) for x in given]
            start = np.mean(images, 0)
        points.append(start)
        labels += [label] * len(start)
    given = np.concatenate(points)
    transport = ot.da.SinkhornTransport(reg_e=0.05, norm="max").fit(Xs=given, Xt=TARGET.astype(np.float64))
    plain = LogisticRegression(C=1.0, max_iter=1000).fit(transport.transform(given), labels)
    found = answers(Wbt(reg=0.05), SOURCES, TARGET)
    assert np.allclose(found[:, [0, 1, 3]], plain.predict_proba(TARGET), atol=1e-4)


def exact(cost, weights):
    """The least cost of moving weighted points to equal ones, and its plan, by the simplex method."""
    n, m = cost.shape
    marginals = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    right = np.concatenate([weights.numpy(), np.full(m, 1 / m)])
    found = linprog(cost.numpy().ravel(), A_eq=marginals, b_eq=right)
    return found.fun, torch.from_numpy(found.x).view(n, m)


@pytest.mark.parametrize(
    ("alpha", "unique"),
    [((0.5432, 0.2871, 0.1697), True), ((1 / 3, 1 / 3, 1 / 3), False), ((0.7, 0.3, 0.0), False)],
)
def test_the_exact_plan_its_marginals_and_alphas_gradient_are_pots(alpha, unique):
    """At 3 x 32 and 32 examples; where several gradients are right, as at equal weights, it is one of them."""
    torch.manual_seed(5)
    labels = torch.randint(0, 4, (96,))
    source = torch.randn(96, 8) + labels[:, None]
    probabilities = torch.softmax(2 * torch.randn(32, 4), 1)
    target = torch.randn(32, 8) + 2
    squares = torch.cdist(source, target).square()
    cost = squares / squares.mean() - probabilities.log()[:, labels].T
    shares = torch.eye(3).repeat_interleave(32, 0) / 32
    given = torch.tensor(alpha)

    def least(weights):
        return float(ot.emd2((shares @ weights).numpy(), np.full(32, 1 / 32), cost.numpy()))

    plan, potentials = exact_transport(cost, shares @ given)
    assert float((plan * cost).sum()) == pytest.approx(least(given), rel=1e-12)
    assert torch.allclose(plan.sum(1), shares @ given)
    assert torch.allclose(plan.sum(0), torch.full((32,), 1 / 32))
    assert int((plan > 0).sum()) < 96 + 32
    gradient = potentials @ shares
    for towards in (*torch.eye(3), torch.tensor([0.2, 0.5, 0.3])):
        for step in (1.0, 0.1, 1e-3):  # the cost is convex in alpha
            at = given + step * (towards - given)
            assert least(at) >= least(given) + float(gradient @ (at - given)) - 1e-12
    pairs = ((0, 1), (0, 2), (1, 2)) if unique else ()
    for away, to in pairs:
        at = given.clone()
        at[away] -= 1e-6
        at[to] += 1e-6
        slope = (least(at) - least(given)) / 1e-6
        assert float(gradient[to] - gradient[away]) == pytest.approx(slope, abs=1e-6)


def transporting(scheme, alpha):
    """A run in the second stage, with these weights of the sources."""
    run = SmallRun(scheme)
    run.enter(1)
    floats = {name: value.double() for name, value in run.batch.carried.items() if value.is_floating_point()}
    run.carry({**floats, "alpha": alpha})
    return run


def cost_of(run, beta):
    """One pair at a time."""
    source = torch.cat([run.domain(i) for i in range(K)]).detach()
    target, labels = run.domain(K).detach(), run.y.flatten()
    squares = torch.stack([((x - target) ** 2).sum(1) for x in source])
    probabilities = torch.softmax(run.modules["predictor"](target), 1)
    losses = torch.stack([-probabilities[:, label].log() for label in labels])
    return beta * squares / squares.mean() + losses


EXACT, ENTROPIC = Wjdot(beta=0.7, rate=0.5), Wjdot(plan="entropic", beta=0.7, rate=0.5, blur=0.002, iterations=3000)
INSIDE, EDGE = (0.5123, 0.1951, 0.2926), (0.7, 0.3, 0.0)


@pytest.mark.parametrize(
    ("scheme", "weights", "close"),
    [(EXACT, INSIDE, 1e-8), (EXACT, EDGE, 1e-8), (ENTROPIC, INSIDE, 5e-3), (ENTROPIC, EDGE, 2e-2)],
)
def test_the_predictor_follows_the_plan_and_alpha_the_potentials(scheme, weights, close):
    alpha = torch.tensor(weights)
    run = transporting(scheme, alpha)
    step, cost = run.step(), cost_of(run, 0.7)
    value, plan = exact(cost.detach(), (alpha / B).repeat_interleave(B))
    assert step.objective.item() == pytest.approx(value, rel=close)
    same_gradient(step.objective, (plan * cost).sum(), run.modules["predictor"].parameters(), atol=close)
    assert run.trained() == list(run.modules["predictor"].parameters())
    assert float(step.carried["alpha"].sum()) == pytest.approx(1)

    def least(weights):
        return exact(cost.detach(), (weights / B).repeat_interleave(B))[0]

    for towards in torch.eye(K) - alpha:  # the cost is convex in alpha, also where one is 0
        assert least(alpha + 0.1 * towards) >= value + 0.1 * float(step.gaps @ towards) - 4 * close
    if not alpha.all():
        return
    steps = 1e-3 * (torch.eye(K) - 1 / K)
    gradient = [(least(alpha + along) - least(alpha - along)) / 2e-3 for along in steps]
    assert step.gaps.tolist() == pytest.approx(gradient, abs=4 * close)
    plain = alpha - 0.5 * step.gaps  # all of it inside the simplex here, so the projection is the identity
    assert (plain > 0).all()
    assert torch.allclose(step.carried["alpha"], plain)
    run.enter(1)
    assert run.batch.carried["alpha"].tolist() == [pytest.approx(1 / K)] * K
    far = transporting(dataclasses.replace(scheme, rate=1e3), alpha).step().carried["alpha"]
    assert (float(far.min()), float(far.sum())) == (0, pytest.approx(1))


def test_each_sources_embedding_uses_its_own_classifier():
    run = SmallRun(Wjdot())
    assert run.stage.sees == ("sources",)
    heads = run.modules["critic"].of
    risks = [nn.functional.cross_entropy(heads[i](run.domain(i)), run.y[i]) for i in range(K)]
    step = takes(run, sum(risks) / K, of=run.modules["features"].parameters(), value=False, risks=risks)
    assert torch.autograd.grad(step.objective, next(run.modules["predictor"].parameters()))[0].any()


def test_all_examples_or_some_drawn_once_are_transported():
    run = SmallRun(Wjdot(examples=3))
    run.enter(1)
    carried = run.batch.carried
    assert carried["source"].shape == (3 * K, 5)
    assert carried["target"].shape == (3, 5)
    for i in range(K):
        rows = carried["shares"][:, i] > 0
        assert carried["shares"][rows, i].tolist() == [pytest.approx(1 / 3)] * 3
        of = torch.cdist(carried["source"][rows], run.domain(i)).argmin(1)
        assert torch.allclose(carried["source"][rows], run.domain(i)[of])
        assert len(set(of.tolist())) == 3
        assert carried["labels"][rows].tolist() == run.y[i][of].tolist()
    later = TargetPass(run.domain(K).detach(), torch.zeros(B, 3), torch.tensor([5, 6]).int())
    assert torch.equal(run.scheme.at_epoch(run.parts, later, carried, run.stage)["target"], carried["target"])


def test_without_pot_a_suite_says_what_to_install_in_one_line(tmp_path, monkeypatch, capsys):
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "ot" else known(name, *rest))
    line = refusal(capsys, suite(tmp_path, "fonts", methods={"WJDOT": {"scheme": "wjdot"}}))
    assert "needs POT; install it: pip install '.[transport]' in the clone, or set plan: entropic" in line
    entropic = {"scheme": {"wjdot": {"plan": "entropic"}}}
    assert main(["validate", suite(tmp_path, "fonts", methods={"WJDOT": entropic})]) == 0


def test_the_barycentre_of_wbt_does_not_depend_on_the_unit(monkeypatch):
    moved = []
    fit = transported.LogisticRegression.fit
    monkeypatch.setattr(
        transported.LogisticRegression, "fit", lambda self, rows, *rest: moved.append(rows.x) or fit(self, rows, *rest)
    )
    for unit in (1.0, 1e-4):
        Wbt(reg=0.05).fit(fit_data(SOURCES, unit), TASK, 0)
    np.testing.assert_allclose(moved[1] / 1e-4, moved[0], atol=1e-3)


def test_wbt_refuses_a_plan_that_was_not_found_and_classes_that_take_hours():
    with pytest.raises(PluginError, match=r"finds no plan to the target at reg 1e-05, .*; set a larger `reg`"):
        answers(Wbt(reg=1e-5), SOURCES, TARGET)
    many = FitData(np.zeros((3001, 2)), np.zeros(3001, np.int64), np.zeros(3001, np.int64), np.zeros((2, 2)))
    with pytest.raises(PluginError, match=r"moves 3001 examples of one class, .*; set a smaller `train`"):
        Wbt().fit(many, Task("classification", 2), 0)


def test_the_first_import_of_pot_leaves_the_random_state_as_it_was():
    code = (
        "import random, numpy as np; state = random.getstate(); from msda_bench_builtin.schemes import Wbt; "
        "from msda_bench.api import FitData, Task; x = np.random.default_rng(0).normal(size=(20, 2)); "
        "y = np.arange(20) % 2; Wbt().fit(FitData(x, y, np.arange(20) // 10, x), Task('classification', 2), 0); "
        "assert random.getstate() == state"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
