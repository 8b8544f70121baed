"""Three sources and a target, each shifted, with labels that a small network learns quickly."""

from typing import NamedTuple

import numpy as np
import pytest
import sklearn

from msda_bench.api import Array

BRIEF = {"epochs": 3, "hidden": (8,), "random_state": 0}


class Rows(NamedTuple):
    X: Array
    y: Array
    domain: Array

    @property
    def target(self):
        return self.domain < 0


def trained(estimator, rows, **changed):
    """An estimator of this class after a brief training on the rows, or on rows of which something is changed."""
    return estimator(**BRIEF).fit(*rows._replace(**changed))


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    parts = [generator.normal(size=(60, 4)) + shift for shift in (0.0, 0.6, -0.4, 0.3)]
    y = np.concatenate([part[:, 0] + part[:, 1] > 0.3 for part in parts]).astype(int)
    return Rows(np.concatenate(parts).astype(np.float32), y, np.repeat([1, 2, 7, -3], 60))


@pytest.fixture(autouse=True)
def _scikit_learns_default():
    """Disables the routing that an import of skada, in another test of this process, has enabled."""
    with sklearn.config_context(enable_metadata_routing=False):
        yield


@pytest.fixture
def routing():
    """Enables scikit-learn's routing of `sample_domain`."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield
