from __future__ import annotations

import numpy as np
from scipy import stats

from msda_bench_builtin.datasets.draws import Draws


def test_the_numbers_are_pinned():
    draws = Draws(("golden", 1))
    assert draws.uniform("a", (3,)).tolist() == [0.5195987446744198, 0.392981318824304, 0.791229952162026]
    assert np.allclose(
        draws.normal("a", (3,)), [-0.8951973739503911, 0.25275746996119425, 0.922042145989415], rtol=1e-12
    )


def test_a_longer_draw_extends_a_shorter_one():
    draws = Draws(("x",))
    assert draws.uniform("a", (50,))[:9].tolist() == draws.uniform("a", (9,)).tolist()
    assert draws.normal("a", (10, 5))[:2].tolist() == draws.normal("a", (2, 5)).tolist()


def test_identities_and_purposes_have_different_draws():
    found = {tuple(Draws(identity).uniform(purpose, (2,)).tolist())
             for identity in [("x", 1), ("x", 2), ("y", 1)] for purpose in "ab"}  # fmt: skip
    assert len(found) == 6


def test_draws_have_their_distributions():
    draws = Draws(("distribution",))
    uniform, normal = draws.uniform("u", (100_000,)), draws.normal("n", (100_000,))
    assert 0 < uniform.min() < uniform.max() < 1
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert stats.kstest(normal, "norm").pvalue > 1e-3
    assert abs(stats.pearsonr(normal[:-1], normal[1:]).statistic) < 0.01
