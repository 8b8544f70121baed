"""The clauses for components of every kind."""

from __future__ import annotations

from typing import Any

from msda_bench.api import Validator, component
from msda_bench.testing import CONTRACTS, ValidatorContract, checks, contract


class Scored(Validator):
    name = "scored"

    def score(self, view):
        return 0.5


@component
class Undescribed(Scored):
    name = "undescribed"


@component
class BadName(Scored):
    """A name with a space."""

    name = "bad name"


@component
class BadVersion(Scored):
    """A version that is not a number."""

    name = "bad_version"
    version = "1"


class Undecorated(Scored):
    """A class without the decorator."""

    name = "undecorated"


@component
class Forgetful(Scored):
    """Changes its parameter."""

    name = "forgetful"
    width: int = 1

    def params(self) -> dict[str, Any]:
        return {"width": self.width + 1}


@component
class Unpicklable(Scored):
    """Changes a parameter when pickled."""

    name = "unpicklable"
    width: int = 1

    def __reduce__(self):
        return Unpicklable._other, ()

    @staticmethod
    def _other():
        return Unpicklable(width=2)


def test_missing_docstring_or_invalid_name_and_version_break_the_contract(catches):
    catches(Undescribed(), "test_is_described", "no docstring; its first line is what `msda-bench plugins` shows")
    catches(BadName(), "test_is_described", "name is 'bad name'; the contract asks for")
    catches(BadVersion(), "test_is_described", "version is '1'; the contract asks for an integer")


def test_parameters_that_do_not_round_trip_break_the_contract(catches):
    catches(Undecorated(), "test_parameters_round_trip", "not decorated with @component")
    catches(Forgetful(), "test_parameters_round_trip", r"made from its own params\(\) .* it differs")


def test_pickling_that_changes_parameters_breaks_the_contract(catches):
    catches(Unpicklable(), "test_pickles", "pickling changes it")


def test_every_check_has_a_docstring():
    for kind, base in CONTRACTS.items():
        names = checks(kind)
        assert set(checks("validator")) & set(names) >= {
            "test_is_described",
            "test_parameters_round_trip",
            "test_pickles",
        }
        assert all(getattr(base, name).__doc__ for name in names)


def test_contract_belongs_to_the_components_kind():
    made = contract(Forgetful())
    assert isinstance(made, ValidatorContract)
    assert type(made).__name__ == "TestForgetful"
