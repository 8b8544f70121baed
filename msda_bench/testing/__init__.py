"""The contract kit: what every component promises, as pytest classes.

Subclass the class of your component's kind and set one attribute:

    from msda_bench.testing import AggregatorContract
    from my_package import InverseRisk

    class TestInverseRisk(AggregatorContract):
        component = InverseRisk()

`msda-bench check` runs the contract of an installed component without pytest.
"""

from msda_bench.testing.backbone import BackboneContract
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.dataset import DatasetContract
from msda_bench.testing.examine import CONTRACTS, Finding, checks, contract, examine
from msda_bench.testing.scheme import PredictorContract, SchemeContract
from msda_bench.testing.scores import MetricContract, ValidatorContract
from msda_bench.testing.weighing import AggregatorContract, DiscrepancyContract

__all__ = [
    "CONTRACTS",
    "AggregatorContract",
    "BackboneContract",
    "ComponentContract",
    "DatasetContract",
    "DiscrepancyContract",
    "Finding",
    "MetricContract",
    "PredictorContract",
    "SchemeContract",
    "ValidatorContract",
    "checks",
    "contract",
    "examine",
]

FittedSchemeContract = PredictorContract
"""The former name, until 0.2."""
