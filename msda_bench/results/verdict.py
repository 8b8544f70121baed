"""Writes the verdict on one or several experiments: does a method gain over the baseline, how much, is there headroom.

Sizes are mean differences with their intervals, as in the tables; the exact tests decide whether a method is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.chance import BesideChance, chance_sentences
from msda_bench.results.compare import comparisons_frame, main_pairs, main_rows, relative_to
from msda_bench.results.decision import BETTER, SAME, TOO_FEW, TOO_SMALL, UNTESTED, WORSE
from msda_bench.results.report import mean_text
from msda_bench.results.scores import at_chance, labelled_methods, learns_alone, tells_headroom
from msda_bench.results.words import counted, first_of, listed, name_of
from msda_bench.suite.plan import Experiment

Groups: TypeAlias = dict[str, pd.DataFrame]
"""Rows of `method, difference, low, high` by what these methods are, the best first, and in each the largest gain."""
UNDECIDED = "undecided"
_KINDS = (BETTER, SAME, WORSE, UNDECIDED, TOO_FEW)
_SMALL = "the tests have too few rows to show a difference"
_UNTESTED = "too few seeds for a test"


class _Unit(NamedTuple):
    """How sentences show differences: the `form` of numbers, and the `label` of their unit."""

    form: str
    label: str

    @classmethod
    def of(cls, experiment: Experiment) -> _Unit:
        measure = experiment.measure
        if measure.percent:
            return cls("{:+.2f}", "points")
        return cls("{:+.3g}", f"in {measure.label}")

    def size(self, size: float) -> str:
        if self.label == "points":
            return f"{size:.1f} points"
        return f"{size:.2g} {self.label}"

    def gains(self, rows: pd.DataFrame) -> str:
        """Names methods with their mean differences and intervals."""
        return first_of([self.gain(row) for row in rows.to_dict("records")])

    def gain(self, row: Mapping[Any, Any]) -> str:
        """Names a method with its mean difference and interval; `of` tells in how many experiments it has results."""
        text = f"{name_of(row['method'])} {self.form.format(row['difference'])}"
        if not pd.isna(row["low"]):
            text += f" [{self.form.format(row['low'])}, {self.form.format(row['high'])}]"
        return f"{text}{row.get('of', '')}"


def verdict(
    experiment: Experiment, runs: pd.DataFrame, board: pd.DataFrame, pairs: pd.DataFrame, chance: BesideChance
) -> tuple[str, ...]:
    """The sentences on an experiment, from its selected runs and its rows of the leaderboard and the comparisons."""
    rows = main_rows(board)
    pairs = main_pairs(pairs)
    ranked = rows[rows["rank"].notna()].sort_values("rank", kind="stable")
    if ranked.empty:
        return (_unranked(experiment, runs),)
    unit = _Unit.of(experiment)
    baseline = experiment.baseline
    groups = groups_of(pairs, baseline)
    if groups:
        why = _too_few(experiment, pairs, str(baseline)) if groups.keys() == {TOO_FEW} else ""
        sentences = [_answer(unit, name_of(baseline), groups, why)]
        if why == _SMALL:
            return (*sentences, *_missing(runs))
        sentences += _headroom(experiment, unit, rows, runs)
        sentences += _other_groups(unit, name_of(baseline), groups)
    else:
        baseline = str(ranked["method"].iloc[0])
        sentences = [_best(experiment, unit, ranked, pairs)]
    sentences += chance_sentences(experiment, board, chance)
    sentences += _power(unit, relative_to(str(baseline), pairs))
    sentences += _missing(runs)
    return tuple(sentences)


def how_to_read(alpha: float) -> str:
    """What the intervals of a verdict are, and why they may differ from the tests."""
    return (
        "Exact signed-rank tests over the seeds, corrected for multiple comparisons, decide what is shown of these "
        f"examples. Differences are means over the seeds; their {100 * (1 - alpha):g} % intervals allow for the "
        "examples that seeds share, so they speak of other examples of these domains and are wider."
    )


def conclusion(experiment: Experiment, pairs: pd.DataFrame) -> str:
    """A line on an experiment: `fonts, against SRC: DARN better (+3.5); MDAN worse (-2.0); 3 not shown to differ`."""
    where = name_of(experiment.name)
    groups = groups_of(main_pairs(pairs), experiment.baseline)
    if not groups:
        return f"{where}: no method is compared with a baseline"
    counted_alone = {UNDECIDED: "not shown to differ", SAME: "equal", TOO_FEW: "not tested"}
    form = "{} ({:+.1f})" if experiment.measure.percent else "{} ({:+.2g})"
    parts = []
    for kind, found in groups.items():
        if kind in counted_alone:
            parts.append(f"{len(found)} {counted_alone[kind]}")
        else:
            gains = [form.format(name_of(row.method), row.difference) for row in found.itertuples()]
            parts.append(f"{first_of(gains)} {kind}")
    return f"{where}, against {name_of(experiment.baseline)}: {'; '.join(parts)}"


def groups_of(pairs: pd.DataFrame, method: str | None) -> Groups:
    """The other methods by their outcome against this one."""
    others = relative_to(method or "", pairs).dropna(subset="difference")
    others = others.sort_values("difference", ascending=False)
    is_decided = others["outcome"].isin([BETTER, WORSE, SAME])
    kinds = others["outcome"].where(is_decided, UNDECIDED)
    kinds = kinds.mask(others["reason"].isin(UNTESTED), TOO_FEW)
    groups = {}
    for kind in _KINDS:
        is_kind = kinds == kind
        if is_kind.any():
            groups[kind] = others[is_kind]
    return groups


def _unranked(experiment: Experiment, runs: pd.DataFrame) -> str:
    """Why no method of an experiment is ranked."""
    tests = runs.loc[(runs["status"] == "ok").to_numpy(), "n_test"]
    if len(tests) and (tests == 0).all():
        where = ", ".join(map(name_of, experiment.targets))
        return f"How good a method is at {where}, and which is best, cannot be known: there are no labels."
    own = runs[~runs["reference"].to_numpy(dtype=bool)]
    if own.empty:
        return "No method is ranked here: all are references."
    if (own["status"] == "diverged").all():
        return "Every run of a ranked method diverged, so no method has a score."
    if (own["status"] == "ok").any():
        return "No method has a result at every target yet."
    return "No method has a result yet."


def _best(experiment: Experiment, unit: _Unit, ranked: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Names the best mean, where nothing can be compared with a baseline, and the methods that are worse."""
    first = ranked.iloc[0].to_dict()
    best = [name_of(name) for name in ranked.loc[(ranked["rank"] == 1).to_numpy(), "method"]]
    verb = "has" if len(best) == 1 else "share"
    n = len(experiment.targets)
    where = f"on average over {n} targets" if n > 1 else f"at {name_of(experiment.targets[0])}"
    measure = experiment.measure
    metric = f"% {measure.label}" if measure.percent else measure.label
    text = f"{first_of(best)} {verb} the best mean {where}: {mean_text(first)} {metric}"
    if len(ranked) == 1:
        return f"{text}; no other method is ranked."
    method = str(first["method"])
    groups = groups_of(pairs, method)
    if groups.keys() == {TOO_FEW}:
        return f"{text}. That is not certain: {_too_few(experiment, pairs, method)}."
    worse = unit.gains(groups[WORSE]) if WORSE in groups else "no other"
    return f"{text}. Shown to be worse: {worse}."


