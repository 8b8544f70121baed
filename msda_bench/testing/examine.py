"""Checks a component of any kind against its contract, clause by clause, without a test runner."""

from __future__ import annotations

import unittest
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from msda_bench.api import Component, Predictor
from msda_bench.errors import BenchError, printable
from msda_bench.plugin_errors import cause_of, describe_with_place, package_of, plugin_errors
from msda_bench.plugins.process_state import restored
from msda_bench.testing.backbone import BackboneContract
from msda_bench.testing.broken import BrokenContractError
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.dataset import DatasetContract
from msda_bench.testing.scheme import PredictorContract, SchemeContract
from msda_bench.testing.scores import MetricContract, ValidatorContract
from msda_bench.testing.weighing import AggregatorContract, DiscrepancyContract

CONTRACTS: Mapping[str, type[ComponentContract]] = MappingProxyType(
    {
        "dataset": DatasetContract,
        "backbone": BackboneContract,
        "discrepancy": DiscrepancyContract,
        "aggregator": AggregatorContract,
        "scheme": SchemeContract,
        "validator": ValidatorContract,
        "metric": MetricContract,
    }
)
"""The contract class of each kind; a predictor has one of its own."""
_LONGEST = 2000
"""Longest reason in characters; the reason of a broken clause includes what the contract asks for."""


def contract(component: Component) -> ComponentContract:
    """An instance of the contract of the component's kind, with this component under test."""
    base = _base(component)
    made: ComponentContract = type(f"Test{type(component).__name__}", (base,), {"component": component})()
    return made


def checks(of: str | Component) -> list[str]:
    """The names of the `test_` methods of a kind's or a component's contract, sorted; each takes no arguments."""
    base = CONTRACTS[of] if isinstance(of, str) else _base(of)
    return [name for name in dir(base) if name.startswith("test_")]


def _base(component: Component) -> type[ComponentContract]:
    if not isinstance(component, Predictor):
        return CONTRACTS[component.kind]
    return ComponentContract if component.uses_predictions else PredictorContract


@dataclass(frozen=True)
class Finding:
    """The result of one clause of a contract.

    Attributes:
        check: the name of the contract's method.
        outcome: kept, broken, or skipped if the clause does not apply or cannot be checked here.
        reason: why it is broken or skipped, in one line.
    """

    check: str
    outcome: Literal["kept", "broken", "skipped"]
    reason: str = ""

    @property
    def clause(self) -> str:
        """The clause in words, such as "weights lie on the simplex"."""
        return self.check.removeprefix("test_").replace("_", " ")


def examine(component: Component) -> Iterator[Finding]:
    """The finding for each clause, in alphabetical order. Changes to the process are undone after each clause."""
    kept = contract(component)
    for check in checks(component):
        with restored():
            yield _finding(kept, check)


def _finding(kept: ComponentContract, check: str) -> Finding:
    packages = {package_of(type(kept.component))}
    try:
        with plugin_errors(packages, passing=(unittest.SkipTest, BrokenContractError)):
            getattr(kept, check)()
    except unittest.SkipTest as why:
        return Finding(check, "skipped", _one_line(why))
    except BrokenContractError as broken:
        return Finding(check, "broken", _one_line(broken))
    except BenchError as error:
        return Finding(check, "broken", describe_with_place(cause_of(error), packages))
    return Finding(check, "kept")


def _one_line(error: BaseException) -> str:
    return printable(str(error), _LONGEST) or "no message"
