from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from msda_bench.functional import standardiser


@settings(max_examples=20)
@given(seed=st.integers(0, 99), by=st.sampled_from(["domain", "pooled"]))
def test_standardised_columns_agree_with_scikit_learn(seed, by):
    draw = np.random.default_rng(seed)
    train = {name: draw.normal(at, 1 + at, (9, 4)).astype(np.float32) for at, name in enumerate("abc")}
    for x in train.values():
        x[:, 0] = 0.1  # constant
    features = standardiser(train, by)
    new = draw.normal(size=(5, 4)).astype(np.float32)
    for name, mine in train.items():
        known = StandardScaler().fit(mine if by == "domain" else np.concatenate(list(train.values())))
        found = features(name, new)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found[:, 1:], known.transform(new)[:, 1:], rtol=1e-4, atol=1e-4)
        assert not features(name, mine)[:, 0].any()


def test_a_domain_without_training_inputs_raises_key_error():
    with pytest.raises(KeyError):
        standardiser({"a": np.ones((2, 2), np.float32)}, "domain")("b", np.ones((2, 2), np.float32))
