"""The example in every hook's docstring runs, is discovered and keeps its kind's contract."""

from __future__ import annotations

import doctest
import inspect
import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from msda_bench import hookspecs
from msda_bench.plugins import KINDS, discover
from msda_bench.testing import examine

HOOKS = {
    name: function for name, function in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith("msda_")
}
OTHERS = {"msda_executors"}
"""The hooks that bring no component."""


@pytest.fixture
def example(request, monkeypatch) -> Any:
    """The registry of a module that consists of the code in the hook's docstring."""
    module = ModuleType(f"example_of_{request.param}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    steps = doctest.DocTestParser().get_examples(inspect.getdoc(HOOKS[request.param]))
    assert steps, f"the hook {request.param} has no example in its docstring"
    for step in steps:
        exec(compile(step.source, module.__name__, "exec", dont_inherit=True), vars(module))  # noqa: S102 - our docstring
    return discover([EntryPoint("example", module.__name__, "msda_bench")])


def test_every_kind_has_a_hook():
    assert len(HOOKS) == len({*KINDS, "executor"})


@pytest.mark.parametrize("name", HOOKS)
def test_docstring_is_a_doctest_that_passes(name):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    (test,) = finder.find(HOOKS[name], name, globs={})
    assert test.examples
    assert runner.run(test).failed == 0


@pytest.mark.parametrize("example", sorted(HOOKS.keys() - OTHERS), indirect=True)
def test_example_is_a_complete_plugin_that_keeps_its_contract(example):
    assert not example.broken
    (entry,) = example.entries
    broken = [finding for finding in examine(entry.create({})) if finding.outcome == "broken"]
    assert not broken