def _answer(unit: _Unit, base: str, groups: Groups, why: str) -> str:
    """Whether methods gain over the baseline, which, and how much; `why` tells why nothing can be shown."""
    n = sum(len(rows) for rows in groups.values())
    if BETTER in groups:
        count = len(groups[BETTER])
        return f"{_some_gain(count, n, base)}: {unit.gains(groups[BETTER])} {unit.label}."
    if why:
        return f"Whether a method gains over {base} is open: {why}; {_largest(unit, groups)}."
    return f"{_none_gains(n, base)}; {_largest(unit, groups)}."


def _some_gain(count: int, n: int, base: str) -> str:
    verb = "gains" if count == 1 else "gain"
    return f"{count} of {counted(n, 'method')} {verb} over {base}"


def _none_gains(n: int, base: str) -> str:
    who = f"None of {n} methods" if n > 1 else "No method"
    return f"{who} was shown to gain over {base}"


def _largest(unit: _Unit, groups: Groups) -> str:
    first_rows = [rows.iloc[0].to_dict() for rows in groups.values()]
    largest = max(first_rows, key=lambda row: float(row["difference"]))
    return f"the largest difference is {unit.gain(largest)} {unit.label}"


def _other_groups(unit: _Unit, base: str, groups: Groups) -> Iterator[str]:
    """A sentence on the methods of each outcome other than `better`."""
    leads = {
        SAME: f"Equal to {base} in every pair",
        WORSE: f"Worse than {base}",
        UNDECIDED: f"Not shown to differ from {base}",
        TOO_FEW: f"Not tested against {base}, too few seeds",
    }
    for kind, rows in groups.items():
        if not kind.startswith(BETTER):
            yield f"{leads.get(kind, _upper(kind))}: {unit.gains(rows)}."


