"""Builds the tables of methods across datasets: mean ranks, gains over the baseline, pairs of methods."""

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
    """Tables of methods across datasets: mean ranks with groups and gains over the baseline, then the pairs."""
    if across is None or not (across.mean_ranks or across.gains):
        return
    unit = Unit.of(DEFAULT_MEASURES["classification"], ())
    title = f"across {len(across.datasets)} datasets: {', '.join(across.datasets)}"
    rows = standings(across)
    columns = [Column("method", "text", ["method"]), Column("mean rank", "rank", ["mean_rank"])]
    if across.baseline is not None:
        is_base = rows["method"] == across.baseline
        rows = rows.assign(
            **{name: rows[name].mask(is_base) for name in ("mean_gain", "mean_gain_low", "mean_gain_high")}
        )
        columns += [
            Column("mean gain", "difference", ["mean_gain"], unit),
            Column("interval", "interval", ["mean_gain_low", "mean_gain_high"], unit),
            *(Column(what, "of tested", [f"n_{what}", "n_tested"]) for what in ("better", "worse")),
            *(Column(name, "gain with mark", [f"gain:{name}", f"outcome:{name}"], unit) for name in across.experiments),
        ]
    notes = tuple(_across_notes(across))
    yield Table("across-datasets", title, rows, tuple(columns), notes=notes, verdict=verdict_across(across))
    if across.has_estimates:
        yield _estimates_table(across, rows, unit)
    if across.concludes:
        kept = comparison_columns(with_margin=across.margin is not None or bool(across.primary))
        pairs, title = shown_family(pd.DataFrame(across.rows, columns=kept)), "pairs of methods across datasets"
        yield Table("across-datasets-pairs", title, pairs, pair_columns(unit, pairs), about=PAIR)


def _estimates_table(across: Across, rows: pd.DataFrame, unit: Unit) -> Table:
    """What all data sets together say of each method's gain."""
    margin, level = across.margin, f"{100 * (1 - across.alpha):g} %"
    columns = [
        Column("method", "text", ["method"]),
        Column("mean gain", "difference", ["mean_gain"], unit),
        Column("interval", "interval", ["mean_gain_low", "mean_gain_high"], unit),
        Column("corrected p", "p", ["p_corrected"]),
        Column("80 %", "number", ["detectable"], unit),
    ]
    if margin is not None:
        columns.append(Column(f"against {across.baseline}", "standing", ["standing"]))
    holm = "Holm's correction"
    if across.primary:
        holm += " over the primary methods, and Benjamini and Hochberg's over the others, which are exploratory"
    note = (
        f"mean gain: over {across.baseline} in points of accuracy, each experiment with equal weight, and its {level} "
        f"interval over the seeds; corrected p: of its t test, with {holm}; 80 %: the smallest true mean gain that the "
        "test would find with probability 0.8."
    )
    title = f"across {len(across.datasets)} datasets: the mean gain over {across.baseline}"
    shown = rows[rows["family"].notna()].sort_values("family", ascending=False, kind="stable")
    return Table("across-datasets-gains", title, shown, tuple(columns), notes=(note,))


def _across_notes(across: Across) -> Iterator[str]:
    if across.baseline is not None:
        yield (
            f"mean gain and the columns of experiments: gain over {across.baseline} in points of accuracy, mean over "
            f"targets and seeds, with its {100 * (1 - across.alpha):g} % interval over the seeds of these experiments; "
            f"{BETTER_MARK}: significantly better than {across.baseline}, {WORSE_MARK}: significantly worse (exact "
            f"two-sided signed-rank tests over the seeds, alpha {across.alpha:g}, Holm's correction as in the "
            "experiment's own tables). better, worse: in how many experiments, of those where a test could show it."
        )
    if across.mean_ranks:
        yield f"Mean rank: {across.reason}."
    if across.separates:
        yield from (f"No difference was shown within {', '.join(group)}." for group in across.cliques)
    elif across.concludes:
        yield f"One group: {too_few_datasets(across)}."
    yield from (f"Not included: {line}." for line in across.skipped)
