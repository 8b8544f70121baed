"""SHOT, DECISION, AaD and KD3A agree with plain loops over examples, models and orders of the sources."""

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import nn

from msda_bench.api import Network, PluginError, TargetPass
from msda_bench.functional import split_key, uniform
from msda_bench_builtin.schemes import Aad, Decision, Kd3a, Shot
from msda_bench_builtin.schemes.decision import joint_labels
from msda_bench_builtin.schemes.kd3a import shapley, vote
from msda_bench_builtin.schemes.source_free import pseudo_labels
from tests.builtin.formulas import CLASSES, B, D, K, SmallRun, same_gradient, takes
from tests.builtin.suites import loaded
from tests.own import suite

pytestmark = pytest.mark.usefixtures("double")


def clouds(seed, n=40, width=6, classes=4):
    """Features in clouds, and logits that are right for most; the last class is the second guess in one cloud."""
    torch.manual_seed(seed)
    kinds = torch.randint(0, classes - 1, (n,))
    means = 3 * torch.randn(classes, width)
    features = means[kinds] + torch.randn(n, width)
    outputs = 2 * nn.functional.one_hot(kinds, classes) + torch.randn(n, classes)
    outputs[:, -1] = -5
    outputs[kinds == 0, -1] = outputs[kinds == 0].amax(1) - 0.1
    return features, outputs


def with_one(features):
    rows = np.hstack([features.numpy(), np.ones((len(features), 1))])
    return np.stack([row / np.linalg.norm(row) for row in rows])


def class_means(rows, shares):
    return np.stack([(rows * share[:, None]).sum(0) / (share.sum() + 1e-8) for share in shares.T])


@pytest.mark.parametrize("seed", range(3))
def test_pseudo_labels_belong_to_the_nearest_centre(seed):
    """Two rounds, by probabilities and then by labels, without classes that are never predicted."""
    features, outputs = clouds(seed)
    rows, shares = with_one(features), outputs.softmax(1).numpy()
    labels = shares.argmax(1)
    for _ in range(2):
        there = sorted(set(labels))
        far = cdist(rows, class_means(rows, shares)[there], "cosine")
        labels = np.array(there)[far.argmin(1)]
        shares = np.eye(outputs.shape[1])[labels]
    assert pseudo_labels(features, outputs).tolist() == labels.tolist() != outputs.argmax(1).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_joint_labels_belong_to_the_nearest_summed_centre(seed):
    each = [clouds(seed), clouds(seed + 100)]
    alpha = torch.tensor([0.3, 0.7])
    rows, middles, there = np.zeros((40, 7)), np.zeros((4, 7)), set()
    for (features, outputs), weight in zip(each, alpha.tolist(), strict=True):
        own = with_one(features)
        nearest = cdist(own, class_means(own, outputs.softmax(1).numpy()), "cosine").argmin(1)
        there |= set(nearest)
        rows += weight * own
        middles += weight * class_means(own, np.eye(4)[nearest])
    far = cdist(rows, middles)
    far[:, [c for c in range(4) if c not in there]] = np.inf
    assert joint_labels(*zip(*each, strict=True), alpha).tolist() == far.argmin(1).tolist()


def network(run, i, x):
    """Features and logits of source i's network; the first is the run's own, and with SHOT the only one."""
    parts = run.modules if i == 0 else run.modules["critic"][str(i - 1)]
    features = parts["features"](x)
    return features, parts["predictor"](features)


@pytest.mark.parametrize(
    ("scheme", "first", "second"),
    [
        (Shot(), ("features", "predictor"), ("features",)),
        (Aad(adapt=2.0), ("features", "predictor"), ("features", "predictor")),
        (Decision(), ("features", "predictor", "critic"), ("features", "critic")),
    ],
)
def test_each_network_learns_its_sources_with_smoothed_labels(scheme, first, second):
    """A tenth of each label is spread evenly over the three classes. DECISION alone has a network for each source."""
    stages = [(stage.sees, stage.phases[0].trains, stage.share) for stage in scheme.stages]
    assert stages == [(("sources",), first, 1.0), (("target",), second, scheme.adapt)]
    k = K if isinstance(scheme, Decision) else 1
    assert scheme.groups(("a", "b"), "t") == ((("a",), ("b",)) if k > 1 else (("a", "b"),))
    run = SmallRun(scheme, k=k)
    outputs = [network(run, i, run.x[i * B : (i + 1) * B])[1] for i in range(k)]
    smoothed = [
        -(0.9 * row[label] + 0.1 * row.sum() / 3) / B
        for of, labels in zip(outputs, run.y, strict=True)
        for row, label in zip(of.log_softmax(1), labels, strict=True)
    ]
    takes(run, sum(smoothed), risks=[nn.functional.cross_entropy(of, run.y[i]) for i, of in enumerate(outputs)])


