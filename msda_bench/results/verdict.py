"""Writes the verdict on an experiment: does a method gain over the baseline, how much, is there headroom.

Sizes are mean differences with their intervals, as in the tables; the exact tests decide whether a method is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

import pandas as pd

from msda_bench.results.chance import BesideChance, chance_sentences
from msda_bench.results.decision import SAME, TOO_FEW, TOO_SMALL, WORSE, PairedComparison, pairs_of_mean, with_method
from msda_bench.results.differences import (
    UNDECIDED,
    Difference,
    GainUnit,
    answer,
    groups_of,
    headroom_sentence,
    needed_pairs,
    other_groups,
)
from msda_bench.results.leaderboard import Row, by_rank, rows_of_mean
from msda_bench.results.report import mean_text
from msda_bench.results.runs import are_ok, ok_runs
from msda_bench.results.scores import ScoreTable, at_chance, learns_alone, tells_headroom
from msda_bench.results.words import counted, first_of, listed, name_of
from msda_bench.suite.plan import Experiment

_SMALL = "the tests have too few rows to show a difference"


def verdict(
    table: ScoreTable,
    runs: pd.DataFrame,
    rows: Sequence[Row],
    pairs: Sequence[PairedComparison],
    chance: BesideChance,
) -> tuple[str, ...]:
    """The sentences on an experiment, from its selected runs, its rows of the leaderboard, and its comparisons."""
    experiment = table.experiment
    main = rows_of_mean(table, rows)
    pairs = pairs_of_mean(pairs)
    ranked = by_rank(main)
    if not ranked:
        return (_unranked(experiment, runs),)
    unit = GainUnit.of(experiment)
    baseline = experiment.baseline
    groups = groups_of(pairs, baseline)
    if groups:
        why = _too_few(experiment, pairs, str(baseline)) if groups.keys() == {TOO_FEW} else ""
        sentences = [answer(unit, name_of(baseline), groups, why)]
        if why == _SMALL:
            return (*sentences, *_missing(runs))
        sentences += _headroom(table, unit, main, runs)
        sentences += other_groups(unit, name_of(baseline), groups)
    else:
        baseline = str(ranked[0]["method"])
        sentences = [_best(experiment, unit, ranked, pairs)]
    sentences += chance_sentences(experiment, rows, chance)
    sentences += _power(unit, with_method(pairs, str(baseline)))
    sentences += _missing(runs)
    return tuple(sentences)


def how_to_read(alpha: float) -> str:
    """What the intervals of a verdict are, and why they may differ from the tests."""
    return (
        "Exact signed-rank tests over the seeds, corrected for multiple comparisons, decide what is shown of these "
        f"examples. Differences are means over the seeds; their {100 * (1 - alpha):g} % intervals allow for the "
        "examples that seeds share, so they speak of other examples of these domains and are wider."
    )


def conclusion(experiment: Experiment, pairs: Sequence[PairedComparison]) -> str:
    """A line on an experiment: `fonts, against SRC: DARN better (+3.5); MDAN worse (-2.0); 3 not shown to differ`."""
    where = name_of(experiment.name)
    groups = groups_of(pairs_of_mean(pairs), experiment.baseline)
    if not groups:
        return f"{where}: no method is compared with a baseline"
    counted_alone = {UNDECIDED: "not shown to differ", SAME: "equal", TOO_FEW: "not tested"}
    form = "{} ({:+.1f})" if experiment.measure.percent else "{} ({:+.2g})"
    parts = []
    for kind, found in groups.items():
        if kind in counted_alone:
            parts.append(f"{len(found)} {counted_alone[kind]}")
        else:
            gains = [form.format(name_of(difference.method), difference.size) for difference in found]
            parts.append(f"{first_of(gains)} {kind}")
    return f"{where}, against {name_of(experiment.baseline)}: {'; '.join(parts)}"


def _unranked(experiment: Experiment, runs: pd.DataFrame) -> str:
    """Why no method of an experiment is ranked."""
    tests = ok_runs(runs)["n_test"]
    if len(tests) and (tests == 0).all():
        where = ", ".join(map(name_of, experiment.targets))
        return f"How good a method is at {where}, and which is best, cannot be known: there are no labels."
    own = runs[~runs["reference"].to_numpy(dtype=bool)]
    if own.empty:
        return "No method is ranked here: all are references."
    if (own["status"] == "diverged").all():
        return "Every run of a ranked method diverged, so no method has a score."
    if are_ok(own).any():
        return "No method has a result at every target yet."
    return "No method has a result yet."


def _best(experiment: Experiment, unit: GainUnit, ranked: Sequence[Row], pairs: Sequence[PairedComparison]) -> str:
    """Names the best mean, where nothing can be compared with a baseline, and the methods that are worse."""
    best = [name_of(row["method"]) for row in ranked if row["rank"] == 1]
    verb = "has" if len(best) == 1 else "share"
    n = len(experiment.targets)
    where = f"on average over {n} targets" if n > 1 else f"at {name_of(experiment.targets[0])}"
    measure = experiment.measure
    metric = f"% {measure.label}" if measure.percent else measure.label
    text = f"{first_of(best)} {verb} the best mean {where}: {mean_text(ranked[0])} {metric}"
    if len(ranked) == 1:
        return f"{text}; no other method is ranked."
    method = str(ranked[0]["method"])
    groups = groups_of(pairs, method)
    if groups.keys() == {TOO_FEW}:
        return f"{text}. That is not certain: {_too_few(experiment, pairs, method)}."
    worse = unit.gains(groups[WORSE]) if WORSE in groups else "no other"
    return f"{text}. Shown to be worse: {worse}."


def _headroom(table: ScoreTable, unit: GainUnit, rows: Sequence[Row], runs: pd.DataFrame) -> Iterator[str]:
    """How much labels of the target gain, by a reference, if possible one that learns from the sources, too."""
    labelled = {row["method"]: row for row in rows if row["method"] in table.labelled and not math.isnan(row["gain"])}
    recipes = {name: str(row["recipe"]) for name, row in labelled.items()}
    gains = {name: row["gain"] for name, row in labelled.items()}
    method = tells_headroom(table.experiment.headroom, recipes, gains)
    if method is None:
        return
    row = labelled[method]
    alone = _learned_from(runs, method) if learns_alone(recipes[method]) else ""
    difference = Difference(method, row["gain"], row["gain_low"], row["gain_high"])
    yield headroom_sentence(unit, difference, is_shown=row["headroom"], alone=alone)


def _learned_from(runs: pd.DataFrame, method: str) -> str:
    """How many rows a reference learns from that sees the target alone."""
    ok = ok_runs(runs)
    sizes = ok.loc[(ok["method"] == method).to_numpy(), "n_train"].dropna()
    if sizes.empty:
        return "learns from the target alone"
    low = int(sizes.min())
    high = int(sizes.max())
    size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"learns from {size} rows of the target alone"


def _too_few(experiment: Experiment, pairs: Sequence[PairedComparison], method: str) -> str:
    """Why no comparison with a method can be significant."""
    mine = with_method(pairs, method)
    if all(pair.reason == TOO_SMALL for pair in mine):
        return _SMALL
    seeds = counted(max(pair.n_paired for pair in mine), "seed")
    n = min(pair.n_family for pair in mine)
    among = f" among {n} comparisons" if n > 1 else ""
    return f"with {seeds} no difference{among} can be significant, which takes {needed_pairs(n, experiment.alpha)}"


def _power(unit: GainUnit, pairs: Sequence[PairedComparison]) -> Iterator[str]:
    """States the smallest true difference that the tests would find; the median over the comparisons with a method."""
    detectable = [pair.detectable for pair in pairs if pair.detectable is not None]
    if not detectable:
        return
    seeds = counted(max(pair.n_paired for pair in pairs), "seed")
    size = unit.size(median(detectable))
    if len(detectable) > 1:
        size += " (median)"
    yield f"With {seeds} the tests have 80 % power for a true difference of {size}."


def _missing(runs: pd.DataFrame) -> Iterator[str]:
    """Counts the runs that diverged, and those without a score."""
    diverged = at_chance(runs)
    if len(diverged):
        verb = "counts" if len(diverged) == 1 else "count"
        yield f"{counted(len(diverged), 'run')} diverged and {verb} as chance does."
    statuses = runs["status"].drop(diverged.index).astype(object)
    counts = statuses.value_counts().drop("ok", errors="ignore")
    if len(counts):
        kinds = listed(f"{count:,} {status}" for status, count in counts.items())
        without = f"{counts.sum():,} of {counted(len(runs), 'run')} have no score ({kinds})"
        yield f"{without}; tests take the seeds that both methods have."
