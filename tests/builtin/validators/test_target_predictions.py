"""Validators of the target's predictions agree with closed forms and with numpy."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import softmax
from scipy.stats import entropy

from msda_bench.api import Task, ValidationView, Validator
from msda_bench.testing import toy
from msda_bench_builtin.validators import Bnm, Entropy, Mano, Mixval, Snd

LOGITS = arrays.arrays(
    np.float64,
    st.tuples(st.integers(2, 9), st.integers(2, 5)),
    elements=st.floats(-20, 20, allow_subnormal=False),
)
ALL = [Bnm(), Entropy(), Mano(), Snd()]


def view(logits: np.ndarray) -> ValidationView:
    made = toy.validation_view(Task("classification", logits.shape[1]))
    return dataclasses.replace(made, target_outputs=torch.from_numpy(logits))


def sure(labels: list[int], classes: int) -> np.ndarray:
    return 1000.0 * np.eye(classes)[labels]


@given(LOGITS)
@settings(deadline=None, max_examples=25)
def test_entropy_equals_scipys(logits: np.ndarray) -> None:
    expected = entropy(softmax(logits, axis=1), axis=1).mean()
    assert Entropy().score(view(logits)) == pytest.approx(-expected, abs=1e-9)


@given(LOGITS)
@settings(deadline=None, max_examples=25)
def test_snd_is_the_entropy_over_the_others(logits: np.ndarray) -> None:
    p = softmax(logits, axis=1)
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    rows = [entropy(softmax(np.delete(p @ p[i], i) / 0.05)) for i in range(len(p))]
    assert Snd().score(view(logits)) == pytest.approx(np.mean(rows), abs=1e-6)


@given(LOGITS)
@settings(deadline=None, max_examples=25)
def test_bnm_is_the_share_of_the_largest_nuclear_norm(logits: np.ndarray) -> None:
    n, classes = logits.shape
    norm = np.linalg.norm(softmax(logits, axis=1), "nuc")
    score = Bnm().score(view(logits))
    assert score == pytest.approx(norm / math.sqrt(n * min(n, classes)), abs=1e-9)
    assert 0 < score <= 1 + 1e-12


@given(LOGITS)
@settings(deadline=None, max_examples=50)
def test_mano_is_the_papers_norm_of_normalised_outputs(logits: np.ndarray) -> None:
    n, classes = logits.shape
    surprise = -sum(math.log(p) for row in softmax(logits, axis=1) for p in row) / (n * classes)
    assume(abs(surprise - 5) > 1e-6)
    powers = 0.0
    for row in logits:
        values = [math.exp(z) if surprise > 5 else 1 + z + z**2 / 2 for z in row]
        powers += sum((value / sum(values)) ** 4 for value in values)
    expected = powers**0.25 / (n * classes) ** 0.25
    assert Mano().score(view(logits)) == pytest.approx(expected, rel=1e-9)


@given(LOGITS, st.integers(0, 1000))
@settings(deadline=None, max_examples=25)
def test_the_order_of_examples_and_of_classes_does_not_matter(logits: np.ndarray, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows, columns = (draw.permutation(count) for count in logits.shape)
    for validator in ALL:
        mixed = validator.score(view(logits[rows][:, columns]))
        assert mixed == pytest.approx(validator.score(view(logits)), abs=1e-6)


def test_certain_and_diverse_predictions_have_the_largest_nuclear_norm() -> None:
    assert Bnm().score(view(sure([0, 1, 2, 0, 1, 2], 3))) == pytest.approx(1)
    assert Bnm().score(view(sure([1] * 6, 3))) == pytest.approx(1 / math.sqrt(3))
    assert Bnm().score(view(np.zeros((6, 3)))) == pytest.approx(1 / 3)


def test_mano_by_hand() -> None:
    # 1 + z + z^2 / 2 of 2 and 0 is 5 and 1, so the shares are 5/6 and 1/6; for the softmax the model is too unsure.
    assert Mano().score(view(np.array([[2.0, 0.0]]))) == pytest.approx(((5**4 + 1) / 2) ** 0.25 / 6)
    # The softmax of log 3 and 0 is 3/4 and 1/4; the threshold lies below or above -(log 3/4 + log 1/4) / 2 = 0.837.
    logits = np.array([[math.log(3), 0.0]])
    assert Mano(threshold=0.83).score(view(logits)) == pytest.approx(((3**4 + 1) / 2) ** 0.25 / 4)
    taylor = 1 + math.log(3) + math.log(3) ** 2 / 2
    squares = Mano(threshold=0.84, order=2).score(view(logits))
    assert squares == pytest.approx(math.sqrt((taylor**2 + 1) / 2) / (taylor + 1))


def test_mano_lies_between_uniform_and_certain_predictions_of_any_class() -> None:
    assert Mano().score(view(np.zeros((6, 3)))) == pytest.approx(1 / 3)
    for labels in ([0, 1, 2], [1, 1, 1]):
        assert Mano().score(view(sure(labels, 3))) == pytest.approx(3**-0.25)


def steps(x: np.ndarray, classes: list[int]) -> ValidationView:
    """A model of numbers that predicts the class at floor(x)."""
    position = torch.from_numpy(x)

    def model(at: torch.Tensor) -> torch.Tensor:
        return torch.eye(max(classes) + 1)[torch.tensor(classes)[at.floor().long()]]

    made = toy.validation_view(Task("classification", max(classes) + 1))
    mixed = {"mix": lambda first, second, share: model(share * position[first] + (1 - share) * position[second])}
    return dataclasses.replace(made, target_outputs=model(position), **mixed)


def test_mixval_by_hand() -> None:
    # Class 0 lies on both sides of class 1. Within: 0.5, 2.7 and 2.8 follow each other in class 0, at 1.49, 2.745 and
    # 1.765, and 1.2 is alone. Between, from both ends: 1.2 with 2.7 at 1.875, and 2.7 with 1.2 at 2.025.
    x, classes = np.array([0.5, 1.2, 2.7, 2.8]), [0, 1, 0]
    assert Mixval().score(steps(x, classes)) == pytest.approx((1 / 3 + 2 / 2) / 2)
    # At share 0.7: 1.16, 2.73, 2.11 within; 1.65 and 2.25 between. At share 0.51, 2.7 with 1.2 lies at 1.965.
    assert Mixval(share=0.7).score(steps(x, classes)) == pytest.approx((2 / 3 + 2 / 2) / 2)
    assert Mixval(share=0.51).score(steps(x, classes)) == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert Mixval(examples=2).score(steps(x, classes)) == 0.5  # 0.5 and 1.2 at 0.815 and 0.885


@pytest.mark.parametrize("seed", range(4))
def test_mixval_equals_its_definition_example_by_example(seed: int) -> None:
    draw = np.random.default_rng(seed)
    x, classes = draw.uniform(0, 9, size=101), draw.integers(0, 4, size=9).tolist()

    def predict(at: float) -> int:
        return int(classes[math.floor(at)])

    kept: dict[bool, list[bool]] = {True: [], False: []}
    for i, a in enumerate(x):
        same = [j for j in (*range(i + 1, 101), *range(i)) if predict(x[j]) == predict(a)]
        for j in (*same[:1], *([100 - i] if predict(x[100 - i]) != predict(a) else [])):
            kept[predict(x[j]) == predict(a)].append(predict(0.55 * a + 0.45 * x[j]) == predict(a))
    expected = (np.mean(kept[True]) + np.mean(kept[False])) / 2
    assert 0.2 < expected < 0.9
    assert Mixval().score(steps(x, classes)) == pytest.approx(expected)


def test_mixval_of_a_single_kind_of_pair_is_its_accuracy() -> None:
    assert Mixval().score(steps(np.array([0.5, 1.5, 0.2]), [0, 0])) == 1
    assert Mixval().score(steps(np.array([0.5, 1.1]), [0, 1])) == 1 / 2
    with pytest.raises(ValueError, match="needs two examples"):
        Mixval().score(steps(np.array([0.5]), [0, 1]))


def test_entropy_does_not_distinguish_one_certain_class_from_many() -> None:
    assert Entropy().score(view(sure([0, 1, 2], 3))) == Entropy().score(view(sure([1, 1, 1], 3))) == 0
    assert Entropy().score(view(np.zeros((4, 3)))) == pytest.approx(-math.log(3))


def test_neighbourhoods_of_two_clusters_hold_all_of_the_same_cluster() -> None:
    score = Snd().score(view(sure([0] * 5 + [1] * 5, 2)))
    assert score == pytest.approx(math.log(4), abs=1e-4)
    assert Snd().score(view(np.zeros((10, 2)))) == pytest.approx(math.log(9))


def test_snd_uses_only_the_first_examples() -> None:
    logits = np.random.default_rng(0).normal(size=(12, 3))
    assert Snd(examples=7).score(view(logits)) == Snd().score(view(logits[:7]))


def test_snd_of_a_single_example_names_what_is_missing() -> None:
    with pytest.raises(ValueError, match="needs two examples"):
        Snd().score(view(np.zeros((1, 3))))


@pytest.mark.parametrize("validator", [*ALL, Mixval()], ids=lambda one: one.name)
def test_sources_do_not_affect_the_scores(validator: Validator) -> None:
    made = toy.validation_view(toy.CLASSIFICATION)
    poisoned = dataclasses.replace(
        made,
        source_outputs=tuple(-outputs for outputs in made.source_outputs),
        source_labels=tuple(2 - labels for labels in made.source_labels),
    )
    assert validator.score(made) == validator.score(poisoned)
