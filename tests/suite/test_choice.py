from __future__ import annotations

import re
from dataclasses import replace

import pytest

from msda_bench.errors import PluginError
from msda_bench.suite.cell import Ref
from msda_bench.suite.choice import make_planned
from msda_bench.suite.expand import expand

MLP = Ref("backbone", "mlp", 1, "toys", {"hidden": [8, 4], "dropout": 0.5})


def test_a_reference_gives_the_component_back(registry):
    mlp = make_planned(registry, MLP)
    assert mlp.params() == MLP.params
    assert mlp.hidden == (8, 4)


def test_every_reference_of_a_suite_can_be_built(load, registry, good):
    for cell in expand(load(good), registry).cells.values():
        for ref in (cell.dataset, cell.backbone, cell.scheme, cell.discrepancy, cell.aggregator, *cell.validators):
            if ref is not None:
                assert make_planned(registry, ref).params() == ref.params


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        (replace(MLP, name="mlpp"), "unknown backbone 'mlpp' (did you mean 'mlp'?)"),
        (
            replace(MLP, version=2),
            (
                "backbone 'mlp' was planned at version 2, but toys 1.0 brings version 1; "
                "run the suite again to plan it anew"
            ),
        ),
        (
            replace(MLP, distribution="others"),
            "backbone 'mlp' was planned from others, but toys 1.0 brings it now; install others in its place",
        ),
        (
            replace(MLP, params={"dropout": 2.0, "depth": 1}),
            (
                "backbone 'mlp': dropout: must be less than 1, not 2.0; "
                "depth: unknown parameter of mlp (known: hidden, dropout)"
            ),
        ),
        (
            Ref("aggregator", "picky", 1, "toys", {"size": 13}),
            "aggregator 'picky' of toys 1.0 cannot be made: tests/suite/conftest.py:N: RuntimeError: bad luck",
        ),
    ],
)
def test_a_reference_that_no_longer_holds(registry, ref, text):
    with pytest.raises(PluginError) as caught:
        make_planned(registry, ref)
    (line,) = caught.value.lines
    assert re.sub("py:[0-9]+", "py:N", line) == text
