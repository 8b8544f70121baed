"""Compares our runs with numbers from many publications, which may disagree or not be comparable."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, TypeAlias

import pandas as pd

from msda_bench.results.frame import AVERAGE
from msda_bench.results.leaderboard import leaderboard
from msda_bench.results.standardised import standardised
from msda_bench.suite.plan import Experiment
from msda_bench.suite.published.numbers import PublishedNumber, PublishedNumbers
from msda_bench.suite.published.table import PublishedTable

ORIGIN = ("source", "source_table", "backbone", "protocol", "certainty")
"""The columns that distinguish one list of published numbers from another."""
CITED_COLUMNS = (
    *("suite", "experiment", "dataset", "table", "target", "method", "metric", "published_method", "published_mean"),
    *("published_spread", "published_spread_is", "published_runs", *ORIGIN, "comparable"),
    *("mean", "standard_error", "n_ok", "n_planned"),
    *("difference", "standardised_difference", "degrees_of_freedom", "within_2_se"),
)
"""The columns of verify.csv if a suite names a collection of numbers, explained in docs/results.md."""
_NAMES = {"table": "source_table", "method": "published_method", "mean": "published_mean"} | {
    name: f"published_{name}" for name in ("spread", "spread_is", "runs")
}

CitedStatus: TypeAlias = Literal["agrees", "differs", "incomplete", "not comparable"]


@dataclass(frozen=True)
class Cited:
    """An experiment compared with published numbers.

    Attributes:
        experiment: the plan's.
        table: the published numbers.
        runs: those of the methods and targets that have a published number.
        cells: a row for each published number, in `CITED_COLUMNS`: target by target, the mean over targets last.
        absent: `methods` and `targets` of the suite without any published number.
    """

    experiment: Experiment
    table: PublishedNumbers
    runs: pd.DataFrame
    cells: pd.DataFrame
    absent: dict[str, list[str]]

    @property
    def sources(self) -> pd.DataFrame:
        """Each list of numbers once, in the order of the table: `ORIGIN` and `comparable`."""
        return self.cells[[*ORIGIN, "comparable"]].drop_duplicates(ignore_index=True)

    @property
    def ranges(self) -> pd.DataFrame:
        """A row for each method and target with comparable numbers.

        `low`, `high` and `numbers` describe the published numbers; `mean` is ours. `within` reports whether ours is
        between them or at most two standard errors from one of them; NA if there are too few runs.
        """
        groups = self.cells[self.cells["comparable"]].groupby(["target", "method"], sort=False)
        found = groups.agg(
            low=("published_mean", "min"), high=("published_mean", "max"), numbers=("published_mean", "size"),
            mean=("mean", "first"), near=("within_2_se", "max"),
        ).reset_index()  # fmt: skip
        between = found["mean"].between(found["low"], found["high"]).astype("boolean")
        return found.assign(within=between | found.pop("near").astype("boolean"))

    @property
    def disagreements(self) -> pd.DataFrame:
        """The ranges in which comparable sources differ."""
        found = self.ranges
        return found[found["low"] < found["high"]]

    @property
    def judged(self) -> pd.DataFrame:
        """The ranges that decide the status: those of the means over targets, or all ranges if no mean is published."""
        found = self.ranges
        averages = found[found["target"] == AVERAGE]
        return averages if len(averages) else found

    @property
    def n_not_ok(self) -> int:
        """Runs that are not ok."""
        return int((self.runs["status"] != "ok").sum())

    @property
    def status(self) -> CitedStatus:
        """The conclusion.

        incomplete: a run is not ok, or there are too few runs. not comparable: no number has the suite's network and
        protocol. differs: one of the `judged` ranges is not `within`. agrees: otherwise.
        """
        within = self.judged["within"]
        if self.n_not_ok:
            return "incomplete"
        if within.empty:
            return "not comparable"
        if not within.all():  # skips NA
            return "differs"
        return "incomplete" if within.isna().any() else "agrees"


def as_chosen(table: PublishedTable | PublishedNumbers, experiment: Experiment) -> PublishedTable | PublishedNumbers:
    """A table that the user names, with the networks, protocols and method names of the suite's own table."""
    own = experiment.published
    if isinstance(table, PublishedTable) or not isinstance(own, PublishedNumbers):
        return table
    return replace(table, backbones=own.backbones, protocols=own.protocols, methods=own.methods)


