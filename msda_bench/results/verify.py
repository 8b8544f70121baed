"""Compares our runs with published numbers, which may be from several sources, disagree, or not be comparable."""

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
from msda_bench.results.runs import are_ok, results_of
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
_NAMES = {
    "table": "source_table",
    "method": "published_method",
    "mean": "published_mean",
    "spread": "published_spread",
    "spread_is": "published_spread_is",
    "runs": "published_runs",
}
"""The columns of verify.csv that hold fields of a published number under another name."""
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
    runs = runs_of(runs)
    table = argument("table", table, str | None)
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
        unknown = within.isna().sum()
        if unknown:
            text += f", {unknown} with too few runs"
        if rest:
            text += f"; {rest} are not comparable"
        return text


def verifications(runs: pd.DataFrame, table: str | None = None) -> tuple[Verification, ...]:
    """Compares each experiment with its published numbers, if it has any; see `verify`."""
    published = _suites_tables(runs) if table is None else _named_table(runs, table)
    verified = []
    for experiment, rows in experiments(select(runs)):
        numbers = published.get(experiment.name)
        if numbers is not None:
            verified.append(_verified(experiment, numbers, rows))
    return tuple(verified)


def _folder(runs: pd.DataFrame) -> str:
    return results_of(runs).folder or "these runs"


def _suites_tables(runs: pd.DataFrame) -> dict[str, PublishedNumbers]:
    """The published numbers that the suite names, by experiment."""
    tables = {}
    for experiment in results_of(runs).plan.experiments:
        if experiment.published is not None:
            tables[experiment.name] = experiment.published
    if not tables:
        raise BenchError(
            f"{_folder(runs)}: its suite names no published table; give one with --table (known: "
            f"{', '.join(known_tables())}, or a {ENDING} file), or add `published:` to the suite and run it again"
        )
    return tables


def _named_table(runs: pd.DataFrame, name: str) -> dict[str, PublishedNumbers]:
    """The published numbers of a table that the user names, by experiment.

    Which networks, protocols and names of methods are comparable is taken from the suite's own table, if it names one.
    """
    try:
        numbers = find_table(name)
    except UnreadableError as error:
        raise BenchError(f"{name}: {error}") from None
    tables = {}
    for experiment in results_of(runs).plan.experiments:
        if not numbers.targets.isdisjoint(experiment.targets):
            own = experiment.published or numbers
            tables[experiment.name] = replace(
                numbers, backbones=own.backbones, protocols=own.protocols, methods=own.methods
            )
    if not tables:
        where = _folder(runs)
        raise BenchError(f"{where}: has no results on any of the targets, the subject of table {numbers.name}")
    return tables


def _verified(experiment: Experiment, table: PublishedNumbers, rows: pd.DataFrame) -> Verification:
    metric = experiment.measure.column
    if metric != table.metric:
        raise BenchError(f"{experiment.name}: table {table.name} is of {table.metric}, the runs are of {metric}")
    rows = rows.astype({"method": object, "target": object})
    methods = list(rows["method"].unique())
    targets = list(rows["target"].unique())
    published = _published(table, methods, targets)
    published_methods = set(published["method"])
    published_targets = set(published["target"])
    common = rows[rows["method"].isin(published_methods) & rows["target"].isin(published_targets)]
    absent = {
        "methods": [name for name in methods if name not in published_methods],
        "targets": [name for name in targets if name not in published_targets],
    }
    numbers = _compared(experiment, table, published, common)
    return Verification(experiment, table, common, numbers, absent)


def _published(table: PublishedNumbers, methods: list[str], targets: list[str]) -> pd.DataFrame:
    """The published numbers of these methods and targets, in this order, without means over other targets."""
    columns = [column.name for column in fields(PublishedNumber)]
    numbers = pd.DataFrame([asdict(number) for number in table.numbers], columns=columns, dtype=object)
    numbers = numbers.rename(columns=_NAMES).fillna({"backbone": "", "protocol": ""})
    is_mean = numbers["target"] == AVERAGE
    of_source = numbers["target"].mask(is_mean).groupby([numbers[column] for column in ORIGIN])
    has_our_targets = of_source.transform(lambda names: set(names.dropna()) == set(targets)).astype(bool)
    numbers = numbers[numbers["target"].isin(targets) | (is_mean & has_our_targets)]
    names = [(method, name) for method in methods for name in table.names(method)]
    our_names = pd.DataFrame(names, columns=["method", "published_method"])
    numbers = our_names.merge(numbers, "inner", "published_method")
    order = {target: place for place, target in enumerate([*targets, AVERAGE])}
    return numbers.iloc[numbers["target"].map(order).argsort(kind="stable")]


