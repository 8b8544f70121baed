"""The contract of each kind, for code that tests a component it does not know beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msda_bench.api import Component
from msda_bench.testing.aggregator import AggregatorContract
from msda_bench.testing.backbone import BackboneContract
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.dataset import DatasetContract
from msda_bench.testing.discrepancy import DiscrepancyContract
from msda_bench.testing.scheme import SchemeContract
from msda_bench.testing.validator import ValidatorContract

CONTRACTS: Mapping[str, type[ComponentContract]] = MappingProxyType(
    {
        "dataset": DatasetContract,
        "backbone": BackboneContract,
        "discrepancy": DiscrepancyContract,
        "aggregator": AggregatorContract,
        "scheme": SchemeContract,
        "validator": ValidatorContract,
    }
)
"""The contract class of each kind."""


def contract(component: Component) -> ComponentContract:
    """The contract of the component's kind, set to this component."""
    base = CONTRACTS[component.kind]
    made: ComponentContract = type(f"Test{type(component).__name__}", (base,), {"component": component})()
    return made


def checks(kind: str) -> list[str]:
    """The names of the checks, methods without arguments, that a contract makes of a kind."""
    return sorted(name for name in dir(CONTRACTS[kind]) if name.startswith("test_"))
