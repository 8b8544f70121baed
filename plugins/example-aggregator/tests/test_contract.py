from msda_bench.testing import AggregatorContract
from msda_bench_example_aggregator import InverseRisk


class TestInverseRisk(AggregatorContract):
    component = InverseRisk()
