"""The components that come with msda-bench; they enter by the same door as anyone's."""

from __future__ import annotations

from msda_bench.api import Aggregator, Backbone, Dataset, Discrepancy, Scheme, Validator, hookimpl


@hookimpl
def msda_datasets() -> list[type[Dataset]]:
    """The datasets."""
    from msda_bench_builtin.datasets import Amazon, Digits, Fonts, OfficeHome, Opinions, Sine

    return [Amazon, Digits, Fonts, OfficeHome, Opinions, Sine]


@hookimpl
def msda_backbones() -> list[type[Backbone]]:
    """The networks."""
    from msda_bench_builtin.backbones import ConvNet, Linear, Mlp

    return [ConvNet, Linear, Mlp]


@hookimpl
def msda_discrepancies() -> list[type[Discrepancy]]:
    """The discrepancies of the paper, and none."""
    from msda_bench_builtin.discrepancies import Mmd, NoDiscrepancy, ProxyADistance, SpectralL2

    return [Mmd, NoDiscrepancy, ProxyADistance, SpectralL2]


@hookimpl
def msda_aggregators() -> list[type[Aggregator]]:
    """DARN's sharpmax, MDAN's two forms, and equal weights."""
    from msda_bench_builtin.aggregators import Hardmax, LogSumExp, Sharpmax, Uniform

    return [Hardmax, LogSumExp, Sharpmax, Uniform]


@hookimpl
def msda_schemes() -> list[type[Scheme]]:
    """How the paper's methods train."""
    from msda_bench_builtin.schemes import Adapt, M3sda, Mdmn, Pooled, TargetOnly

    return [Adapt, M3sda, Mdmn, Pooled, TargetOnly]


@hookimpl
def msda_validators() -> list[type[Validator]]:
    """Scores on held-out source examples."""
    from msda_bench_builtin.validators import SourceAccuracy, SourceRisk

    return [SourceAccuracy, SourceRisk]
