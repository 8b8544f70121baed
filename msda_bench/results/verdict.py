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


class _Unit(NamedTuple):
    form: str
    label: str

    @classmethod
    def of(cls, experiment: Experiment) -> _Unit:
        measure = experiment.measure
        form, label = ("{:+.2f}", "points") if measure.percent else ("{:+.3g}", f"in {measure.label}")
        return cls(form, label)

    def size(self, size: float) -> str:
        if self.label == "points":
            return f"{size:.1f} points"
        return f"{size:.2g} {self.label}"

    def gains(self, rows: pd.DataFrame) -> str:
        """Names methods with their mean differences and intervals."""
        return first_of([self.gain(row) for row in rows.to_dict("records")])

    def gain(self, row: Mapping[Any, Any]) -> str:
        ends = "" if pd.isna(row["low"]) else f" [{self.form.format(row['low'])}, {self.form.format(row['high'])}]"
        return f"{name_of(row['method'])} {self.form.format(row['difference'])}{ends}{row.get('of', '')}"

    def lead(self, kind: str, base: str) -> str:
        """What methods of a kind are against the baseline."""
        leads = {
            BETTER: f"Better than {base}",
            SAME: f"Equal to {base} in every pair",
            WORSE: f"Worse than {base}",
            UNDECIDED: f"Not shown to differ from {base}",
            TOO_FEW: f"Not tested against {base}, too few seeds",
        }
        return leads.get(kind, _upper(kind))


def verdict(
    experiment: Experiment, runs: pd.DataFrame, board: pd.DataFrame, pairs: pd.DataFrame, chance: BesideChance
) -> tuple[str, ...]:
    """The sentences on an experiment, from its selected runs and its rows of the leaderboard and the comparisons."""
    rows, pairs = main_rows(board), main_pairs(pairs)
    ranked = rows[rows["rank"].notna()].sort_values("rank", kind="stable")
    if ranked.empty:
        return (_unranked(experiment, runs),)
    unit, base = _Unit.of(experiment), experiment.baseline
    if groups := groups_of(pairs, base):
        few = _too_few(experiment, pairs, str(base)) if {*groups} == {TOO_FEW} else ""
        said = [_answer(unit, name_of(base), groups, few)]
        if few == _SMALL:
            return (*said, *_missing(runs))
        said += _headroom(experiment, unit, rows, runs)
        said += _sentences(unit, name_of(base), {kind: groups[kind] for kind in groups if kind != BETTER})
    else:
        said = [_best(experiment, unit, ranked, pairs)]
    to = str(base if groups else ranked["method"].iloc[0])
    return (*said, *chance_sentences(experiment, board, chance), *_power(unit, relative_to(to, pairs)), *_missing(runs))


def how_to_read(alpha: float) -> str:
    """What the intervals of a verdict are, and why they may differ from the tests."""
    return (
        "Exact signed-rank tests over the seeds, corrected for multiple comparisons, decide what is shown of these "
        f"examples. Differences are means over the seeds; their {100 * (1 - alpha):g} % intervals allow for the "
        "examples that seeds share, so they speak of other examples of these domains and are wider."
    )


def conclusion(experiment: Experiment, pairs: pd.DataFrame) -> str:
    """A line on an experiment: `fonts, against SRC: DARN better (+3.5); MDAN worse (-2.0); 3 not shown to differ`."""
    groups = groups_of(main_pairs(pairs), experiment.baseline)
    few = {UNDECIDED: "not shown to differ", SAME: "equal", TOO_FEW: "not tested"}
    form = "{} ({:+.1f})" if experiment.measure.percent else "{} ({:+.2g})"
    parts = [
        f"{first_of(form.format(name_of(row.method), row.difference) for row in found.itertuples())} {kind}"
        if kind in {BETTER, WORSE}
        else f"{len(found)} {few.get(kind, kind)}"
        for kind, found in groups.items()
    ]
    where = name_of(experiment.name)
    if not parts:
        return f"{where}: no method is compared with a baseline"
    return f"{where}, against {name_of(experiment.baseline)}: {'; '.join(parts)}"


def groups_of(pairs: pd.DataFrame, to: str | None) -> Groups:
    """The methods by what each is against one method."""
    others = relative_to(to or "", pairs).dropna(subset="difference").sort_values("difference", ascending=False)
    few = others["reason"].isin(UNTESTED)
    kinds = others["outcome"].where(others["outcome"].isin([BETTER, WORSE, SAME]), UNDECIDED).mask(few, TOO_FEW)
    return {kind: others[kinds == kind] for kind in _KINDS if (kinds == kind).any()}


