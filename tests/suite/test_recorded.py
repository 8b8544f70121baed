"""Suites find their recorded results."""

import re
import tomllib
from pathlib import Path

import pytest

from msda_bench.errors import SuiteError
from msda_bench.plugins import discover
from msda_bench.store import Store
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"^name: (\S+)$", re.MULTILINE)
SUITES = {NAME.search(path.read_text())[1]: path for path in ROOT.glob("suites/**/*.yaml")}
RECORDED = sorted(path.parent for path in ROOT.glob("results/*/plan.json"))


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)
def test_suites_plan_the_recorded_cells(folder, install):
    for path in ROOT.glob("plugins/*/src/*.py"):  # of third parties, whose weights no key needs
        project = tomllib.loads((path.parents[1] / "pyproject.toml").read_text())["project"]
        install(project["name"], path.read_text(), version=project["version"])
    registry = discover()
    try:
        suite = load_suite(SUITES.get(folder.name, folder / "suite.yaml"), registry)
    except SuiteError as error:
        if missing := [line for line in error.lines if ": requires." in line]:
            pytest.skip(missing[0])  # a stranger's method, which is not installed here
        raise
    plan = Store(folder).read_plan()
    assert plan.cells
    assert set(plan.cells) <= set(expand(suite, registry).plan.cells)
