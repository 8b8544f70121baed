"""Which candidate is a method's result: the one that its criterion scores best, for each target and seed.

It takes recorded runs alone, so that another criterion costs no training.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pandas as pd

from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Experiment, Method

RUN = ["experiment", "method", "target", "seed"]
"""The columns that name a run."""
SELECTED = "selected"
"""In `attrs` of a frame that `select` made."""
_OF_PLAN = ["suite", "experiment", "dataset", "task", "target", "method", "reference", "seed"]
_ENDED = ("ok", "diverged")
_NOTES = {
    "unfinished": "candidates without a result; their runs have none either, since nothing is selected among fewer",
    "diverged": "candidates that diverged, which cannot be selected",
    "unscored": "candidates without the score that selects, which cannot be selected",
}


def select(runs: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """The runs with one row for each: that of its selected candidate; of equally good ones the first.

    Nothing is selected among fewer candidates than were planned, except those that diverged, which is their result: a
    run with an unfinished candidate has the status and message of that. A run whose candidates all diverged has
    diverged; one whose candidates have no score to select by is missing.

    Args:
        runs: of `load_results`; runs without candidates stay as they are, and so does what `select` returned.
        by: a criterion in place of the plan's own: a validator, `leave_one_source_out` or `oracle`.
    """
    if SELECTED in runs.attrs or runs["candidate"].isna().all():
        return runs
    parts = [runs[runs["candidate"].isna()]]
    parts += [_selected(rows, by or criterion) for _, _, criterion, rows in searched(runs)]
    found = pd.concat(parts).sort_index(kind="stable")
    found.attrs = {**runs.attrs, SELECTED: True}
    return found


def selection_notes(runs: pd.DataFrame, by: str | None = None) -> list[tuple[str, str]]:
    """What could not be selected, as names of experiments with a sentence each.

    Args:
        runs: with all candidates; of runs that `select` has been through there is nothing to say.
        by: as for `select`.
    """
    counts: dict[tuple[str, str], list[str]] = {}
    for experiment, method, criterion, rows in searched(runs):
        tried = trials(rows, by or criterion)
        planned = len(method.search.candidates if method.search else ()) * len(experiment.targets)
        for what in _NOTES:
            if count := int(tried[what].sum()):
                told = f"{method.name} {count} of {planned * len(experiment.seeds)}"
                counts.setdefault((experiment.name, what), []).append(told)
    names = [table.name for table in runs.attrs["plan"].experiments]
    return [
        (name, f"{sentence}: {', '.join(counts[name, what])}")
        for name in names
        for what, sentence in _NOTES.items()
        if (name, what) in counts
    ]


def searched(runs: pd.DataFrame) -> Iterator[tuple[Experiment, Method, str, pd.DataFrame]]:
    """Each method whose settings are selected, with its experiment, criterion and rows: all candidates."""
    if SELECTED in runs.attrs:
        return
    tried = runs[runs["candidate"].notna()]
    places = tried.groupby(["experiment", "method"], observed=True).groups
    for experiment in runs.attrs["plan"].experiments:
        for method in experiment.methods:
            if method.search is not None and (experiment.name, method.name) in places:
                yield experiment, method, method.search.by, tried.loc[places[experiment.name, method.name]]


def trials(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """What a criterion says of each candidate of each run of one method.

    Args:
        rows: the method's, of one experiment.
        by: the criterion.

    Returns:
        By target, seed and candidate: `unfinished`, `diverged` and `unscored` (of a run all of whose candidates have
        ended), and `worth`, higher being better: a float, or an exact fraction where it is a test score; None where a
        run that it needs is not ok, or where there is no score.
    """
    rows = rows.astype({"status": object, "target": object})
    places = ["target", "seed", "candidate"]
    needed = rows if by == LEAVE_ONE_OUT else rows[rows["left_out"].isna()]
    unfinished, diverged = ~needed["status"].isin(_ENDED), needed["status"] == "diverged"
    found = needed[places].assign(unfinished=unfinished, diverged=diverged).groupby(places).any()
    worth = _worth(rows, by).dropna().to_dict()
    able = ~(found["unfinished"] | found["diverged"])
    found["worth"] = pd.Series(
        [worth.get(place) if ok else None for place, ok in able.items()], index=found.index, dtype=object
    )
    complete = ~found["unfinished"].groupby(["target", "seed"]).transform("any")
    return found.assign(unscored=complete & able & found["worth"].isna())


def merits(rows: pd.DataFrame) -> pd.Series:
    """Test scores of runs of one task as exact fractions of which more is better; None for runs that are not ok."""
    found = []
    for status, n, correct, error in zip(
        *(rows[name] for name in ("status", "n_test", "n_correct", "sum_squared_error")), strict=True
    ):
        merit = None
        if status == "ok":
            merit = -Fraction(error) / int(n) if pd.isna(correct) else Fraction(100 * int(correct), int(n))
        found.append(merit)
    return pd.Series(found, index=rows.index, dtype=object)


def _worth(rows: pd.DataFrame, by: str) -> pd.Series:
    """By target, seed and candidate; whether all the runs that it needs are ok is not asked here."""
    places = ["target", "seed", "candidate"]
    if by == LEAVE_ONE_OUT:
        left = rows[rows["left_out"].notna()]
        found = left[places].assign(merit=merits(left)).dropna().groupby(places)["merit"]
        return found.agg(lambda of_sources: sum(of_sources, Fraction(0)) / len(of_sources))
    own = rows[rows["left_out"].isna()].set_index(places)
    return merits(own) if by == ORACLE else own.get(f"validator:{by}", pd.Series(dtype=float))


def _selected(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """One row for each run of a method: sorted by how well it stands for its run, the first of each."""
    tried = trials(rows, by)
    order = {worth: rank for rank, worth in enumerate(sorted(set(tried["worth"].dropna())))}
    tried["rank"] = tried["worth"].map(order).astype(float)
    tried["waits"] = tried["unfinished"].groupby(["target", "seed"]).transform("any")
    needed = rows if by == LEAVE_ONE_OUT else rows[rows["left_out"].isna()]
    at = pd.MultiIndex.from_frame(needed[["target", "seed", "candidate"]].astype({"target": object}))
    of = tried.loc[at].set_axis(needed.index)
    status, left_out = needed["status"].astype(object), needed["left_out"].notna()
    stands = pd.Series(2, index=needed.index)
    stands[of["waits"] & ~status.isin([*_ENDED])] = 1
    stands[of["waits"] & ~status.isin([*_ENDED, "missing"])] = 0
    stands[~of["waits"] & (status == "diverged")] = 1
    stands[~of["waits"] & of["rank"].notna() & ~left_out] = 0
    keys = pd.DataFrame({"stands": stands, "rank": -of["rank"], "candidate": needed["candidate"], "left_out": left_out})
    best = keys.sort_values([*keys.columns], kind="stable").index
    found = needed.loc[best].drop_duplicates(RUN)
    return _plain(found, nothing=stands[found.index] > 1)


def _plain(found: pd.DataFrame, nothing: pd.Series) -> pd.DataFrame:
    """Rows that stand for runs; those with nothing to stand for them are missing."""
    rest = found.columns.difference(_OF_PLAN)
    found[rest] = found[rest].mask(nothing)
    found["left_out"] = found["left_out"].mask(found["left_out"].notna())
    return found.assign(status=found["status"].astype(object).mask(nothing, "missing").astype("category"))
