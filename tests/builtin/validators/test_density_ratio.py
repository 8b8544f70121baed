"""Importance-weighted validators, on normal domains with known density ratios and target risks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize

from msda_bench.api import Task, ValidationView
from msda_bench.testing import toy
from msda_bench_builtin.validators import Dev, ImportanceWeightedRisk, SourceRisk
from msda_bench_builtin.validators.density_ratio import log_ratio, weighted_losses

REGRESSION = Task("regression")


def shifted(shift: float, n: int = 4000, predicted: float = 0.0) -> ValidationView:
    """x is N(0, 1) in two sources and N(shift, 1) in the target; y = x, and the model is constant."""
    draw = np.random.default_rng(5)
    sources = [torch.from_numpy(draw.normal(size=(n, 1))) for _ in range(2)]
    target = torch.from_numpy(draw.normal(size=(n, 1)) + shift)
    return ValidationView(
        task=REGRESSION,
        source_features=tuple(sources),
        source_outputs=tuple(torch.full_like(x, predicted) for x in sources),
        source_labels=tuple(x.squeeze(-1) for x in sources),
        target_features=target,
        target_outputs=torch.full_like(target, predicted),
        mix=lambda first, second, share: torch.full((len(first), 1), predicted),
    )


def objective(parameters: np.ndarray, sources: list[np.ndarray], target: np.ndarray, ridge: float) -> float:
    """The definition, example by example."""
    w, b = parameters[:-1], parameters[-1]
    of_sources = np.mean([np.log1p(np.exp(x @ w + b)).mean() for x in sources])
    return (of_sources + np.log1p(np.exp(-(target @ w + b))).mean()) / 2 + ridge / 2 * (w @ w)


@given(st.integers(0, 1000), st.integers(1, 3), st.sampled_from([0.01, 0.1, 1.0]))
@settings(deadline=None, max_examples=8)
def test_the_fit_agrees_with_a_gradient_free_search(seed: int, k: int, ridge: float) -> None:
    draw = np.random.default_rng(seed)
    sources = [draw.normal(size=(5 + i, 2)) for i in range(k)]
    target = draw.normal(size=(7, 2)) + 1
    coefficients, intercept = log_ratio(sources, target, ridge)
    found = np.append(coefficients, intercept)
    searched = minimize(objective, np.zeros(3), (sources, target, ridge), "Nelder-Mead", options={"xatol": 1e-9})
    least = objective(found, sources, target, ridge)
    assert least <= searched.fun + 1e-9
    assert check_grad(objective, lambda *_: np.zeros(3), found, sources, target, ridge) < 1e-5


def test_ratios_equal_those_of_the_normal_densities() -> None:
    found = weighted_losses(shifted(1.0), ridge=1e-4, examples=10**6)
    x = np.sqrt(found.losses) * np.sign(np.concatenate([y.numpy() for y in shifted(1.0).source_labels]))
    assert np.sqrt(np.mean((np.log(found.ratios) - (x - 0.5)) ** 2)) < 0.1
    assert found.shares.sum() == pytest.approx(1)


def test_weighted_risks_equal_the_targets_risks() -> None:
    """E_target (x - c)^2 = 1 + (shift - c)^2."""
    for shift, predicted in [(0.5, 0.0), (0.5, 1.0), (1.0, 1.0)]:
        view = shifted(shift, predicted=predicted)
        expected = 1 + (shift - predicted) ** 2
        for validator in (ImportanceWeightedRisk(ridge=1e-4, examples=10**6), Dev(ridge=1e-4, examples=10**6)):
            assert -validator.score(view) == pytest.approx(expected, rel=0.12)


def test_weighted_validators_choose_the_better_model_on_the_target() -> None:
    good, bad = (shifted(1.0, predicted=predicted) for predicted in (1.0, 0.0))
    assert SourceRisk().score(good) < SourceRisk().score(bad)
    for validator in (ImportanceWeightedRisk(), Dev()):
        assert validator.score(good) > validator.score(bad)


def test_a_target_like_the_sources_gives_the_sources_risk() -> None:
    view = shifted(0.0)
    for validator in (ImportanceWeightedRisk(), Dev()):
        assert validator.score(view) == pytest.approx(SourceRisk().score(view), rel=0.02)


def test_uninformative_features_give_weights_of_one() -> None:
    made = toy.validation_view(toy.CLASSIFICATION, 3)
    blind = dataclasses.replace(
        made,
        source_features=tuple(torch.ones_like(features) for features in made.source_features),
        target_features=torch.ones_like(made.target_features),
    )
    for validator in (ImportanceWeightedRisk(), Dev()):
        assert validator.score(blind) == pytest.approx(SourceRisk().score(blind), rel=1e-6)


def test_the_control_variate_is_exact_where_the_loss_is_constant() -> None:
    """Then L = c w, eta = -c, and the risk is c, whatever the ratios."""
    made = toy.validation_view(toy.CLASSIFICATION, 3)
    flat = dataclasses.replace(made, source_outputs=tuple(torch.zeros_like(one) for one in made.source_outputs))
    assert Dev().score(flat) == pytest.approx(-np.log(3), rel=1e-12)
    assert ImportanceWeightedRisk().score(flat) != pytest.approx(-np.log(3), rel=1e-6)


def test_dev_equals_its_formula() -> None:
    view = toy.validation_view(toy.CLASSIFICATION, 2, rows=20)
    found = weighted_losses(view, ridge=0.01, examples=2000)
    w, weighted = found.ratios, found.ratios * found.losses
    covariance = np.cov(weighted, w, aweights=found.shares, ddof=0)
    eta = -covariance[0, 1] / covariance[1, 1]
    expected = np.average(weighted, weights=found.shares) + eta * np.average(w, weights=found.shares) - eta
    assert -Dev().score(view) == pytest.approx(expected)


def test_sources_have_equal_weight() -> None:
    """A source with twice the examples has no more weight: shares are by source."""
    view = shifted(0.7, n=40)
    found = weighted_losses(view, ridge=0.01, examples=2000)
    assert found.shares[:40].sum() == pytest.approx(0.5)
    short = dataclasses.replace(
        view,
        source_features=(view.source_features[0][:10], view.source_features[1]),
        source_outputs=(view.source_outputs[0][:10], view.source_outputs[1]),
        source_labels=(view.source_labels[0][:10], view.source_labels[1]),
    )
    assert weighted_losses(short, ridge=0.01, examples=2000).shares[:10].sum() == pytest.approx(0.5)


def test_an_example_does_not_affect_its_own_ratio() -> None:
    """Changing an odd example changes the ratios of all even ones, but of the odd ones only its own."""
    view = toy.validation_view(toy.CLASSIFICATION, 1, rows=20)
    features = view.source_features[0].clone()
    features[3] += 5
    moved = dataclasses.replace(view, source_features=(features,))
    before, after = (weighted_losses(one, ridge=0.01, examples=2000).ratios for one in (view, moved))
    odd = np.arange(20) % 2 == 1
    assert (before[~odd] != after[~odd]).all()
    assert (before[odd] == after[odd]).sum() == 9


def test_the_fit_uses_only_the_first_examples() -> None:
    view = toy.validation_view(toy.CLASSIFICATION, 2, rows=20)
    late = view.target_features.clone()
    late[-1] += 5
    moved = dataclasses.replace(view, target_features=late)
    few, all_ = ({"ridge": 0.01, "examples": count} for count in (8, 2000))
    assert (weighted_losses(view, **few).ratios == weighted_losses(moved, **few).ratios).all()
    assert (weighted_losses(view, **all_).ratios != weighted_losses(moved, **all_).ratios).any()


def test_a_source_of_one_example_is_refused() -> None:
    made = toy.validation_view(toy.CLASSIFICATION, 1)
    short = dataclasses.replace(
        made,
        source_features=(made.source_features[0][:1],),
        source_outputs=(made.source_outputs[0][:1],),
        source_labels=(made.source_labels[0][:1],),
    )
    with pytest.raises(ValueError, match="two examples of every source"):
        Dev().score(short)
