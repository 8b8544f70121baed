"""comparisons.csv: one row for each pair of methods at each target, on average, across targets and across datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msda_bench.report.csv_text import Value, csv_text
from msda_bench.report.effect_columns import effect_columns
from msda_bench.stats.across_datasets import ACROSS_METRIC, across_datasets
from msda_bench.stats.analysis import Analysis
from msda_bench.stats.compare import Comparison
from msda_bench.suite.plan import Plan

COLUMNS = (
    *("suite", "experiment", "dataset", "scope", "target", "first", "second", "better", "status"),
    *("n_planned", "n_paired", "n_zero", "statistic", "p_one_sided", "p_two_sided", "p_holm"),
    *("attainable_p", "attainable_p_holm", "significant_holm", "alpha", "metric", "mean_difference"),
    *("median_difference", "hodges_lehmann", "hl_low", "hl_high", "wins", "ties", "losses"),
    *("p_bh", "improvement", "improvement_low", "improvement_high"),
)
"""The columns, explained in docs/results.md."""


def comparisons_csv(plan: Plan, analyses: Iterable[Analysis]) -> str:
    """All comparisons as CSV text, in the plan's order."""
    return csv_text(COLUMNS, comparison_rows(plan, analyses))


def comparison_rows(plan: Plan, analyses: Iterable[Analysis]) -> Iterator[dict[str, Value]]:
    """The comparisons' rows, by column; those across datasets, which belong to no experiment, come last."""
    every = tuple(analyses)
    for analysis in every:
        experiment = analysis.scores.experiment
        for pair in analysis.comparisons:
            yield {
                "suite": plan.suite,
                "experiment": experiment.name,
                "dataset": experiment.dataset,
                "metric": analysis.scores.metric,
                **_row(pair),
            }
    across = across_datasets(every)
    for pair in across.comparisons if across else ():
        yield {"suite": plan.suite, "experiment": None, "dataset": None, "metric": ACROSS_METRIC, **_row(pair)}


def _row(pair: Comparison) -> dict[str, Value]:
    return {
        "scope": pair.scope,
        "target": pair.target,
        "first": pair.first,
        "second": pair.second,
        "better": pair.better,
        "status": pair.status,
        "n_planned": pair.n_planned,
        "n_paired": pair.n_paired,
        "n_zero": pair.test.n_zero,
        "alpha": pair.alpha,
        **_test(pair),
        **effect_columns(pair.effect),
        **_improvement(pair),
    }


def _test(pair: Comparison) -> dict[str, Value]:
    """Without pairs there was no test, and nothing to show for one."""
    tested = pair.n_paired > 0
    return {
        "statistic": pair.test.statistic if tested else None,
        "p_one_sided": pair.p_one_sided if tested else None,
        "p_two_sided": pair.test.p if tested else None,
        "p_holm": pair.p_holm if tested else None,
        "p_bh": pair.p_bh if tested else None,
        "attainable_p": pair.attainable_p,
        "attainable_p_holm": pair.attainable_p_holm,
        "significant_holm": pair.significant if pair.tellable else None,
    }


def _improvement(pair: Comparison) -> dict[str, Value]:
    improvement = pair.improvement
    interval = improvement.interval if improvement else None
    return {
        "improvement": improvement.value if improvement else None,
        "improvement_low": interval.low if interval else None,
        "improvement_high": interval.high if interval else None,
    }
