"""Builds the tables of methods across datasets: gains over the baseline, mean ranks, pairs of methods."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.compare import comparison_columns
from msda_bench.results.experiment_tables import PAIR, pair_columns
from msda_bench.results.report import BETTER_MARK, WORSE_MARK, Column, Table, Unit
from msda_bench.results.rows import shown_family
from msda_bench.results.verdict import too_few_datasets, verdict_across
from msda_bench.suite.plan import DEFAULT_MEASURES


def across_tables(across: Across | None) -> Iterator[Table]:
    """Tables of methods across datasets: gains over the baseline and mean ranks, then the pairs."""
    if across is None or not (across.mean_ranks or across.gains):
        return
    unit = Unit.of(DEFAULT_MEASURES["classification"], ())
    title = f"across {len(across.datasets)} datasets: {', '.join(across.datasets)}"
    rows = standings(across)
    columns = [Column("method", "text", ["method"])]
    if across.baseline is not None:
        sizes = ["mean_gain", "mean_gain_low", "mean_gain_high"]
        rows[sizes] = rows[sizes].mask(rows["method"] == across.baseline)
        columns += [
            Column("mean gain", "difference", sizes[:1], unit),
            Column("interval", "interval", sizes[1:], unit),
        ]
        if across.has_estimates:
            columns += [Column("corrected p", "p", ["p_corrected"]), Column("80 %", "number", ["detectable"], unit)]
        if across.margin is not None:
            columns.append(Column(f"against {across.baseline}", "standing", ["standing"]))
        columns += [Column(what, "of tested", [f"n_{what}", "n_tested"]) for what in ("better", "worse")]
    columns.append(Column("mean rank", "rank", ["mean_rank"]))
    columns += [
        Column(name, "gain with mark", [f"gain:{name}", f"outcome:{name}"], unit) for name in across.experiments
    ]
    notes = tuple(_across_notes(across))
    yield Table("across-datasets", title, rows, tuple(columns), notes=notes, verdict=verdict_across(across))
    if across.concludes:
        kept = comparison_columns(with_margin=across.margin is not None or bool(across.primary))
        pairs, title = shown_family(pd.DataFrame(across.rows, columns=kept)), "pairs of methods across datasets"
        yield Table("across-datasets-pairs", title, pairs, pair_columns(unit, pairs), about=PAIR)


def _across_notes(across: Across) -> Iterator[str]:
    if across.baseline is not None:
        yield (
            f"mean gain and the columns of experiments: gain over {across.baseline} in points of accuracy, mean over "
            f"targets and seeds, each experiment with equal weight, with its {100 * (1 - across.alpha):g} % interval "
            f"over the seeds; {BETTER_MARK}, {WORSE_MARK}: significantly better or worse than {across.baseline} by the "
            "experiment's own tests; better, worse: in how many experiments, of those where a test could show it."
        )
    if across.has_estimates:
        holm = "Holm's correction"
        if across.primary:
            holm += " over the primary methods, Benjamini and Hochberg's over the others, which are exploratory"
        yield f"corrected p: of the mean gain's t test, with {holm}; 80 %: the true mean gain that it finds so often."
    if across.mean_ranks:
        yield f"Mean rank: {across.reason}."
    if across.separates:
        yield from (f"No difference was shown within {', '.join(group)}." for group in across.cliques)
    elif across.concludes:
        yield f"One group: {too_few_datasets(across)}."
    yield from (f"Not included: {line}." for line in across.skipped)
