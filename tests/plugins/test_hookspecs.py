"""The example in every hook's docstring runs, is discovered and keeps its kind's contract."""

from __future__ import annotations

import argparse
import doctest
import inspect
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import msda_bench as mb
from msda_bench import hookspecs
from msda_bench.cli.command import GROUP, installed
from msda_bench.executors import CellFinished, Interrupt, Job, Setup, Store
from msda_bench.plugins import KINDS, discover
from msda_bench.running.execute import EXECUTORS, executors
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.testing import examine
from msda_bench_report.page import Findings, render_page
from msda_bench_report.sections import sections

HOOKS = {
    name: function for name, function in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith("msda_")
}
OTHERS = {"msda_executors", "msda_commands", "msda_sections"}
"""The hooks that bring no component."""
RECORDED = Path(__file__).parents[2] / "results" / "ablation-digits-scale"


@pytest.fixture
def example(request, monkeypatch) -> Any:
    """The registry, or the commands, of a module that consists of the code in the hook's docstring."""
    module = ModuleType(f"example_of_{request.param}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    steps = doctest.DocTestParser().get_examples(inspect.getdoc(HOOKS[request.param]))
    assert steps, f"the hook {request.param} has no example in its docstring"
    for step in steps:
        exec(compile(step.source, module.__name__, "exec", dont_inherit=True), vars(module))  # noqa: S102 - our docstring
    if request.param == "msda_commands":
        return installed([EntryPoint("example", module.__name__, GROUP)])
    if request.param == "msda_sections":
        return sections([EntryPoint("example", module.__name__, "msda_bench.sections")])
    if request.param == "msda_executors":
        return executors([EntryPoint("example", module.__name__, EXECUTORS)])
    return discover([EntryPoint("example", module.__name__, "msda_bench")])


def test_every_kind_has_a_hook():
    assert len(HOOKS) == len({*KINDS, "executor", "command", "section"})


@pytest.mark.parametrize("name", HOOKS)
def test_docstring_is_a_doctest_that_passes(name):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    (test,) = finder.find(HOOKS[name], name, globs={})
    assert test.examples
    assert runner.run(test).failed == 0


@pytest.mark.parametrize("example", ["msda_executors"], indirect=True)
def test_an_executors_example_trains(example, tmp_path):
    executor = example.entry("executor", "backwards").cls(setup=Setup("cpu"))
    registry = discover()
    cells = expand(load_suite("smoke", registry), registry).cells
    jobs = [Job((key,), (cell,)) for key, cell in list(cells.items())[:2]]
    store = Store.create(tmp_path / "smoke")
    events = [event for event in executor.run(jobs, store, Interrupt()) if isinstance(event, CellFinished)]
    assert [(event.key, event.status) for event in events] == [(job.keys[0], "ok") for job in jobs[::-1]]


@pytest.mark.parametrize("example", ["msda_commands"], indirect=True)
def test_a_commands_example_reads_a_folder(example, capsys):
    (command,), faults = example
    assert not faults
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args([str(RECORDED)])) == 0
    assert re.fullmatch(r"(DARN-\w+: \d+\.\d s\n)+", capsys.readouterr().out)


@pytest.mark.parametrize("example", ["msda_sections"], indirect=True)
def test_a_sections_example_is_on_the_page(example):
    (maker,), faults = example
    assert not faults
    runs = mb.load_results(RECORDED)
    page = render_page(Findings.of(runs), [maker])
    assert "How long the longest run took." in page
    assert re.findall(r'id="[\w-]+-unknown-(slowest|slowest-seconds)"', page) == 2 * ["slowest", "slowest-seconds"]


@pytest.mark.parametrize("example", sorted(HOOKS.keys() - OTHERS), indirect=True)
def test_example_is_a_complete_plugin_that_keeps_its_contract(example):
    assert not example.broken
    (entry,) = example.entries
    broken = [finding for finding in examine(entry.create({})) if finding.outcome == "broken"]
    assert not broken
