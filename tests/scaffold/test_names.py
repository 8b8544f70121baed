"""All names of a distribution derive from the component's name, and invalid names are refused."""

from __future__ import annotations

import keyword
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from msda_bench.errors import BenchError
from msda_bench.plugins.discover import NAME
from msda_bench.scaffold import Names


@pytest.mark.parametrize(
    ("component", "class_name", "distribution"),
    [
        ("inverse_risk", "InverseRisk", "msda-bench-inverse-risk"),
        ("InverseRisk", "InverseRisk", "msda-bench-inverse-risk"),
        ("mdd", "Mdd", "msda-bench-mdd"),
        ("MDD", "MDD", "msda-bench-mdd"),
        ("top_2", "Top2", "msda-bench-top-2"),
        ("a__b_", "AB", "msda-bench-a-b"),
    ],
)
def test_names_derive_from_the_components_name(component, class_name, distribution):
    names = Names.of("aggregator", component)
    assert (names.component, names.class_name, names.distribution) == (component, class_name, distribution)


@given(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,39}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name)))
def test_every_accepted_name_is_valid_wherever_it_is_used(component):
    assume(component.strip("_") not in {"none", "true", "false"})  # whose classes would be keywords
    names = Names.of("scheme", component)
    assert NAME.fullmatch(names.component)
    assert names.class_name.isidentifier()
    assert names.module.isidentifier()
    assert canonicalize_name(names.distribution) == names.distribution
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", names.suite)


@pytest.mark.parametrize("component", ["", "3x", "_x", "a-b", "a b", "a.b", "é", "a" * 41, "x\n", "../x"])
def test_invalid_names_are_refused(component):
    with pytest.raises(BenchError, match="use at most 40 letters, digits and '_', with a letter first"):
        Names.of("aggregator", component)


@pytest.mark.parametrize("component", ["class", "lambda", "None", "none_", "true"])
def test_keywords_are_refused(component):
    with pytest.raises(BenchError, match="is a Python keyword; choose another name"):
        Names.of("aggregator", component)