@pytest.mark.parametrize("scheme", [Shot(), Decision()])
def test_on_the_target_it_maximises_information_and_learns_pseudo_labels(scheme):
    run = SmallRun(scheme)
    alpha = torch.ones(1)
    if isinstance(scheme, Decision):
        with torch.no_grad():
            run.modules["critic"]["weights"].w.copy_(torch.tensor([0.5, -1.0, 2.0]))
        shares = torch.sigmoid(run.modules["critic"]["weights"].w)
        alpha = shares / shares.sum()
    run.enter(1)
    order = torch.tensor([2, 0, 3, 1])
    x = run.x[K * B :][order]
    run.batch = run.batch._replace(x=x, rows=order)
    outputs = sum(weight * network(run, i, x)[1] for i, weight in enumerate(alpha))
    p = outputs.softmax(1)
    entropy = -(p * (p + 1e-5).log()).sum(1).mean()
    spread = -(p.mean(0) * (p.mean(0) + 1e-5).log()).sum()
    taught = nn.functional.cross_entropy(outputs, run.batch.carried["labels"][order])
    named = run.modules.named_parameters()
    fixed, trained = [], []
    for name, value in named:
        (fixed if "predictor" in name else trained).append(value)
    weights = alpha if isinstance(scheme, Decision) else []
    taken = takes(run, entropy - spread + 0.3 * taught, of=trained, weights=weights)
    if isinstance(scheme, Decision):  # SHOT's phase does not train its predictor; of DECISION's critic it trains a part
        assert set(torch.autograd.grad(taken.objective, fixed, allow_unused=True)) == {None}


def test_decision_predicts_with_the_weighted_networks():
    run = SmallRun(Decision())
    features, outputs = run.predict(run.x)
    each = [network(run, i, run.x) for i in range(K)]
    assert torch.allclose(features, torch.cat([own for own, _ in each], 1))
    assert torch.allclose(outputs, sum(answers for _, answers in each) / K)


def test_aad_is_attracted_by_neighbours_and_disperses_the_batch():
    """The released code's loss: its `kl_div` of probabilities has the gradient of a product."""
    run = SmallRun(Aad(neighbours=2, beta=2.0))
    run.enter(1)
    rows = torch.tensor([2, 0, 3])  # the second example is not drawn, and keeps what the memory had at the start
    run.batch = run.batch._replace(x=run.x[K * B :][rows], rows=rows, progress=0.3)
    run.descend(0.5)
    bank, scores = (run.batch.carried[name].clone() for name in ("features", "answers"))
    features, outputs = network(run, 0, run.batch.x)
    p = outputs.softmax(1)
    for row, own, answer in zip(rows, features.detach(), p.detach(), strict=True):
        assert not torch.allclose(scores[row], answer)
        bank[row], scores[row] = own / own.norm(), answer
    loss = 0.0
    for i, row in enumerate(rows):
        far = cdist(features[i : i + 1].detach().numpy(), bank.numpy(), "cosine")[0]
        nearest = [j for j in np.argsort(far) if j != row][:2]
        loss = loss + nn.functional.kl_div(p[i].expand(2, -1), scores[nearest], reduction="sum") / len(rows)
        apart = sum((p[i] * p[m]).sum() for m in range(len(rows)) if m != i)
        loss = loss + (1 + 10 * 0.3) ** -2.0 * apart / len(rows)
    taken = takes(run, loss, value=False)
    assert torch.allclose(taken.carried["features"], bank)
    assert torch.allclose(taken.carried["answers"], scores)


def test_aads_memory_is_of_the_stages_start_until_an_example_is_drawn():
    run = SmallRun(Aad())
    run.enter(1)
    features, outputs = network(run, 0, run.x[K * B :])
    memory = run.batch.carried
    assert torch.allclose(memory["answers"], outputs.softmax(1))
    assert torch.allclose(memory["features"], nn.functional.normalize(features))
    later = TargetPass(features + 1, outputs - outputs.flip(0), run.batch.key, torch.tensor(0.5))
    kept = run.scheme.at_epoch(run.parts, later, memory, run.stage)
    assert all(torch.equal(kept[name], value) for name, value in memory.items())


def one_vote(answers, gate):
    """The consensus of some models' probabilities for one example: class, sum, and whether any model is certain."""
    tops = [max(answer) for answer in answers]
    sure = [top > gate for top in tops]
    sums = [0.0] * CLASSES
    for answer, top, passes in zip(answers, tops, sure, strict=True):
        if passes or not any(sure):
            sums[answer.index(top)] += top
    return sums.index(max(sums)), max(sums), any(sure)


@pytest.mark.parametrize("gate", [0.0, 0.6])
def test_the_vote_and_each_subsets_quality_equal_plain_loops(gate):
    torch.manual_seed(4)
    knowledge = torch.softmax(3 * torch.randn(K, 9, CLASSES), -1)
    consensus, passed, qualities = vote(knowledge, gate)
    for place in range(9):
        answers = knowledge[:, place].tolist()
        winner, _, sure = one_vote(answers, gate)
        assert consensus[place].tolist() == [float(c == winner) for c in range(CLASSES)]
        assert bool(passed[place]) == sure
        for row, chosen in enumerate(product((False, True), repeat=K)):
            _, quality, sure = one_vote([answers[i] for i in range(K) if chosen[i]], gate)
            assert float(qualities[row, place]) == pytest.approx(quality * sure)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_consensus_focus_equals_the_mean_over_all_orders(k):
    torch.manual_seed(k)
    values = torch.rand(2**k)
    rows = {chosen: row for row, chosen in enumerate(product((0, 1), repeat=k))}
    gains = [[] for _ in range(k)]
    for order in permutations(range(k)):
        here = [0] * k
        for player in order:
            before = values[rows[tuple(here)]]
            here[player] = 1
            gains[player].append(float(values[rows[tuple(here)]] - before))
    assert shapley(values, k).tolist() == pytest.approx([sum(each) / len(each) for each in gains])


