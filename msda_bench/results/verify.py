"""Compares our runs with published numbers, which may come from several sources, disagree, or not be comparable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results import formats
from msda_bench.results.argument_checks import argument
from msda_bench.results.formats import Unit
from msda_bench.results.frame import AVERAGE, experiments, runs_of
from msda_bench.results.leaderboard import leaderboard
from msda_bench.results.model_selection import select
from msda_bench.results.notes import folder_lines
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.results.runs import results_of
from msda_bench.suite.files import UnreadableError
from msda_bench.suite.plan import Experiment
from msda_bench.suite.published import ENDING, PublishedNumber, PublishedNumbers, find_table, known_tables

ORIGIN = ("source", "source_table", "backbone", "protocol", "certainty")
"""The columns that distinguish one list of published numbers from another."""
_OURS = ("target", "method", "reference", "mean", "standard_error", "n_ok", "n_planned")
COLUMNS = (
    *("suite", "experiment", "dataset", "table", "target", "method", "reference", "metric", "published_method"),
    *("published_mean", "published_spread", "published_spread_is", "published_runs"),
    *(*ORIGIN, "comparable", "mean", "standard_error", "n_ok", "n_planned", "difference", "z", "within_2_se"),
)
"""The columns of verify.csv, explained in docs/verify.md."""
VERIFIED = "verify.csv"
FAR = 2.0
"""A rule of thumb: a difference of more standard errors is more than noise."""
_NAMES = {"table": "source_table"} | {
    name: f"published_{name}" for name in ("method", "mean", "spread", "spread_is", "runs")
}
_SPREADS = {"standard error": "", "standard deviation": " sd", "not said": " ?"}
_ABOUT = {"backbone": "Network", "protocol": "Protocol", "certainty": "Certainty"}
LEGEND = (
    "difference: ours - published; z: the same divided by its standard error, which uses the published runs' standard "
    "deviation where n is 1, and ours alone if a source gives no spread or does not state its kind (?). Both are shown "
    "only where network and protocol are comparable."
)


def verify(runs: str | Path | pd.DataFrame, table: str | None = None) -> pd.DataFrame:
    """Compares runs with the published numbers that their suite names.

    Args:
        runs: a result folder, or a frame from `load_results`.
        table: a table of published numbers of the package, or a .csv file with one, instead of the suite's own.

    Returns:
        One row for each published number of a method and target of the runs, target by target, the mean over targets
        last, in the columns of verify.csv (docs/verify.md). `difference` is ours - published in percentage points, and
        `z` is this difference divided by its standard error, both only where network and protocol are comparable.

    Raises:
        BenchError: there is no such table, the suite names none, or the table is of other targets or another metric.
    """
    runs, table = runs_of(runs), argument("table", table, str | None)
    if runs.empty:
        raise ValueError("runs: there are no rows to compare")
    return verified_frame(verifications(runs, table))


def verified_frame(verified: Sequence[Verification]) -> pd.DataFrame:
    """The rows of `verify` of several experiments."""
    return pd.concat([verification.numbers for verification in verified], ignore_index=True)


@dataclass(frozen=True)
class Verification:
    """An experiment compared with published numbers.

    Attributes:
        experiment: its plan.
        table: the published numbers.
        runs: those of the methods and targets that have a published number.
        numbers: the rows of `verify`.
        absent: the `methods` and `targets` without a published number.
    """

    experiment: Experiment
    table: PublishedNumbers
    runs: pd.DataFrame
    numbers: pd.DataFrame
    absent: Mapping[str, list[str]]

    @property
    def sentence(self) -> str:
        """How many of the comparable numbers are within two standard errors of ours."""
        if self.numbers.empty:
            return "no published number is of its methods and targets"
        comparable = self.numbers[self.numbers["comparable"]]
        rest = len(self.numbers) - len(comparable)
        if comparable.empty:
            return f"none of {rest} published numbers is of the suite's network and protocol"
        within = comparable["within_2_se"]
        text = f"{within.sum()} of {len(within)} published numbers within {FAR:g} standard errors"
        if within.isna().any():
            text += f", {within.isna().sum()} with too few runs"
        return text + (f"; {rest} are not comparable" if rest else "")


def verifications(runs: pd.DataFrame, table: str | None = None) -> tuple[Verification, ...]:
    """Compares each experiment with its published numbers, if it has any; see `verify`."""
    chosen, published = select(runs), _tables(runs, table)
    return tuple(
        _verified(experiment, published[experiment.name], rows)
        for experiment, rows in experiments(chosen)
        if experiment.name in published
    )


def _tables(runs: pd.DataFrame, name: str | None) -> dict[str, PublishedNumbers]:
    plan, folder = results_of(runs).plan, results_of(runs).folder or "these runs"
    if name is None:
        tables = {table.name: table.published for table in plan.experiments if table.published is not None}
        if not tables:
            raise BenchError(
                f"{folder}: its suite names no published table; give one with --table (known: "
                f"{', '.join(known_tables())}, or a {ENDING} file), or add `published:` to the suite and run it again"
            )
        return tables
    try:
        numbers = find_table(name)
    except UnreadableError as error:
        raise BenchError(f"{name}: {error}") from None
    alike = [table for table in plan.experiments if not numbers.targets.isdisjoint(table.targets)]
    if not alike:
        raise BenchError(f"{folder}: has no results on any of the targets, the subject of table {numbers.name}")
    # A table that the user names has the networks, protocols and method names of the suite's own.
    return {
        table.name: replace(numbers, backbones=own.backbones, protocols=own.protocols, methods=own.methods)
        for table in alike
        for own in [table.published or numbers]
    }


def _verified(experiment: Experiment, table: PublishedNumbers, rows: pd.DataFrame) -> Verification:
    if (metric := experiment.measure.column) != table.metric:
        raise BenchError(f"{experiment.name}: table {table.name} is of {table.metric}, the runs are of {metric}")
    rows = rows.astype({"method": object, "target": object})
    methods, targets = list(rows["method"].unique()), list(rows["target"].unique())
    published = _published(table, methods, targets)
    common = rows[rows["method"].isin(published["method"]) & rows["target"].isin(published["target"])]
    absent = {
        "methods": [name for name in methods if name not in set(published["method"])],
        "targets": [name for name in targets if name not in set(published["target"])],
    }
    return Verification(experiment, table, common, _compared(experiment, table, published, common), absent)


def _published(table: PublishedNumbers, methods: list[str], targets: list[str]) -> pd.DataFrame:
    """The published numbers of these methods and targets, in this order, without means over other targets."""
    columns = [column.name for column in fields(PublishedNumber)]
    numbers = pd.DataFrame([asdict(number) for number in table.numbers], columns=columns, dtype=object)
    numbers = numbers.rename(columns=_NAMES).fillna({"backbone": "", "protocol": ""})
    over = numbers["target"].where(numbers["target"] != AVERAGE)
    sources = over.groupby([numbers[column] for column in ORIGIN])
    over = sources.transform(lambda names: set(names.dropna()) == set(targets))
    numbers = numbers[numbers["target"].isin(targets) | ((numbers["target"] == AVERAGE) & over.astype(bool))]
    pairs = [(method, name) for method in methods for name in table.names(method)]
    numbers = pd.DataFrame(pairs, columns=["method", "published_method"]).merge(numbers, "inner", "published_method")
    place = numbers["target"].map({name: index for index, name in enumerate([*targets, AVERAGE])})
    return numbers.iloc[place.argsort(kind="stable")]


def _compared(
    experiment: Experiment, table: PublishedNumbers, published: pd.DataFrame, common: pd.DataFrame
) -> pd.DataFrame:
    """Joins the published numbers with ours; differences only where network and protocol are the suite's."""
    board = leaderboard(common)[[*_OURS]] if len(common) else pd.DataFrame(columns=[*_OURS])
    rows = published.merge(board, "left", ["target", "method"])
    by_network = rows["backbone"].isin(["", *table.backbones])
    by_protocol = rows["protocol"].isin(["", *table.protocols])
    rows = rows.assign(
        suite=results_of(common).plan.suite,
        experiment=experiment.name,
        dataset=experiment.dataset,
        table=table.name,
        metric=table.metric,
        comparable=by_network & by_protocol,
    )
    rows = rows.astype({"reference": bool, "mean": float, "standard_error": float, "published_mean": float})
    rows[["n_ok", "n_planned"]] = rows[["n_ok", "n_planned"]].astype("Int64").fillna(0)
    rows = rows.astype({"published_runs": "Int64"})
    rows["published_spread"] = rows["published_spread"].astype(float)
    rows["difference"] = (rows["mean"] - rows["published_mean"]).where(rows["comparable"])
    rows["z"] = rows["difference"] / _error_of_difference(rows)
    rows["within_2_se"] = (rows["z"].abs() <= FAR).astype("boolean").mask(rows["z"].isna())
    return rows[[*COLUMNS]]