def _headroom(experiment: Experiment, unit: _Unit, rows: pd.DataFrame, runs: pd.DataFrame) -> Iterator[str]:
    """How much labels of the target gain, by the reference that tells most: one that learns from the sources, too."""
    is_labelled = rows["reference"].astype(bool) & rows["method"].isin(labelled_methods(runs))
    known = rows[is_labelled].dropna(subset="gain")
    recipes = {name: str(recipe) for name, recipe in zip(known["method"], known["recipe"], strict=True)}
    gains = dict(zip(known["method"].astype(object), known["gain"], strict=True))
    method = tells_headroom(experiment.headroom, recipes, gains)
    if method is None:
        return
    row = known[(known["method"] == method).to_numpy()].iloc[0].to_dict()
    row["difference"] = row["gain"]
    row["low"] = row["gain_low"]
    row["high"] = row["gain_high"]
    yield _with_labels(unit, row, _learned_from(runs, method) if learns_alone(recipes[method]) else "")


def _learned_from(runs: pd.DataFrame, method: str) -> str:
    """How many rows a reference learns from that sees the target alone."""
    is_own = (runs["method"] == method) & (runs["status"] == "ok")
    sizes = runs.loc[is_own.to_numpy(dtype=bool), "n_train"].dropna()
    if sizes.empty:
        return "learns from the target alone"
    low = int(sizes.min())
    high = int(sizes.max())
    size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"learns from {size} rows of the target alone"


def _with_labels(unit: _Unit, row: Mapping[Any, Any], alone: str = "") -> str:
    """What a reference says of headroom; `alone` tells how little it learns from, if it does not see the sources."""
    gain = f"{unit.gain(row)} {unit.label}"
    if row.get("headroom", row["low"] > 0):
        return f"There is headroom: with labels of the target, {gain}."
    if alone:
        return f"Headroom is not shown: {gain}; {name_of(row['method'])} {alone}, so a JOINT would tell more."
    if row["low"] < row["high"] <= 0:
        return f"Labels of the target would not help: {gain}."
    return f"Headroom is not shown: with labels of the target, {gain}."


def _too_few(experiment: Experiment, pairs: pd.DataFrame, method: str) -> str:
    """Why no comparison with a method can be significant."""
    mine = pairs[((pairs["first"] == method) | (pairs["second"] == method)).to_numpy()]
    if (mine["reason"] == TOO_SMALL).all():
        return _SMALL
    seeds = counted(int(mine["n_paired"].max()), "seed")
    n = int(mine["n_family"].min())
    among = f" among {n} comparisons" if n > 1 else ""
    return f"with {seeds} no difference{among} can be significant, which takes {_needed(n, experiment.alpha)}"


def _needed(tests: int, alpha: float) -> int:
    """The fewest pairs with which one of this many two-sided tests can be significant after Holm's correction."""
    return math.ceil(math.log2(2 * tests / alpha))


def _power(unit: _Unit, others: pd.DataFrame) -> Iterator[str]:
    """States the smallest true difference that the tests would find; the median over the comparisons with a method."""
    known = others["detectable"].dropna()
    if known.empty:
        return
    seeds = counted(int(others["pairs"].max()), "seed")
    size = unit.size(known.median())
    if len(known) > 1:
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


def verdict_across(across: Across) -> tuple[str, ...]:
    """The sentences on several experiments: gains over the baseline, headroom, power, mean ranks."""
    return (*_over_baseline(across), *_by_rank(across))


