"""What must be said under a table for its marks to be read rightly."""

from __future__ import annotations

from collections.abc import Iterator

from msda_bench.stats.analysis import Analysis
from msda_bench.stats.bold import enough_pairs
from msda_bench.stats.scores import AVERAGE


def caption(analysis: Analysis, mark: str) -> Iterator[str]:
    """The paragraphs under an experiment's table.

    Args:
        analysis: of the experiment.
        mark: how the table marks the paper's bold set.
    """
    experiment = analysis.scores.experiment
    seeds, alpha = len(experiment.seeds), experiment.alpha
    if enough_pairs(seeds, alpha):
        yield (
            f"{mark}: the best mean, and every method not significantly worse than it (exact one-sided Wilcoxon "
            f"signed-rank test paired over {seeds} seeds, alpha {alpha:g}, not corrected for many tests)."
        )
        yield from _holm(analysis)
    else:
        yield (
            f"With {_seeds(seeds)} the smallest attainable p is {0.5**seeds:.4g}, above alpha {alpha:g}: "
            "no method can be told apart from another, and none is marked."
        )
    if any(0 < entry.summary.n < seeds for entry in analysis.entries.values()):
        yield f"n/{seeds}: only n runs are ok; the mean is theirs, and tests take the seeds that both methods have."
    references = [method.name for method in experiment.methods if method.reference]
    if references:
        yield f"Reference, not ranked and not tested: {', '.join(references)}."


def _holm(analysis: Analysis) -> Iterator[str]:
    experiment = analysis.scores.experiment
    ranked = [method.name for method in experiment.methods if not method.reference]
    pairs = len(ranked) * (len(ranked) - 1) // 2
    attainable = min(1.0, 2 * pairs * 0.5 ** len(experiment.seeds))
    if attainable > experiment.alpha:
        yield (
            f"After Holm's correction over all pairs ({pairs}) the smallest attainable p is {attainable:.4g}, "
            f"above alpha: with {_seeds(len(experiment.seeds))} no method can be told apart that way."
        )
    elif pairs:
        sets = "; ".join(_holm_sets(analysis, ranked))
        yield f"Not told apart from the best mean after Holm's correction over all pairs ({pairs}, two-sided): {sets}."


def _holm_sets(analysis: Analysis, ranked: list[str]) -> Iterator[str]:
    for column in analysis.scores.shown_columns:
        names = [name for name in ranked if analysis.entries[name, column].bold_holm]
        yield f"{AVERAGE if column is None else column}: {', '.join(names) or 'too few runs to tell'}"


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"
