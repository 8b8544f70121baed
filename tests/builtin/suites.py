"""The project's own suites, loaded with the installed components."""

from pathlib import Path

from msda_bench.data.files import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import discover
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite

SUITES = Path(__file__).parents[2] / "suites"


def loaded(name, registry=None):
    """A suite, by path or by name below suites/, and its expansion."""
    found = registry or discover()
    suite = load_suite(SUITES / f"{name}.yaml" if isinstance(name, str) else name, found)
    return suite, expand(suite, found)


def trained(expansion, **wanted):
    """The record of the one run of the plan with these attributes."""
    (key,) = [
        cell.key for cell in expansion.plan.cells if all(getattr(cell, name) == value for name, value in wanted.items())
    ]
    return next(Trainer(discover(), LocalFiles(), "cpu").train([expansion.cells[key]]))