def _error_of_difference(rows: pd.DataFrame) -> pd.Series[float]:
    """The standard errors of differences between the means of independent samples (Welch 1947).

    The variance of a difference is the sum of both squared standard errors. A single run of ours has no standard error,
    so the standard deviation of the published runs replaces it; z then shows how well the run fits among them. A
    published mean without a spread is taken as exact.
    """
    spread, runs = rows["published_spread"], rows["published_runs"].astype(float)
    kind = rows["published_spread_is"]
    published = spread.where(kind == "standard error")
    published = published.mask(kind == "standard deviation", spread / runs**0.5)
    is_known = published.notna() & runs.notna()
    of_two = rows["standard_error"] ** 2 + published.where(is_known, 0.0) ** 2
    of_one = (published**2 * (runs + 1)).where(is_known)
    return of_two.mask(rows["n_ok"] == 1, of_one) ** 0.5


def verify_report(runs: pd.DataFrame, verified: Sequence[Verification]) -> Report:
    """What `msda-bench verify` answers; it is complete if all runs are there."""
    names = {verification.experiment.name for verification in verified}
    without = [table.name for table in results_of(runs).plan.experiments if table.name not in names]
    sections = [Section(tuple(_table(verification)), tuple(_sentences(verification))) for verification in verified]
    last = [Line("line", "", wrapped=False)]
    last += [Line("note", f"{name} names no published table and is not verified", wrapped=False) for name in without]
    last += [Line("verdict", _verdict(verification), wrapped=False) for verification in verified]
    whole = all((verification.runs["status"] == "ok").all() for verification in verified)
    report = (*sections, Section(lines=tuple(last)))
    return Report(report, verified_frame(verified), whole and not results_of(runs).fault_lines)


