"""Metrics agree with scikit-learn, validators with closed forms, numpy, and known density ratios and target risks."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.optimize import check_grad, minimize
from scipy.special import softmax
from scipy.stats import entropy
from sklearn import metrics as sk

from msda_bench.api import Task, ValidationView
from msda_bench.engine.outcome import test_outcome as outcome_of
from msda_bench.engine.outcome import view_of
from msda_bench.plugins import discover
from msda_bench.testing import toy
from msda_bench_builtin.schemes.source_free import information
from msda_bench_builtin.validators import (
    Bnm,
    Dev,
    Entropy,
    ImportanceWeightedRisk,
    Infomax,
    Mano,
    Mixval,
    Snd,
    SourceAccuracy,
    SourceRisk,
)
from msda_bench_builtin.validators.density_ratio import log_ratio, weighted_losses

CLASSES = 5
REGRESSION = Task("regression")


def value(name, outputs, labels, task, params=None):
    metric = discover().entry("metric", name).create(params or {})
    shown = (outputs, labels) if metric.needs_outputs else ()
    return metric.value(view_of(outcome_of(outputs, task, labels), *shown))


TASK = Task("classification", CLASSES)


def predictions(seed):
    """Labels of every second class, and outputs that are right for many; twenty are equal."""
    torch.manual_seed(seed)
    labels = torch.randint(0, 3, (200,)) * 2
    outputs = torch.randn(200, CLASSES) + 1.5 * torch.nn.functional.one_hot(labels, CLASSES)
    outputs[:20] = outputs[20]
    return labels, outputs


@pytest.mark.parametrize("seed", range(3))
def test_classification_metrics_equal_scikit_learns(seed):
    labels, outputs = predictions(seed)
    predicted, shares, there = outputs.argmax(-1), outputs.double().softmax(-1), labels.unique().tolist()
    expected = {
        "accuracy": sk.accuracy_score(labels, predicted),
        "balanced_accuracy": np.mean([sk.recall_score(labels, predicted, labels=[c], average="macro") for c in there]),
        "macro_f1": sk.f1_score(labels, predicted, average="macro"),
        "auc": np.mean([sk.roc_auc_score(labels == c, shares[:, c]) for c in there]),
    }
    assert {name: value(name, outputs, labels, TASK) for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("positive", [0, 2, 4])
def test_metrics_of_one_class_equal_scikit_learns(positive):
    labels, outputs = predictions(positive)
    is_mine, scores, taken = (
        labels == positive,
        outputs.double().softmax(-1)[:, positive],
        outputs.argmax(-1) == positive,
    )
    expected = {
        "sensitivity": sk.recall_score(is_mine, taken),
        "specificity": sk.recall_score(~is_mine, ~taken),
        "auroc": sk.roc_auc_score(is_mine, scores),
        "auprc": sk.average_precision_score(is_mine, scores),
    }
    params = {"positive": positive}
    assert {name: value(name, outputs, labels, TASK, params) for name in expected} == pytest.approx(expected)
    of_others = {name: value(name, outputs, torch.ones_like(labels), TASK, params) for name in expected}
    assert [name for name, number in of_others.items() if math.isnan(number)] == ["sensitivity", "auroc", "auprc"]


def test_regression_metrics_equal_scikit_learns():
    torch.manual_seed(0)
    labels, outputs = torch.randn(2, 80)
    for name, other in (("mse", sk.mean_squared_error), ("mae", sk.mean_absolute_error), ("r2", sk.r2_score)):
        assert value(name, outputs.unsqueeze(-1), labels, REGRESSION) == pytest.approx(other(labels, outputs))


def test_r2_is_undefined_for_equal_labels_despite_rounding():
    labels = torch.full((333,), 0.1)
    assert math.isnan(value("r2", torch.zeros(333, 1), labels, REGRESSION))
    labels[0] = 0.2
    assert value("r2", torch.zeros(333, 1), labels, REGRESSION) < 0


def shifted(shift, predicted):
    """x is N(0, 1) in two sources and N(shift, 1) in the target; y = x, and the model is constant."""
    draw = np.random.default_rng(5)
    *sources, target = (torch.from_numpy(draw.normal(size=(4000, 1)) + by) for by in (0, 0, shift))
    return ValidationView(
        task=REGRESSION,
        source_features=tuple(sources),
        source_outputs=tuple(torch.full_like(x, predicted) for x in sources),
        source_labels=tuple(x.squeeze(-1) for x in sources),
        target_features=target,
        target_outputs=torch.full_like(target, predicted),
        mix=lambda first, second, share: torch.full((len(first), 1), predicted),
    )


def uneven(sources, rows):
    """A view of sources of 20 rows or so, the first cut to so many."""
    view = toy.validation_view(toy.CLASSIFICATION, sources, rows=20)
    parts = {name: getattr(view, name) for name in ("source_features", "source_outputs", "source_labels")}
    return dataclasses.replace(view, **{name: (first[:rows], *rest) for name, (first, *rest) in parts.items()})


def objective(parameters, sources, target, ridge):
    """The definition, example by example."""
    w, b = parameters[:-1], parameters[-1]
    of_sources = np.mean([np.log1p(np.exp(x @ w + b)).mean() for x in sources])
    return (of_sources + np.log1p(np.exp(-(target @ w + b))).mean()) / 2 + ridge / 2 * (w @ w)


@given(st.integers(0, 1000), st.integers(1, 3), st.sampled_from([0.01, 0.1, 1.0]))
@settings(deadline=None, max_examples=8)
def test_the_fit_agrees_with_a_gradient_free_search(seed, k, ridge):
    draw = np.random.default_rng(seed)
    sources = [draw.normal(size=(5 + i, 2)) for i in range(k)]
    target = draw.normal(size=(7, 2)) + 1
    found = np.append(*log_ratio(sources, target, ridge))
    searched = minimize(objective, np.zeros(3), (sources, target, ridge), "Nelder-Mead", options={"xatol": 1e-9})
    assert objective(found, sources, target, ridge) <= searched.fun + 1e-9
    assert check_grad(objective, lambda *_: np.zeros(3), found, sources, target, ridge) < 1e-5


@pytest.mark.parametrize(("shift", "predicted"), [(0.5, 0.0), (0.5, 1.0), (1.0, 1.0)])
def test_weighted_risks_equal_the_targets_risks(shift, predicted):
    """E_target (x - c)^2 = 1 + (shift - c)^2."""
    view = shifted(shift, predicted)
    for validator in (ImportanceWeightedRisk(ridge=1e-4, examples=10**6), Dev(ridge=1e-4, examples=10**6)):
        assert -validator.score(view) == pytest.approx(1 + (shift - predicted) ** 2, rel=0.12)


def test_source_accuracy_and_risk_give_every_source_the_same_weight():
    view = uneven(2, 5)
    hits, losses = [], []
    for outputs, labels in zip(view.source_outputs, view.source_labels, strict=True):
        hits.append(np.mean([int(row.argmax()) == int(label) for row, label in zip(outputs, labels, strict=True)]))
        losses.append(-np.mean([float(row.log_softmax(0)[label]) for row, label in zip(outputs, labels, strict=True)]))
    assert hits[0] != hits[1]
    assert SourceAccuracy().score(view) == pytest.approx(np.mean(hits))
    assert SourceRisk().score(view) == pytest.approx(-np.mean(losses), rel=1e-6)


def weighed(view, ridge=0.01, examples=2000):
    return weighted_losses(view, ridge=ridge, examples=examples)


@pytest.mark.parametrize("rows", [20, 10])
def test_dev_equals_its_formula(rows):
    """A source with more examples has no more weight: shares are by source."""
    view = uneven(2, rows)
    found = weighed(view)
    assert found.shares[:rows].sum() == pytest.approx(0.5)
    w, weighted = found.ratios, found.ratios * found.losses
    covariance = np.cov(weighted, w, aweights=found.shares, ddof=0)
    eta = -covariance[0, 1] / covariance[1, 1]
    expected = np.average(weighted, weights=found.shares) + eta * np.average(w, weights=found.shares) - eta
    assert -Dev().score(view) == pytest.approx(expected)


def test_an_example_does_not_affect_its_own_ratio_and_a_late_one_none():
    """Changing an odd example changes the ratios of all even ones, but of the odd ones only its own."""
    view, odd = uneven(1, 20), np.arange(20) % 2 == 1
    features, late = view.source_features[0].clone(), view.target_features.clone()
    features[3] += 5
    late[-1] += 5
    before, after = (weighed(one).ratios for one in (view, dataclasses.replace(view, source_features=(features,))))
    assert (before[~odd] != after[~odd]).all()
    assert (before[odd] == after[odd]).sum() == 9
    moved = dataclasses.replace(view, target_features=late)
    for examples, same in ((8, True), (2000, False)):
        assert (weighed(view, examples=examples).ratios == weighed(moved, examples=examples).ratios).all() == same


LOGITS = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 9), st.integers(2, 5)), elements=st.floats(-20, 20, allow_subnormal=False)
)


def view(logits):
    made = toy.validation_view(Task("classification", logits.shape[1]))
    return dataclasses.replace(made, target_outputs=torch.from_numpy(logits))


def test_infomax_is_what_source_free_stages_raise():
    logits = np.random.default_rng(3).normal(size=(20, 4)) * 2
    p = softmax(logits, axis=1)
    score = Infomax().score(view(logits))
    assert score == pytest.approx(entropy(p.mean(0)) - entropy(p, axis=1).mean(), abs=1e-12)
    assert score == pytest.approx(-information(torch.from_numpy(logits)).item(), abs=1e-3)  # of p + 1e-5


@given(LOGITS)
@settings(deadline=None, max_examples=15)
def test_entropy_snd_and_bnm_equal_their_formulae(logits):
    """Certainty; the entropy over the others; and the share of the largest nuclear norm."""
    p, (n, classes) = softmax(logits, axis=1), logits.shape
    assert Entropy().score(view(logits)) == pytest.approx(-entropy(p, axis=1).mean(), abs=1e-9)
    share = np.linalg.norm(p, "nuc") / math.sqrt(n * min(n, classes))
    assert Bnm().score(view(logits)) == pytest.approx(share, abs=1e-9)
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    rows = [entropy(softmax(np.delete(p @ p[i], i) / 0.05)) for i in range(len(p))]
    assert Snd().score(view(logits)) == pytest.approx(np.mean(rows), abs=1e-6)


@given(LOGITS, st.sampled_from([(5.0, 4), (1.2, 2)]))
@settings(deadline=None, max_examples=25)
def test_mano_is_the_papers_norm_of_normalised_outputs(logits, given):
    threshold, order = given
    n, classes = logits.shape
    surprise = -sum(math.log(p) for row in softmax(logits, axis=1) for p in row) / (n * classes)
    assume(abs(surprise - threshold) > 1e-6)
    powers = 0.0
    for row in logits:
        values = [math.exp(z) if surprise > threshold else 1 + z + z**2 / 2 for z in row]
        powers += sum((value / sum(values)) ** order for value in values)
    expected = (powers / (n * classes)) ** (1 / order)
    assert Mano(threshold=threshold, order=order).score(view(logits)) == pytest.approx(expected, rel=1e-9)


def steps(x, classes):
    """A model of numbers that predicts the class at floor(x)."""
    position = torch.from_numpy(x)

    def model(at):
        return torch.eye(max(classes) + 1)[torch.tensor(classes)[at.floor().long()]]

    made = toy.validation_view(Task("classification", max(classes) + 1))
    mixed = {"mix": lambda first, second, share: model(share * position[first] + (1 - share) * position[second])}
    return dataclasses.replace(made, target_outputs=model(position), **mixed)


@pytest.mark.parametrize(("share", "examples"), [(0.55, 2000), (0.7, 60)])
def test_mixval_equals_its_definition_example_by_example(share, examples):
    draw = np.random.default_rng(0)
    x, classes = draw.uniform(0, 9, size=101), draw.integers(0, 4, size=9).tolist()

    def predict(at):
        return int(classes[math.floor(at)])

    kept = {True: [], False: []}
    n = min(examples, len(x))
    for i, a in enumerate(x[:n]):
        same = [j for j in (*range(i + 1, n), *range(i)) if predict(x[j]) == predict(a)]
        for j in (*same[:1], *([n - 1 - i] if predict(x[n - 1 - i]) != predict(a) else [])):
            kept[predict(x[j]) == predict(a)].append(predict(share * a + (1 - share) * x[j]) == predict(a))
    expected = (np.mean(kept[True]) + np.mean(kept[False])) / 2
    assert 0.2 < expected < 0.9
    assert Mixval(share=share, examples=examples).score(steps(x, classes)) == pytest.approx(expected)


def test_snd_uses_only_the_first_examples():
    logits = np.random.default_rng(0).normal(size=(12, 3))
    assert Snd(examples=7).score(view(logits)) == Snd().score(view(logits[:7]))


@pytest.mark.parametrize(
    ("validator", "shown", "says"),
    [
        (Dev(), uneven(1, 1), "two examples of every source"),
        (Mixval(), steps(np.array([0.5]), [0, 1]), "needs two examples"),
        (Snd(), view(np.zeros((1, 3))), "needs two examples"),
    ],
)
def test_too_few_examples_are_refused(validator, shown, says):
    with pytest.raises(ValueError, match=says):
        validator.score(shown)