def _compared(
    experiment: Experiment, table: PublishedNumbers, published: pd.DataFrame, common: pd.DataFrame
) -> pd.DataFrame:
    """Joins the published numbers with ours; differences only where network and protocol are the suite's."""
    board = pd.DataFrame(columns=[*_OURS]) if common.empty else leaderboard(common)[[*_OURS]]
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
    spread = rows["published_spread"]
    runs = rows["published_runs"].astype(float)
    kind = rows["published_spread_is"]
    published = spread.where(kind == "standard error")
    published = published.mask(kind == "standard deviation", spread / runs**0.5)
    is_known = published.notna() & runs.notna()
    of_two = rows["standard_error"] ** 2 + published.where(is_known, 0.0) ** 2
    of_one = (published**2 * (runs + 1)).where(is_known)
    return of_two.mask(rows["n_ok"] == 1, of_one) ** 0.5


def verify_report(runs: pd.DataFrame, verified: Sequence[Verification]) -> Report:
    """The report of `msda-bench verify`; it is complete if all runs are there."""
    results = results_of(runs)
    sections = []
    for verification in verified:
        tables = () if verification.numbers.empty else (_table(verification),)
        sections.append(Section(tables, tuple(_sentences(verification))))
    last = [Line("line", "", wrapped=False)]
    names = {verification.experiment.name for verification in verified}
    for experiment in results.plan.experiments:
        if experiment.name not in names:
            note = f"{experiment.name} names no published table and is not verified"
            last.append(Line("note", note, wrapped=False))
    last += [Line("verdict", _verdict(verification), wrapped=False) for verification in verified]
    sections.append(Section(lines=tuple(last)))
    is_complete = all(are_ok(verification.runs).all() for verification in verified)
    return Report(tuple(sections), verified_frame(verified), is_complete and not results.fault_lines)


def _sources(verification: Verification) -> pd.DataFrame:
    """The lists of published numbers, each with its number in the table."""
    sources = verification.numbers[[*ORIGIN, "comparable"]].drop_duplicates(ignore_index=True)
    return sources.assign(number=[f"[{place}]" for place in range(1, len(sources) + 1)])


def _table(verification: Verification) -> Table:
    """A row for each published number."""
    unit = Unit("accuracy in percent")
    rows = verification.numbers.merge(_sources(verification), "left", [*ORIGIN, "comparable"])
    kind = rows["published_spread_is"].map(_SPREADS)
    rows["spread"] = kind.where(rows["published_spread"].notna(), "").fillna("")
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
    experiment = verification.experiment.name
    title = f"{experiment}: {unit.label} beside the numbers of {verification.table.name}"
    return Table(f"{experiment}-verify", title, rows, columns)


def _sentences(verification: Verification) -> Iterator[Line]:
    """Each source and its certainty, how to read the table, and what is wrong with our runs."""
    for row in _sources(verification).to_dict("records"):
        text = f"{row['number']} {row['source']}, {row['source_table']}."
        for column, word in _ABOUT.items():
            if row[column]:
                text += f" {word}: {row[column]}."
        if not row["comparable"]:
            text += " Not comparable: another network or protocol than the suite names."
        yield Line("caption", text)
    yield Line("caption", LEGEND)
    skipped = []
    for what, names in verification.absent.items():
        if names:
            skipped.append(f"{what} without a published number, skipped: {', '.join(names)}")
    yield from folder_lines(verification.runs, skipped)


def _verdict(verification: Verification) -> str:
    text = f"{verification.experiment.name}: {verification.sentence}"
    not_ok = int((~are_ok(verification.runs)).sum())
    if not_ok:
        text += f" ({not_ok} of {len(verification.runs)} runs are not ok)"
    return text
