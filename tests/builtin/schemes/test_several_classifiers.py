"""Schemes of several models or classifiers agree with plain loops."""

import math
from itertools import combinations

import pytest
import torch
from torch import nn

from msda_bench.api import PluginError, Sizes, Stage
from msda_bench_builtin.schemes import BestSingle, Ensemble, M3sda, Mcd, Mfsan, Simpal
from tests.builtin.formulas import B, K, SmallRun, mmd, moment_distance, takes

pytestmark = pytest.mark.usefixtures("double")


def model(run, i):
    """A source's features and predictor, by name."""
    return run.modules if i == 0 else run.modules["critic"][i - 1]


def answer(run, i, x):
    return model(run, i)["predictor"](model(run, i)["features"](x))


def loss(run, i, source):
    """The risk of one source's model on another source."""
    return nn.functional.cross_entropy(answer(run, i, run.x[source * B : (source + 1) * B]), run.y[source])


def elsewhere(run):
    """The mean loss of each source's model on the other sources."""
    return [sum(loss(run, i, j).item() for j in range(K) if j != i) / (K - 1) for i in range(K)]


def branch(run, i, domain):
    """Source i's own features of a domain, and its classifier's logits."""
    critic = run.modules["critic"]
    own = critic["extractors"].of[i](run.domain(domain))
    return own, critic["classifiers"].of[i](own)


def logits(run, domain):
    """The logits of each classifier."""
    return [head(run.domain(domain)) for head in run.modules["critic"].of]


@pytest.mark.parametrize("scheme", [Ensemble(), BestSingle()])
def test_each_model_learns_only_from_its_own_source(scheme):
    run = SmallRun(scheme)
    risks = [loss(run, i, i) for i in range(K)]
    takes(run, sum(risks), risks=risks)
    parts = [(model(run, i)["features"], model(run, i)["predictor"]) for i in range(K)]
    first, *others = [nn.utils.parameters_to_vector(nn.ModuleList(of).parameters()) for of in parts]
    assert not any(other.eq(first).any() for other in others)