def _unranked(experiment: Experiment, runs: pd.DataFrame) -> str:
    tests = runs.loc[(runs["status"] == "ok").to_numpy(), "n_test"]
    if len(tests) and (tests == 0).all():
        where = ", ".join(map(name_of, experiment.targets))
        return f"How good a method is at {where}, and which is best, cannot be known: there are no labels."
    own = runs[~runs["reference"].to_numpy(dtype=bool)]
    if own.empty:
        return "No method is ranked here: all are references."
    if (own["status"] == "diverged").all():
        return "Every run of a ranked method diverged, so no method has a score."
    return f"No method has a result{' at every target' if (own['status'] == 'ok').any() else ''} yet."


def _best(experiment: Experiment, unit: _Unit, ranked: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Names the best mean, where nothing can be compared with a baseline, and the methods that are worse."""
    n, row = len(experiment.targets), ranked.iloc[0].to_dict()
    where = f"on average over {n} targets" if n > 1 else f"at {name_of(experiment.targets[0])}"
    best = [name_of(name) for name in ranked.loc[(ranked["rank"] == 1).to_numpy(), "method"]]
    mean = f"{mean_text(row)} {'% ' if experiment.measure.percent else ''}{experiment.measure.label}"
    text = f"{first_of(best)} {'has' if len(best) == 1 else 'share'} the best mean {where}: {mean}"
    if len(ranked) == 1:
        return f"{text}; no other method is ranked."
    groups = groups_of(pairs, str(row["method"]))
    if {*groups} == {TOO_FEW}:
        return f"{text}. That is not certain: {_too_few(experiment, pairs, str(row['method']))}."
    return f"{text}. Shown to be worse: {unit.gains(groups[WORSE]) if WORSE in groups else 'no other'}."


def _answer(unit: _Unit, base: str, groups: Groups, few: str = "", where: str = "") -> str:
    """Whether methods gain over the baseline, which, and how much; `few` tells why nothing can be shown."""
    gaining, n = [kind for kind in groups if kind.startswith(BETTER)], sum(map(len, groups.values()))
    if gaining:
        count = sum(len(groups[kind]) for kind in gaining)
        who = f"{count} of {counted(n, 'method')} {'gains' if count == 1 else 'gain'} over {base}{where.format('some')}"
        said = "; ".join(f"{_how(kind)}{unit.gains(groups[kind])}" for kind in gaining)
        return f"{who}{': ' if gaining[0] == BETTER else ', '}{said} {unit.label}."
    largest = max((rows.iloc[0].to_dict() for rows in groups.values()), key=lambda row: row["difference"])
    text = f"the largest difference is {unit.gain(largest)} {unit.label}"
    if few:
        return f"Whether a method gains over {base} is open: {few}; {text}."
    who = f"None of {n} methods" if n > 1 else "No method"
    return f"{who} was shown to gain over {base}{where.format('any')}; {text}."


def _how(kind: str) -> str:
    """On how many experiments methods of a kind gain; empty within one."""
    return "" if kind == BETTER else f"{kind}: "


def _sentences(unit: _Unit, base: str, groups: Groups) -> list[str]:
    return [f"{unit.lead(kind, base)}: {unit.gains(rows)}." for kind, rows in groups.items()]


def _headroom(experiment: Experiment, unit: _Unit, rows: pd.DataFrame, runs: pd.DataFrame) -> Iterator[str]:
    """What labels of the target gain, by the reference that tells most: one that learns from the sources, too."""
    known = rows[rows["reference"].astype(bool) & rows["method"].isin(labelled_methods(runs))].dropna(subset="gain")
    recipes = {name: str(recipe) for name, recipe in zip(known["method"], known["recipe"], strict=True)}
    gains = dict(zip(known["method"].astype(object), known["gain"], strict=True))
    method = tells_headroom(experiment.headroom, recipes, gains)
    if method is None:
        return
    row = known[(known["method"] == method).to_numpy()].iloc[0].to_dict()
    row |= {"difference": row["gain"], "low": row["gain_low"], "high": row["gain_high"]}
    yield _with_labels(unit, row, _learned_from(runs, method) if learns_alone(recipes[method]) else "")


def _learned_from(runs: pd.DataFrame, method: str) -> str:
    """How many rows a reference learns from that sees the target alone."""
    sizes = runs.loc[((runs["method"] == method) & (runs["status"] == "ok")).to_numpy(dtype=bool), "n_train"].dropna()
    if sizes.empty:
        return "learns from the target alone"
    low, high = int(sizes.min()), int(sizes.max())
    return f"learns from {f'{low:,}' if low == high else f'{low:,} to {high:,}'} rows of the target alone"


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
    mine = pairs[((pairs["first"] == method) | (pairs["second"] == method)).to_numpy()]
    if (mine["reason"] == TOO_SMALL).all():
        return _SMALL
    seeds, n = counted(int(mine["n_paired"].max()), "seed"), int(mine["n_family"].min())
    among = f" among {n} comparisons" if n > 1 else ""
    return f"with {seeds} no difference{among} can be significant, which takes {_needed(n, experiment.alpha)}"


def _needed(tests: int, alpha: float) -> int:
    """The fewest pairs with which one of this many two-sided tests can be significant after Holm's correction."""
    return math.ceil(math.log2(2 * tests / alpha))


def _power(unit: _Unit, others: pd.DataFrame) -> Iterator[str]:
    """States the smallest true difference that the tests would find; the median over the comparisons with a method."""
    if len(known := others["detectable"].dropna()):
        n, median = counted(int(others["pairs"].max()), "seed"), " (median)" if len(known) > 1 else ""
        yield f"With {n} the tests have 80 % power for a true difference of {unit.size(known.median())}{median}."


def _missing(runs: pd.DataFrame) -> Iterator[str]:
    if len(lost := at_chance(runs)):
        yield f"{counted(len(lost), 'run')} diverged and {'counts' if len(lost) == 1 else 'count'} as chance does."
    counts = runs["status"].drop(lost.index).astype(object).value_counts().drop("ok", errors="ignore")
    if len(counts):
        kinds = listed(f"{count:,} {status}" for status, count in counts.items())
        few = f"{counts.sum():,} of {counted(len(runs), 'run')} have no score ({kinds})"
        yield f"{few}; tests take the seeds that both methods have."


def verdict_across(across: Across) -> tuple[str, ...]:
    """The sentences on several experiments: what methods are against the baseline, headroom, power, mean ranks."""
    return (*_over_baseline(across), *_by_rank(across))


def _over_baseline(across: Across) -> Iterator[str]:
    n, unit = len(across.experiments), _Unit("{:+.2f}", "points in the mean")
    base = name_of(across.baseline)
    where = counted(n, "dataset" if n == len(across.datasets) else "experiment")
    table = standings(across).dropna(subset="mean_gain").sort_values("mean_gain", ascending=False, kind="stable")
    names = {"mean_gain": "difference", "mean_gain_low": "low", "mean_gain_high": "high"}
    fewer = [f" ({count} of {n})" if count < n else "" for count in table["n_experiments"]]
    table = table.rename(columns=names).assign(of=fewer)
    is_own = ~table["reference"].astype(bool)
    own = table[is_own]
    if own.empty:
        return
    kinds = own.apply(_counts, axis="columns")
    gaining_first = sorted(dict.fromkeys(kinds), key=lambda kind: not kind.startswith(BETTER))
    groups = {kind: own[kinds == kind] for kind in gaining_first}
    few = "too few seeds for a test" if not own["n_tested"].any() else ""
    yield _answer(unit, base, groups, few, f" on {{}} of {where}")
    for row in table[(table["method"] == across.headroom).to_numpy()].to_dict("records"):
        yield _with_labels(unit, row)
    if not few:
        yield from _sentences(unit, base, {kind: groups[kind] for kind in groups if not kind.startswith(BETTER)})
        yield from _power_across(across)


def _counts(row: Mapping[Any, Any]) -> str:
    """In how many experiments a method is better and worse than the baseline."""
    counts = [f"{kind} on {row[f'n_{kind}']}" for kind in (BETTER, WORSE) if row[f"n_{kind}"]]
    if not row["n_tested"]:
        return "too few seeds for a test"
    return f"{' and '.join(counts)} of {row['n_tested']}" if counts else UNDECIDED


def _power_across(across: Across) -> Iterator[str]:
    """States the smallest true gain that the tests of an experiment would find."""
    gains = pd.DataFrame(across.gains).dropna(subset="detectable")
    known = gains.groupby("experiment")["detectable"].median()
    if len(known):
        low, high = f"{known.min():.1f}", f"{known.max():.1f}"
        size = low if low == high else f"{low} to {high}"
        yield f"The tests have 80 % power for a true gain in one of them of {size} points."


def _by_rank(across: Across) -> Iterator[str]:
    """Names the best mean rank over the datasets, and the methods that differ significantly from the best."""
    if not across.concludes or not across.mean_ranks:
        return
    best, over = across.methods[0], counted(across.n_ranked, "dataset")
    rank = f"{across.mean_ranks[best]:.2f} of {len(across.methods)}"
    if not across.separates:
        yield f"{name_of(best)} has the best mean rank over {over}, {rank}. {_upper(too_few_datasets(across))}."
        return
    others = relative_to(best, comparisons_frame(across.rows))
    worse = first_of(map(name_of, others.loc[others["outcome"] == WORSE, "method"])) or "no other"
    yield f"{name_of(best)} has the best mean rank over {over}, {rank}; shown to be worse: {worse}."


def too_few_datasets(across: Across) -> str:
    """Explains why no test over the datasets can separate the methods, and how many datasets would be enough."""
    tests = min(row.n_family for row in across.rows)
    return (
        f"over {counted(len(across.datasets), 'dataset')} no difference can be significant after Holm's correction for "
        f"{counted(tests, 'comparison')} of methods; that takes {_needed(tests, across.alpha)}"
    )


def _upper(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