def cited(experiment: Experiment, table: PublishedNumbers, rows: pd.DataFrame) -> Cited:
    """Compares an experiment's runs with the published numbers of its methods and targets."""
    have = {"method": [*dict.fromkeys(rows["method"])], "target": [*dict.fromkeys(rows["target"])]}
    numbers = _numbers(table, have["method"], have["target"])
    common = rows[rows["method"].isin(numbers["method"]) & rows["target"].isin(numbers["target"])]
    absent = {f"{what}s": [name for name in have[what] if name not in set(numbers[what])] for what in have}
    return Cited(experiment, table, common, _cells(experiment, table, numbers, common), absent)


def _numbers(table: PublishedNumbers, methods: list[str], targets: list[str]) -> pd.DataFrame:
    """The published numbers of these methods and targets, in this order, without means over other targets."""
    columns = [one.name for one in fields(PublishedNumber)]
    found = pd.DataFrame([asdict(one) for one in table.numbers], columns=columns).rename(columns=_NAMES)
    of = found[found["target"] != AVERAGE].groupby([*ORIGIN])["target"].agg(frozenset)
    same = found[[*ORIGIN]].merge(of.rename("of"), "left", [*ORIGIN])["of"].map(lambda own: own == frozenset(targets))
    found = found[found["target"].isin(targets) | ((found["target"] == AVERAGE) & same.astype(bool))]
    pairs = [(method, name) for method in methods for name in table.names(method)]
    found = pd.DataFrame(pairs, columns=["method", "published_method"]).merge(found, "inner", "published_method")
    place = found["target"].map({name: index for index, name in enumerate([*targets, AVERAGE])})
    return found.iloc[place.argsort(kind="stable")]


def _cells(
    experiment: Experiment, table: PublishedNumbers, numbers: pd.DataFrame, common: pd.DataFrame
) -> pd.DataFrame:
    """Joins the published numbers with ours; differences only where network and protocol are the suite's."""
    ours = ["target", "method", "mean", "standard_error", "n_ok", "n_planned"]
    board = leaderboard(common)[ours] if len(common) else pd.DataFrame(columns=ours)
    found = numbers.merge(board, "left", ["target", "method"])
    comparable = found["backbone"].isin(table.backbones) & found["protocol"].isin(table.protocols)
    found = found.assign(
        suite=common.attrs["plan"].suite, experiment=experiment.name, dataset=experiment.dataset, table=table.name,
        metric=table.metric, comparable=comparable,
    ).astype({"mean": float, "standard_error": float})  # fmt: skip
    found[["n_ok", "n_planned"]] = found[["n_ok", "n_planned"]].astype("Int64").fillna(0)
    found["published_runs"] = found["published_runs"].astype("Int64")
    found["difference"] = (found["mean"] - found["published_mean"]).where(comparable)
    error, runs = _errors(found)
    return found.assign(
        **standardised(found["difference"], found["n_ok"], found["standard_error"], error, runs)
    )[[*CITED_COLUMNS]]  # fmt: skip


def _errors(found: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    """Published standard errors and numbers of runs; 0 and infinity if the kind of spread or the runs are missing."""
    spread, runs = found["published_spread"].astype(float), found["published_runs"].astype(float)
    kind = found["published_spread_is"]
    error = spread.where(kind == "standard error", (spread / runs**0.5).where(kind == "standard deviation"))
    known = error.notna() & runs.notna()
    return error.where(known, 0.0), runs.where(known, float("inf"))