def _sources(verification: Verification) -> pd.DataFrame:
    sources = verification.numbers[[*ORIGIN, "comparable"]].drop_duplicates(ignore_index=True)
    return sources.assign(number=[f"[{place}]" for place in range(1, len(sources) + 1)])


def _table(verification: Verification) -> Iterator[Table]:
    """A row for each published number, if there are any."""
    unit, experiment = Unit("accuracy in percent"), verification.experiment.name
    rows = verification.numbers.merge(_sources(verification), "left", [*ORIGIN, "comparable"])
    spread = rows["published_spread_is"].map(_SPREADS).where(rows["published_spread"].notna(), "").fillna("")
    columns = (
        Column("method", formats.text, ["method"]),
        Column("target", formats.text, ["target"]),
        Column("published", formats.number_with_error, ["published_mean", "published_spread", "spread"], unit),
        Column("source", formats.text, ["number"]),
        Column("ours", formats.number_with_error, ["mean", "standard_error"], unit),
        Column("n", formats.of_planned, ["n_ok", "n_planned"]),
        Column("difference", formats.difference_if, ["difference", "comparable"], unit),
        Column("z", formats.z_if, ["z", "comparable"]),
    )
    title = f"{experiment}: {unit.label} beside the numbers of {verification.table.name}"
    if len(rows):
        yield Table(f"{experiment}-verify", title, rows.assign(spread=spread), columns)


def _sentences(verification: Verification) -> Iterator[Line]:
    """Each source and its certainty, how to read the table, and what is wrong with our runs."""
    for row in _sources(verification).to_dict("records"):
        about = "".join(f" {word}: {row[name]}." for name, word in _ABOUT.items() if row[name])
        about += "" if row["comparable"] else " Not comparable: another network or protocol than the suite names."
        yield Line("caption", f"{row['number']} {row['source']}, {row['source_table']}.{about}")
    yield Line("caption", LEGEND)
    absent = {what: ", ".join(names) for what, names in verification.absent.items() if names}
    lines = [f"{what} without a published number, skipped: {names}" for what, names in absent.items()]
    yield from folder_lines(verification.runs, lines)


def _verdict(verification: Verification) -> str:
    missing = int((verification.runs["status"] != "ok").sum())
    why = f" ({missing} of {len(verification.runs)} runs are not ok)" if missing else ""
    return f"{verification.experiment.name}: {verification.sentence}{why}"
