"""JCPOT and WBT agree with POT's own classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import ot
import pytest
from sklearn.linear_model import LogisticRegression

from msda_bench.api import FittedScheme, Fitting, PluginError, Task
from msda_bench_builtin.schemes import Jcpot, Wbt

TASK = Task("classification", 4)  # no example of the class 2
CENTRES = {0: (0, 0), 1: (4, 0), 3: (0, 5)}


def domain(shares: dict[int, int], shift: float, seed: int) -> tuple[Any, Any]:
    """Examples of three classes, so many of each, moved."""
    rng = np.random.default_rng(seed)
    y = np.repeat(list(shares), list(shares.values()))
    return (np.array([CENTRES[label] for label in y]) + shift + 0.4 * rng.normal(size=(len(y), 2))).astype(
        np.float32
    ), y


SOURCES = [domain({0: 12, 1: 8, 3: 10}, 0.0, 1), domain({0: 5, 1: 14, 3: 6}, 0.8, 2)]
TARGET, TRUTH = domain({0: 4, 1: 4, 3: 32}, 1.2, 3)


def outputs(scheme: FittedScheme, sources: list[tuple[Any, Any]], rows: Any) -> Any:
    xs, ys = zip(*sources, strict=True)
    groups = np.repeat(np.arange(len(xs)), [len(y) for y in ys])
    return scheme.fit(Fitting(np.concatenate(xs), np.concatenate(ys), groups, TARGET), TASK, 0)(rows)


def test_jcpot_propagates_labels_by_the_plans_of_pots_class() -> None:
    xs, ys = ([part.astype(np.float64) for part in parts] for parts in zip(*SOURCES, strict=True))
    classes, target = np.array([0, 1, 3]), TARGET.astype(np.float64)
    scale = np.sqrt(max(np.square(x[:, None] - target).sum(2).max() for x in xs))
    pots = ot.da.JCPOTTransport(reg_e=0.05, tol=1e-6, log=True)
    pots.fit([x / scale for x in xs], [np.searchsorted(classes, y) for y in ys], target / scale)
    brought = np.zeros((len(target), 3))
    for plan, y in zip(pots.coupling_, ys, strict=True):
        for place, label in enumerate(classes):
            brought[:, place] += plan[y == label].sum(0)
    found = np.exp(outputs(Jcpot(reg=0.05, iterations=100), SOURCES, TARGET))
    assert np.allclose(found[:, classes], brought / brought.sum(1, keepdims=True), atol=1e-6)
    assert found[:, 2].max() == pytest.approx(1e-6)
    # The target's shares of classes, 10, 10 and 80 %, where the sources' are about 30, 40 and 30 %.
    assert pots.proportions_ == pytest.approx([0.1, 0.1, 0.8], abs=0.05)
    assert (found.argmax(1) == TRUTH).all()
    assert np.array_equal(np.exp(outputs(Jcpot(reg=0.05, iterations=100), SOURCES, TARGET[:3] + 0.001)), found[:3])


def test_jcpot_refuses_a_source_without_a_class() -> None:
    with pytest.raises(PluginError, match=r"'jcpot' needs every class in every source; source 2 lacks \[3\]\."):
        outputs(Jcpot(), [SOURCES[0], domain({0: 5, 1: 5}, 0.8, 2)], TARGET)


def moved(points: Any) -> Any:
    transport = ot.da.SinkhornTransport(reg_e=0.05, norm="max")
    return transport.fit(Xs=points.astype(np.float64), Xt=TARGET.astype(np.float64)).transform(
        points.astype(np.float64)
    )


def linear(points: Any, y: Any) -> Any:
    """The probabilities of the target's examples, by scikit-learn."""
    return LogisticRegression(C=1.0, max_iter=1000).fit(points, y).predict_proba(TARGET)


def test_wbt_of_one_source_is_pots_transport_of_it() -> None:
    found = outputs(Wbt(reg=0.05), SOURCES[:1], TARGET)
    assert np.allclose(np.exp(found[:, [0, 1, 3]]), linear(moved(SOURCES[0][0]), SOURCES[0][1]), atol=1e-3)


def test_wbt_moves_the_barycentre_of_each_class() -> None:
    points, labels = [], []
    for label in CENTRES:
        given = [x[y == label].astype(np.float64) for x, y in SOURCES]
        start = np.concatenate(given)
        for _ in range(10):  # the means of the images of each point under the exact plans from it
            images = []
            for x in given:
                plan = ot.emd([], [], ot.dist(start, x))
                images.append(plan @ x * len(start))
            start = np.mean(images, 0)
        points.append(start)
        labels += [label] * len(start)
    found = outputs(Wbt(reg=0.05), SOURCES, TARGET)
    assert np.allclose(np.exp(found[:, [0, 1, 3]]), linear(moved(np.concatenate(points)), labels), atol=1e-4)
