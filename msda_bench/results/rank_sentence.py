"""Says in a sentence where a method stands: its rank, and its gain over the baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pandas as pd

from msda_bench.results.decision import BETTER, EXPLORATORY, SAME, WORSE
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.report import mean_text
from msda_bench.results.rows import against, main_pairs, main_rows
from msda_bench.results.words import counted, name_of
from msda_bench.suite.plan import Experiment


def own_methods(runs: pd.DataFrame) -> dict[str, list[str]]:
    """The methods that the runs of a folder have by themselves, by experiment."""
    return {table.name: [method.name for method in table.methods] for table in runs.attrs["plan"].experiments}


def standing(analysis: Analysis, mine: Mapping[str, Collection[str]]) -> Iterator[str]:
    """A sentence for each of these methods, by experiment: its rank, and its gain over the baseline.

    The test is that of the tables: exact, two-sided, with Holm's correction over the family, in which it is.
    """
    for table in analysis.runs.attrs["plan"].experiments:
        rows = main_rows(analysis.leaderboard[(analysis.leaderboard["experiment"] == table.name).to_numpy()])
        pairs = main_pairs(analysis.comparisons)
        pairs = pairs[(pairs["experiment"] == table.name).to_numpy()]
        ranked = rows[rows["rank"].notna()]
        for row in ranked[ranked["method"].isin(mine[table.name])].to_dict("records"):
            place = f"{table.name}: {name_of(row['method'])} is number {row['rank']} of {len(ranked)} ranked methods"
            unit = f"{'% ' if table.measure.percent else ''}{table.measure.label}"
            yield f"{place} ({mean_text(row)} {unit}). {_beside_baseline(table, pairs, row['method'])}"


def _beside_baseline(table: Experiment, pairs: pd.DataFrame, method: str) -> str:
    of_pair = [{*names} == {method, table.baseline} for names in pairs[["first", "second"]].to_numpy()]
    pairs = pairs[of_pair]
    others = against(pairs, table.baseline or "")
    if others.empty or pd.isna(others["difference"].iloc[0]):
        return "It shares no seed with a baseline."
    form, row = "{:+.2f}" if table.measure.percent else "{:+.3g}", others.iloc[0]
    base = name_of(table.baseline)
    gain = f"Against the baseline {base}: {form.format(row['difference'])}"
    if pd.notna(row["low"]):
        gain += f" [{form.format(row['low'])}, {form.format(row['high'])}] over {counted(int(row['pairs']), 'seed')}"
    words = {BETTER: "significantly better", WORSE: "significantly worse", SAME: "equal in every pair"}
    ends = words.get(row["outcome"], "not shown to differ")
    if (known := row.get("standing")) is not None and pd.notna(known):
        ends = f"{known} (margin {table.margin:g})"
    whose = "Benjamini and Hochberg" if str(pairs["family"].iloc[0]).startswith(EXPLORATORY) else "Holm"
    return f"{gain}, {ends}, after {whose}'s correction over {counted(int(pairs['n_family'].iloc[0]), 'comparison')}."
