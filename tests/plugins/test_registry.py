"""The registry creates components by name."""

from __future__ import annotations

import pydantic
import pytest

from msda_bench.api import Component, Count, Rate, component
from msda_bench.errors import PluginError
from msda_bench.plugins import KINDS, Entry, Registry


@component
class Toy(Component):
    """A component with parameters of several types."""

    kind = "backbone"
    name = "toy"
    widths: tuple[Count, ...] = (3,)
    rate: Rate = 0.5


ENTRY = Entry("backbone", Toy, "toys", "1.0")


def test_parameters_are_accepted_as_a_suite_writes_them():
    made = ENTRY.create({"widths": [5, 4], "rate": 0})
    assert made == Toy(widths=(5, 4), rate=0.0)
    assert made.params() == {"widths": [5, 4], "rate": 0.0}


@pytest.mark.parametrize(
    "params", [{"width": 3}, {"widths": [0]}, {"widths": "3"}, {"widths": ["3"]}, {"rate": 1.0}, {"rate": True}]
)
def test_wrong_parameters_are_refused(params):
    with pytest.raises(pydantic.ValidationError):
        ENTRY.create(params)


def test_unknown_name_error_lists_known_names():
    registry = Registry([ENTRY])
    with pytest.raises(PluginError, match=r"unknown backbone 'resnet' \(known: toy\)"):
        registry.entry("backbone", "resnet")
    with pytest.raises(PluginError, match=r"unknown scheme 'toy' \(known: none\)"):
        registry.entry("scheme", "toy")


def test_entries_are_sorted_by_kind_and_name():
    entries = [Entry(kind, Toy, distribution, "1.0") for kind in reversed(KINDS) for distribution in ("b", "a")]
    places = [(entry.kind, entry.distribution) for entry in Registry(entries).entries]
    assert places == [(kind, distribution) for kind in KINDS for distribution in ("a", "b")]
