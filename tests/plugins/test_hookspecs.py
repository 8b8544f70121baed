"""The example in every hook's docstring runs, is discovered and keeps its kind's contract."""

from __future__ import annotations

import doctest
import inspect
import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from msda_bench import hookspecs
from msda_bench.plugins import KINDS, discover
from tests.own import broken

HOOKS = {
    name: function for name, function in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith("msda_")
}


def test_every_kind_has_a_hook():
    assert len(HOOKS) == len({*KINDS, "executor"})


@pytest.mark.parametrize("name", HOOKS)
def test_a_docstrings_example_passes_and_is_a_complete_plugin_that_keeps_its_contract(name, monkeypatch):
    module = ModuleType(f"example_of_{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (test,) = doctest.DocTestFinder().find(HOOKS[name], name, globs=vars(module))
    assert test.examples
    assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
    vars(module).update(test.globs)
    if name == "msda_executors":  # it brings no component
        return
    found = discover([EntryPoint("example", module.__name__, "msda_bench")])
    assert not found.broken
    (entry,) = found.entries
    assert not broken(entry.create({}))
