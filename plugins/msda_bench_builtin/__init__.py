"""The components that come with msda-bench, registered through the same hooks as third-party ones."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from msda_bench.api import hookimpl

if TYPE_CHECKING:
    from msda_bench.api import Aggregator, Backbone, Dataset, Discrepancy, Metric, SchemeBase, Validator


def _all(module: ModuleType) -> list[Any]:
    return [getattr(module, name) for name in module.__all__]


@hookimpl
def msda_datasets() -> list[type[Dataset]]:
    """The datasets."""
    from msda_bench_builtin import datasets

    return _all(datasets)


@hookimpl
def msda_backbones() -> list[type[Backbone]]:
    """The networks."""
    from msda_bench_builtin import backbones

    return _all(backbones)


@hookimpl
def msda_discrepancies() -> list[type[Discrepancy]]:
    """The paper's discrepancies, the field's, and none."""
    from msda_bench_builtin import discrepancies

    return _all(discrepancies)


@hookimpl
def msda_aggregators() -> list[type[Aggregator]]:
    """DARN's sharpmax, MDAN's two forms, the field's, and equal weights."""
    from msda_bench_builtin import aggregators

    return _all(aggregators)


@hookimpl
def msda_schemes() -> list[type[SchemeBase]]:
    """Training schemes of the paper and the field."""
    from msda_bench_builtin import schemes

    return _all(schemes)


@hookimpl
def msda_validators() -> list[type[Validator]]:
    """Scores on held-out source examples, and on the target's predictions."""
    from msda_bench_builtin import validators

    return _all(validators)


@hookimpl
def msda_metrics() -> list[type[Metric]]:
    """Metrics for tables."""
    from msda_bench_builtin import metrics

    return _all(metrics)
