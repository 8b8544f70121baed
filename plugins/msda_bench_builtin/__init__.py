"""The components that come with msda-bench, registered through the same hooks as third-party ones."""

from __future__ import annotations

from msda_bench.api import Aggregator, Backbone, Dataset, Discrepancy, Metric, Scheme, Validator, hookimpl


@hookimpl
def msda_datasets() -> list[type[Dataset]]:
    """The datasets."""
    from msda_bench_builtin import datasets as found

    return [getattr(found, name) for name in found.__all__]


@hookimpl
def msda_backbones() -> list[type[Backbone]]:
    """The networks."""
    from msda_bench_builtin.backbones import ConvNet, Linear, Mlp, Torchvision

    return [ConvNet, Linear, Mlp, Torchvision]


@hookimpl
def msda_discrepancies() -> list[type[Discrepancy]]:
    """The paper's discrepancies, the field's, and none."""
    from msda_bench_builtin import discrepancies as found

    return [
        found.Coral,
        found.Mmd,
        found.Moments,
        found.NoDiscrepancy,
        found.ProxyADistance,
        found.Sinkhorn,
        found.SlicedWasserstein,
        found.SpectralL2,
        found.Wasserstein,
    ]


@hookimpl
def msda_aggregators() -> list[type[Aggregator]]:
    """DARN's sharpmax, MDAN's two forms, the field's, and equal weights."""
    from msda_bench_builtin import aggregators as found

    return [
        found.GroupDro,
        found.Hardmax,
        found.LogSumExp,
        found.Sharpmax,
        found.Size,
        found.Softmax,
        found.Sparsemax,
        found.TopK,
        found.Uniform,
        found.Wadn,
    ]


@hookimpl
def msda_schemes() -> list[type[Scheme]]:
    """Training schemes of the paper and the field."""
    from msda_bench_builtin import schemes as found

    return [
        found.Aad,
        found.Adapt,
        found.Alternate,
        found.BestSingle,
        found.Cdan,
        found.Chance,
        found.Decision,
        found.Ensemble,
        found.Given,
        found.GradientBoosting,
        found.Jcpot,
        found.Joint,
        found.Kd3a,
        found.LogisticRegression,
        found.M3sda,
        found.Mcd,
        found.Mdd,
        found.Mdmn,
        found.Mfsan,
        found.Pooled,
        found.RandomForest,
        found.Regularised,
        found.Shot,
        found.Simpal,
        found.TargetOnly,
        found.Wbt,
        found.Wjdot,
    ]


@hookimpl
def msda_validators() -> list[type[Validator]]:
    """Scores on held-out source examples, and on the target's predictions."""
    from msda_bench_builtin import validators as found

    return [
        found.Bnm,
        found.Dev,
        found.Entropy,
        found.ImportanceWeightedRisk,
        found.Infomax,
        found.Mano,
        found.Mixval,
        found.Snd,
        found.SourceAccuracy,
        found.SourceRisk,
    ]


@hookimpl
def msda_metrics() -> list[type[Metric]]:
    """Metrics for tables."""
    from msda_bench_builtin import metrics as found

    return [
        found.Accuracy,
        found.Auc,
        found.BalancedAccuracy,
        found.MacroF1,
        found.MeanAbsoluteError,
        found.MeanSquaredError,
        found.R2,
    ]