def _over_baseline(across: Across) -> Iterator[str]:
    unit = _Unit("{:+.2f}", "points in the mean")
    base = name_of(across.baseline)
    table = _mean_gains(across)
    own = table[~table["reference"].astype(bool)]
    if own.empty:
        return
    kinds = own.apply(_counts, axis="columns")
    groups = {kind: own[kinds == kind] for kind in dict.fromkeys(kinds)}
    is_tested = own["n_tested"].any()
    yield _answer_across(across, unit, base, groups) if is_tested else _answer(unit, base, groups, _UNTESTED)
    for row in table[(table["method"] == across.headroom).to_numpy()].to_dict("records"):
        yield _with_labels(unit, row)
    if is_tested:
        yield from _other_groups(unit, base, groups)
        yield from _power_across(across)


def _mean_gains(across: Across) -> pd.DataFrame:
    """The standings with a mean gain, the largest first, with the columns that sentences show."""
    table = standings(across).dropna(subset="mean_gain")
    table = table.sort_values("mean_gain", ascending=False, kind="stable")
    table = table.rename(columns={"mean_gain": "difference", "mean_gain_low": "low", "mean_gain_high": "high"})
    n = len(across.experiments)
    table["of"] = [f" ({count} of {n})" if count < n else "" for count in table["n_experiments"]]
    return table


def _answer_across(across: Across, unit: _Unit, base: str, groups: Groups) -> str:
    """Whether methods gain over the baseline in some experiments, which, and how much."""
    n_experiments = len(across.experiments)
    experiments = counted(n_experiments, "dataset" if n_experiments == len(across.datasets) else "experiment")
    n = sum(len(rows) for rows in groups.values())
    gaining = {kind: rows for kind, rows in groups.items() if kind.startswith(BETTER)}
    if not gaining:
        return f"{_none_gains(n, base)} on any of {experiments}; {_largest(unit, groups)}."
    count = sum(len(rows) for rows in gaining.values())
    gains = [f"{kind}: {unit.gains(rows)}" for kind, rows in gaining.items()]
    return f"{_some_gain(count, n, base)} on some of {experiments}, {'; '.join(gains)} {unit.label}."


def _counts(row: Mapping[Any, Any]) -> str:
    """In how many experiments a method is better and worse than the baseline."""
    if not row["n_tested"]:
        return _UNTESTED
    counts = [f"{kind} on {row[f'n_{kind}']}" for kind in (BETTER, WORSE) if row[f"n_{kind}"]]
    if not counts:
        return UNDECIDED
    return f"{' and '.join(counts)} of {row['n_tested']}"


def _power_across(across: Across) -> Iterator[str]:
    """States the smallest true gain that the tests of an experiment would find."""
    gains = pd.DataFrame(across.gains).dropna(subset="detectable")
    known = gains.groupby("experiment")["detectable"].median()
    if known.empty:
        return
    low = f"{known.min():.1f}"
    high = f"{known.max():.1f}"
    size = low if low == high else f"{low} to {high}"
    yield f"The tests have 80 % power for a true gain in one of them of {size} points."


def _by_rank(across: Across) -> Iterator[str]:
    """Names the best mean rank over the datasets, and the methods that differ significantly from the best."""
    if not across.concludes or not across.mean_ranks:
        return
    best = across.methods[0]
    datasets = counted(across.n_ranked, "dataset")
    rank = f"{across.mean_ranks[best]:.2f} of {len(across.methods)}"
    text = f"{name_of(best)} has the best mean rank over {datasets}, {rank}"
    if not across.separates:
        yield f"{text}. {_upper(too_few_datasets(across))}."
        return
    others = relative_to(best, comparisons_frame(across.rows))
    worse = first_of(map(name_of, others.loc[others["outcome"] == WORSE, "method"]))
    yield f"{text}; shown to be worse: {worse or 'no other'}."


def too_few_datasets(across: Across) -> str:
    """Explains why no test over the datasets can separate the methods, and how many datasets would be enough."""
    tests = min(row.n_family for row in across.rows)
    return (
        f"over {counted(len(across.datasets), 'dataset')} no difference can be significant after Holm's correction for "
        f"{counted(tests, 'comparison')} of methods; that takes {_needed(tests, across.alpha)}"
    )


def _upper(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