ANSWERS = {
    Ensemble: lambda run: [answer(run, i, run.x[-B:]) for i in range(K)],
    Mfsan: lambda run: [branch(run, i, K)[1] for i in range(K)],
    Simpal: lambda run: logits(run, K),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_probabilities_are_averaged(kind):
    run = SmallRun(kind())
    features, outputs = run.predict(run.x[-B:])
    assert torch.allclose(outputs.exp(), sum(one.softmax(1) for one in ANSWERS[kind](run)) / K)
    all_features = [model(run, i)["features"](run.x[-B:]) for i in range(K)] if kind is Ensemble else [run.domain(K)]
    assert torch.allclose(features, torch.cat(all_features, 1))


def test_regression_outputs_are_averaged_directly():
    run = SmallRun(Ensemble())
    for i in range(K):
        model(run, i)["predictor"] = nn.Linear(5, 1)
    _, outputs = run.predict(run.x)
    assert torch.allclose(outputs, sum(answer(run, i, run.x) for i in range(K)) / K)


def follow(run, scheme=None, carried=None):
    """The tensors that are carried after an update."""
    batch = run.batch if carried is None else run.batch._replace(carried=carried)
    with torch.no_grad():
        return (scheme or run.scheme).after_step(run.parts, batch, run.stage.phases[0])


def test_the_best_single_is_best_on_the_other_sources():
    """A model's own source is ignored, and the chosen model is tested and recorded."""
    run = SmallRun(BestSingle(decay=0.9, by="loss"))
    others = elsewhere(run)
    best = min(range(K), key=others.__getitem__)
    assert best != 0  # which is also what no choice at all gives
    for share in (0.1, 0.19):
        run.carry(follow(run))
        assert run.batch.carried["elsewhere"].tolist() == pytest.approx([share * one for one in others])
    taken = run.step()
    assert taken.weights.tolist() == [float(i == best) for i in range(K)]
    assert taken.gaps.tolist() == pytest.approx([0.19 * one for one in others])
    features, outputs = run.predict(run.x)
    assert torch.allclose(outputs, answer(run, best, run.x))
    assert torch.allclose(features, model(run, best)["features"](run.x))


def test_the_best_single_makes_the_fewest_errors_and_of_equal_ones_has_the_least_loss():
    """The model of the least loss is sure of nothing; the other two are as often right, one of them with less loss."""
    run = SmallRun(BestSingle(decay=0.9))
    run.y.zero_()
    run.y[:, 0] = 2  # one of four examples of each source
    for i, biases in enumerate(([0.0, 0.1, 0.0], [5.0, 0.0, 0.0], [9.0, 0.0, 0.0])):
        predictor = model(run, i)["predictor"]
        with torch.no_grad():
            predictor.weight.zero_()
            predictor.bias.copy_(torch.tensor(biases))
    first, second, third = elsewhere(run)
    assert first < second < third
    run.carry(follow(run))
    assert run.batch.carried["shares"].tolist() == [0.0, 1.0, 0.0]
    assert run.step().gaps.tolist() == pytest.approx([0.1, 0.025, 0.025])
    by_loss = follow(run, BestSingle(by="loss"), {"elsewhere": torch.zeros(K)})
    assert by_loss["shares"].tolist() == [1.0, 0.0, 0.0]


def test_regression_chooses_by_loss():
    carried = BestSingle().carry(SmallRun(BestSingle()).parts, Sizes((4, 4), 4, 5, 1), Stage("all"))
    assert set(carried) == {"elsewhere", "shares"}


def terms(run):
    """Risks and MMDs of each source, and the mean distance of every two classifiers on the target."""
    k = run.k
    risks = [nn.functional.cross_entropy(branch(run, i, i)[1], run.y[i]) for i in range(k)]
    gaps = [mmd(branch(run, i, i)[0], branch(run, i, k)[0], 5) for i in range(k)]
    answers = [branch(run, i, k)[1].softmax(1) for i in range(k)]
    return risks, gaps, [[(one - other).abs().mean() for one in answers] for other in answers]


@pytest.mark.parametrize(("k", "progress", "rho"), [(1, 1.0, 10.0), (K, 0.0, 10.0), (K, 0.2, 5.0), (K, 0.2, None)])
def test_mfsan_equals_plain_loops(k, progress, rho):
    run = SmallRun(Mfsan(ramp=rho), k=k, progress=progress)
    risks, gaps, apart = terms(run)
    pairs = [apart[i][j] for i, j in combinations(range(k), 2)]
    ramp = 1.0 if rho is None else 2 / (1 + math.exp(-rho * progress)) - 1
    expected = sum(risks) / k + run.mu * ramp * (sum(gaps) / k + sum(pairs) / max(1, len(pairs)))
    takes(run, expected, risks=risks, gaps=gaps)


def test_an_update_a_source_has_that_sources_terms_alone():
    """As in the authors' loop: risk, MMD and mean distance from the other classifiers; together the joint objective."""
    run, joint = SmallRun(Mfsan(ramp=None, turns=K)), SmallRun(Mfsan(ramp=None))
    risks, gaps, apart = terms(run)
    for i, phase in enumerate(run.stage.phases):
        takes(run, risks[i] + run.mu * (gaps[i] + sum(apart[i]) / (K - 1)), phase)
    mean = sum(run.step(phase).objective for phase in run.stage.phases) / K
    assert mean.item() == pytest.approx(joint.step().objective.item())
    assert run.scheme.updates == K
    with pytest.raises(PluginError, match="has turns: 4, but 3 sources; set at most 3"):
        SmallRun(Mfsan(turns=K + 1))


def adapting():
    """A run in the second stage, whose classifiers agree on some of the target's four examples; and their classes."""
    run = SmallRun(Simpal())
    with torch.no_grad():
        first, *others = run.modules["critic"].of
        for head in others:
            head.weight.add_(first.weight, alpha=3.0)
    run.enter(1)
    votes = zip(*(answers.argmax(1).tolist() for answers in logits(run, K)), strict=True)
    labels = [classes[0] if len(set(classes)) == 1 else None for classes in votes]
    assert 0 < labels.count(None) < B  # the tests need both kinds
    return run, labels


@pytest.mark.parametrize("stage", [0, 1])
def test_every_classifier_learns_every_source(stage):
    run, labels = adapting() if stage else (SmallRun(Simpal()), [])
    losses = [torch.stack([nn.functional.cross_entropy(one, run.y[i]) for one in logits(run, i)]) for i in range(K)]
    gaps = [labels.count(None) / B] * K
    takes(run, torch.stack(losses).mean(), risks=[own.mean() for own in losses], gaps=gaps)


def test_the_target_is_learned_from_agreed_labels():
    """Examples come in another order than that in which they were labelled."""
    run, labels = adapting()
    order = torch.tensor([2, 0, 3, 1])
    x = torch.cat([run.x[: K * B], run.x[K * B :][order]])
    run.batch = run.batch._replace(x=x, rows=torch.cat([run.batch.rows[: K * B], order]))
    losses = [
        nn.functional.cross_entropy(head(run.domain(K)[i : i + 1]), torch.tensor([label]))
        for head in run.modules["critic"].of
        for i, label in enumerate(labels)
        if label is not None
    ]
    phase = run.stage.phases[1]
    takes(run, torch.stack(losses).mean(), phase)
    run.carry({"agreed": torch.zeros(B)})  # a batch without agreement adds nothing
    assert not any(one.any() for one in torch.autograd.grad(run.step(phase).objective, run.trained(phase)))


HEADS = ("predictor", "critic")


def moments(run, scheme):
    """The moment distance of all domains, and the distance of each source to the target."""
    k, domains = run.k, [run.domain(i) for i in range(run.k + 1)]

    def between(i, j):
        return moment_distance(domains[i], domains[j], scheme.orders, centred=scheme.centred)

    gaps, pairs = [between(i, k) for i in range(k)], [between(i, j) for i, j in combinations(range(k), 2)]
    if scheme.scale == "sum":
        return torch.stack(gaps + pairs).sum(), gaps
    return torch.stack(gaps).mean() + (torch.stack(pairs).mean() if pairs else 0), gaps


def disagreement(run, i):
    first, second = (torch.softmax(run.modules[name](run.domain(i)), 1) for name in HEADS)
    return (first - second).abs().mean()


@pytest.mark.parametrize("k", [1, K])
@pytest.mark.parametrize(
    "scheme", [M3sda(), M3sda(orders=2, scale="mean"), M3sda(orders=1), M3sda(orders=5, centred=True), Mcd()]
)
def test_each_phase_equals_plain_loops(scheme, k):
    run = SmallRun(scheme, k=k)
    risks, apart = torch.stack([run.risks(head) for head in HEADS]), disagreement(run, k)
    if isinstance(scheme, M3sda):
        distance, gaps = moments(run, scheme)
        first, task = risks.sum() + run.mu * distance, risks.sum()
    else:
        gaps = [(apart - disagreement(run, i)).abs() for i in range(k)]
        first = task = risks.sum() / k
    for phase, expected in zip(run.stage.phases[:3], (first, task - apart, apart), strict=True):
        takes(run, expected, phase, risks=risks.mean(0), gaps=gaps)
