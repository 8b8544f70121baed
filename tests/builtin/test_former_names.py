"""Plugins that were written for the names before 0.1 work until 0.2."""

import numpy as np

from msda_bench.api import FitData, FittedScheme, Fitting, Predictor, Scheme, component
from msda_bench.testing import FittedSchemeContract, PredictorContract, examine


@component
class Zero(FittedScheme):
    """Answers nought."""

    name = "zero"
    tasks = ("regression",)
    looks = False

    def fit(self, rows: Fitting, task, seed):
        return lambda x: np.zeros((x.shape[0], 1))


class Moving(Scheme):
    adds_offsets = True
    hold_out = 0.25


def test_former_names_are_the_new_ones():
    assert (FittedScheme, Fitting, FittedSchemeContract) == (Predictor, FitData, PredictorContract)
    assert (Zero.uses_inputs, Moving.offsets_weights, Scheme.uses_inputs) == (False, True, True)
    assert Moving.target_holdout.fget(Moving) == 0.25
    assert {finding.outcome for finding in examine(Zero())} <= {"kept", "skipped"}
