"""Errors are attributed to a file and line of their author."""

from __future__ import annotations

import importlib

import pytest
import torch

from msda_bench.blame import blaming, describe_with_place, packages_of, place
from msda_bench.errors import DataError, Interrupted

CODE = """
    import torch
    from msda_bench.functional import sharpmax

    def in_torch():
        return torch.zeros(2) @ torch.zeros(3)

    def in_ours():
        return sharpmax("no tensor")

    def deeper(function):
        return apply(function)

    def apply(function):
        return function()

    class Silent(Exception):
        def __str__(self):
            raise ValueError
"""


@pytest.fixture
def theirs(install):
    install("their-plugin", CODE, version="2.0")
    return importlib.import_module("their_plugin")


def raised(function) -> BaseException:
    with pytest.raises((ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError)) as caught:
        function()
    return caught.value


def test_the_innermost_line_of_the_author_is_named_instead_of_a_librarys(theirs):
    packages = packages_of(["their-plugin", "nowhere-installed"])
    assert packages == {"their_plugin"}
    assert place(raised(theirs.in_torch), packages) == "their_plugin.py:6"
    assert place(raised(theirs.in_ours), packages) == "their_plugin.py:9"
    assert (
        place(raised(lambda: theirs.deeper(lambda: torch.zeros(2) @ torch.zeros(3))), packages) == "their_plugin.py:15"
    )
    assert place(raised(lambda: 1 / 0), packages) is None


def test_paths_begin_at_the_packages_folder(install, site):
    folder = site / "deep_plugin" / "inner"
    folder.mkdir(parents=True)
    for name in (folder.parent, folder):
        (name / "__init__.py").touch()
    (folder / "part.py").write_text("def fail():\n    return {}['x']\n")
    error = raised(importlib.import_module("deep_plugin.inner.part").fail)
    assert describe_with_place(error, {"deep_plugin"}) == "deep_plugin/inner/part.py:2: KeyError: 'x'"


def test_built_in_components_belong_to_their_own_package():
    assert packages_of(["msda-bench"]) == {"msda_bench_builtin"}


def test_only_the_users_interrupt_and_mistakes_that_have_a_line_pass():
    for error in (Interrupted(), KeyboardInterrupt(), DataError("a line"), AssertionError()):
        with pytest.raises(type(error)) as caught, blaming((), passing=(AssertionError,)):
            raise error
        assert caught.value is error
