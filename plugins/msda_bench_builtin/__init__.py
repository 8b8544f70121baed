"""The components that come with msda-bench, registered through the same hooks as third-party ones."""

from __future__ import annotations

from msda_bench.api import Aggregator, Backbone, Dataset, Discrepancy, Metric, Scheme, Validator, hookimpl


@hookimpl
def msda_datasets() -> list[type[Dataset]]:
    """The datasets."""
    from msda_bench_builtin import datasets

    return [getattr(datasets, name) for name in datasets.__all__]


@hookimpl
def msda_backbones() -> list[type[Backbone]]:
    """The networks."""
    from msda_bench_builtin.backbones import ConvNet, Linear, Mlp, Torchvision

    return [ConvNet, Linear, Mlp, Torchvision]


@hookimpl
def msda_discrepancies() -> list[type[Discrepancy]]:
    """The paper's discrepancies, the field's, and none."""
    from msda_bench_builtin import discrepancies

    return [
        discrepancies.Coral,
        discrepancies.Mmd,
        discrepancies.Moments,
        discrepancies.NoDiscrepancy,
        discrepancies.ProxyADistance,
        discrepancies.Sinkhorn,
        discrepancies.SlicedWasserstein,
        discrepancies.SpectralL2,
        discrepancies.Wasserstein,
    ]


@hookimpl
def msda_aggregators() -> list[type[Aggregator]]:
    """DARN's sharpmax, MDAN's two forms, the field's, and equal weights."""
    from msda_bench_builtin import aggregators

    return [
        aggregators.GroupDro,
        aggregators.Hardmax,
        aggregators.LogSumExp,
        aggregators.Sharpmax,
        aggregators.Size,
        aggregators.Softmax,
        aggregators.Sparsemax,
        aggregators.TopK,
        aggregators.Uniform,
        aggregators.Wadn,
    ]


@hookimpl
def msda_schemes() -> list[type[Scheme]]:
    """Training schemes of the paper and the field."""
    from msda_bench_builtin import schemes

    return [
        schemes.Aad,
        schemes.AdaBn,
        schemes.Adapt,
        schemes.Alternate,
        schemes.BestSingle,
        schemes.Cdan,
        schemes.Chance,
        schemes.Decision,
        schemes.Ensemble,
        schemes.Given,
        schemes.GradientBoosting,
        schemes.Jcpot,
        schemes.Joint,
        schemes.Kd3a,
        schemes.LogisticRegression,
        schemes.M3sda,
        schemes.Mcd,
        schemes.Mdd,
        schemes.Mdmn,
        schemes.Mfsan,
        schemes.PassThrough,
        schemes.Pooled,
        schemes.RandomForest,
        schemes.Regularised,
        schemes.Shot,
        schemes.Simpal,
        schemes.TargetOnly,
        schemes.Wbt,
        schemes.Wjdot,
    ]


@hookimpl
def msda_validators() -> list[type[Validator]]:
    """Scores on held-out source examples, and on the target's predictions."""
    from msda_bench_builtin import validators

    return [
        validators.Bnm,
        validators.Dev,
        validators.Entropy,
        validators.ImportanceWeightedRisk,
        validators.Infomax,
        validators.Mano,
        validators.Mixval,
        validators.Snd,
        validators.SourceAccuracy,
        validators.SourceRisk,
    ]


@hookimpl
def msda_metrics() -> list[type[Metric]]:
    """Metrics for tables."""
    from msda_bench_builtin import metrics

    return [
        metrics.Accuracy,
        metrics.Auc,
        metrics.BalancedAccuracy,
        metrics.MacroF1,
        metrics.MeanAbsoluteError,
        metrics.MeanSquaredError,
        metrics.R2,
    ]