def extractors(run):
    """The first weight of each model's current extractor, with the target's last."""
    names = [*(f"critic.features.{i}.0.weight" for i in range(K)), "features.0.weight"]
    return [run.parts.weights[name] + run.batch.carried[name] for name in names]


def test_each_model_learns_from_its_own_labels():
    """With one initial extractor, sources learn from labels and the target from the consensus on mixed examples."""
    run = SmallRun(Kd3a(gate=0.0, gate_end=0.0))
    assert all(torch.allclose(one, run.modules["features"][0].weight) for one in extractors(run))
    predictors, target = run.modules["critic"]["predictor"], run.x[K * B :]
    local = [head(run.modules["features"](run.x)) for head in predictors]  # all extractors are equal at the start
    risks = [nn.functional.cross_entropy(local[i][i * B : (i + 1) * B], run.y[i]) for i in range(K)]
    step = takes(run, sum(risks), of=predictors.parameters(), value=False, risks=risks)

    consensus, _, _ = vote(torch.softmax(torch.stack(local)[:, K * B :], -1), 0.0)
    first, second = split_key(run.batch.key, torch.arange(2, dtype=torch.int32)).unbind()
    share, others = float(uniform(first, (3,)).median()), uniform(second, (B,)).argsort().tolist()
    total = 0.0
    for place, other in enumerate(others):
        mixed = share * target[place] + (1 - share) * target[other]
        logs = torch.log_softmax(run.modules["predictor"](run.modules["features"](mixed)), -1)
        label = share * consensus[place] + (1 - share) * consensus[other]
        total = total - (label * logs).sum() / B
    same_gradient(step.objective, total, run.network())


def test_examples_of_which_no_model_is_certain_get_no_label():
    run = SmallRun(Kd3a(gate=0.999, gate_end=0.999))
    step = run.step()
    gradients = torch.autograd.grad(step.objective, list(run.modules["predictor"].parameters()))
    assert not any(gradient.any() for gradient in gradients)
    assert [step.carried[name].tolist() for name in ("focus", "passed", "seen")] == [[0.0] * K, 0.0, B]


def test_an_epoch_ends_with_the_average_that_is_tested():
    run = SmallRun(Kd3a(gate=0.0, gate_end=0.0, mixup=False))
    assert run.batch.carried["alpha"].tolist() == [1 / (K + 1)] * (K + 1)
    for epoch in range(2):
        before, sums = run.batch.carried["alpha"], torch.zeros(K)
        for _ in range(3):
            step = run.step()
            sums += step.carried["focus"] - run.batch.carried["focus"]
            run.descend(0.3)
            run.carry(step.carried)
        assert int(run.batch.carried["seen"]) == 3 * B
        now = torch.cat([(1 - 1 / (K + 1)) * sums / sums.sum(), torch.tensor([1 / (K + 1)])])
        alpha = 0.9 * before + 0.1 * now if epoch else now
        apart = extractors(run)
        assert not torch.allclose(apart[0], apart[1])
        features, _ = run.predict(run.x)
        nothing = TargetPass(torch.zeros(B, D), torch.zeros(B, CLASSES), run.batch.key)
        run.carry(run.scheme.at_epoch(run.parts, nothing, run.batch.carried, run.stage))
        assert torch.allclose(run.batch.carried["alpha"], alpha)
        mean = sum(float(share) * one for share, one in zip(alpha, apart, strict=True))
        assert all(torch.allclose(one, mean) for one in extractors(run))
        assert torch.allclose(features, run.predict(run.x)[0])


def test_too_many_sources_for_all_subsets_are_refused():
    with pytest.raises(PluginError, match="at most 12, not 13"):
        Kd3a().build(Network(nn.Linear(2, 2), nn.Linear(2, 2), 2), 13, None)


@pytest.mark.parametrize(("by", "noted"), [("source_accuracy", True), ("infomax", False), ("oracle", False)])
def test_a_note_names_source_free_methods_that_scores_of_the_sources_select(by, noted, tmp_path):
    changes = {
        "methods": {name: {"scheme": scheme} for name, scheme in (("SRC", "pooled"), ("SHOT", "shot"), ("AAD", "aad"))},
        "validators": ["source_accuracy", "infomax"],
        "select": {"how": "grid", "budget": 2, "by": by, "space": {"training.optimizer.adam.lr": [0.001, 0.01]}},
    }
    (table,) = loaded(Path(suite(tmp_path, "opinions", **changes)))[1].plan.experiments
    notes = [note for note in table.notes if "adapt without the sources" in note]
    assert [note.startswith("SHOT, AAD: ") for note in notes] == [True] * noted
