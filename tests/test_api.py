"""The public modules: their names exist, are documented, and are all there is to import."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import msda_bench
from msda_bench import api, functional, testing

DOORS = (api, functional, testing)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_name_exists_once(door):
    assert len(set(door.__all__)) == len(door.__all__)
    missing = [name for name in door.__all__ if not hasattr(door, name)]
    assert not missing


@pytest.mark.parametrize(
    ("door", "name"),
    [pytest.param(door, name, id=f"{door.__name__}.{name}") for door in DOORS for name in door.__all__],
)
def test_public_thing_is_documented(door, name):
    thing = getattr(door, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        # A dataclass or a named tuple without a docstring is given its signature for one.
        assert thing.__doc__, f"{name} has no docstring"
        assert not thing.__doc__.startswith(f"{name}("), f"{name} has no docstring of its own"
    else:
        # A type alias, a constant, or a hook marker; its line stands below it in the source.
        assert thing is not None


@pytest.mark.parametrize(
    "base", [api.Aggregator, api.Backbone, api.Dataset, api.Discrepancy, api.Scheme, api.Validator]
)
def test_methods_that_an_author_writes_are_documented(base):
    undocumented = [name for name in base.__abstractmethods__ if not getattr(base, name).__doc__]
    assert not undocumented


def test_every_module_imports_and_says_what_it_is():
    names = [module.name for module in pkgutil.walk_packages(msda_bench.__path__, "msda_bench.")]
    assert "msda_bench.api" in names
    modules = [importlib.import_module(name) for name in names]
    silent = [module.__name__ for module in modules if not module.__doc__ and not hasattr(module, "__path__")]
    assert not silent
