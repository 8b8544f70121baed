"""Compares our runs with published numbers, which may come from several sources, disagree, or not be comparable."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.door import argument
from msda_bench.results.frame import AVERAGE, experiments, runs_of
from msda_bench.results.leaderboard import leaderboard
from msda_bench.results.notes import folder_lines
from msda_bench.results.report import Column, Line, Report, Section, Table, Unit
from msda_bench.results.runs import results_of
from msda_bench.results.select import select
from msda_bench.suite.files import UnreadableError
from msda_bench.suite.plan import Experiment
from msda_bench.suite.published import ENDING, PublishedNumber, PublishedNumbers, find_table, known_tables

ORIGIN = ("source", "source_table", "backbone", "protocol", "certainty")
"""The columns that distinguish one list of published numbers from another."""
_OURS = ("target", "method", "reference", "mean", "standard_error", "n_ok", "n_planned", "bold_paper")
COLUMNS = (
    *("suite", "experiment", "dataset", "table", "target", "method", "reference", "metric", "published_method"),
    *("published_mean", "published_spread", "published_spread_is", "published_runs", "published_bold"),
    *(*ORIGIN, "comparable", *_OURS[3:]),
    *("difference", "standardised_difference", "degrees_of_freedom", "within_2_se"),
)
"""The columns of verify.csv, explained in docs/verify.md."""
VERIFIED = "verify.csv"
FAR = 2.0
"""A rule of thumb: a difference of more standard errors is more than noise."""
_NAMES = {"table": "source_table"} | {
    name: f"published_{name}" for name in ("method", "mean", "spread", "spread_is", "runs", "bold")
}
_SPREADS = {"standard error": "", "standard deviation": " sd", "not said": " ?"}
_ABOUT = {"backbone": "Network", "protocol": "Protocol", "certainty": "Certainty"}
LEGEND = (
    "difference: ours - published; z: the same divided by its standard error, which uses the published runs' standard "
    "deviation where n is 1, and ours alone if a source gives no spread or does not state its kind (?). Both are shown "
    "only where network and protocol are comparable. b: in bold in the source; of ours, by the paper's rule."
)


def verify(runs: str | Path | pd.DataFrame, table: str | None = None) -> pd.DataFrame:
    """Compares runs with the published numbers that their suite names.

    Args:
        runs: a result folder, or a frame from `load_results`.
        table: a table of published numbers of the package, or a .csv file with one, instead of the suite's own.

    Returns:
        One row for each published number of a method and target of the runs, target by target, the mean over targets
        last, in the columns of verify.csv (docs/verify.md). `difference` is ours - published in percentage points, and
        `standardised_difference` is this difference divided by its standard error, both only where network and protocol
        are comparable.

    Raises:
        BenchError: there is no such table, the suite names none, or the table is of other targets or another metric.
    """
    runs, table = runs_of(runs), argument("table", table, str | None)
    if runs.empty:
        raise ValueError("runs: there are no rows to compare")
    return verified_frame(verifications(runs, table))


def verified_frame(verified: Sequence[Verification]) -> pd.DataFrame:
    """The rows of `verify` of several experiments."""
    return pd.concat([verification.cells for verification in verified], ignore_index=True)


@dataclass(frozen=True)
class Verification:
    """An experiment compared with published numbers.

    `runs` are those of the methods and targets that have a published number, `cells` the rows of `verify`, and
    `absent` the `methods` and `targets` without one. `pairs` are those of ranked methods with different comparable
    means over the targets in one source, and with common seeds: `first, second` (`first` has the better published
    mean), `published` and `ours` (mean of first - mean of second), and `within_2_se` (of ours - published).
    """

    experiment: Experiment
    table: PublishedNumbers
    runs: pd.DataFrame
    cells: pd.DataFrame
    pairs: pd.DataFrame
    absent: Mapping[str, list[str]]

    @cached_property
    def ranges(self) -> pd.DataFrame:
        """A row for each method and target with comparable numbers: their `low` and `high`, and our `mean`.

        `within` reports whether our mean is between them or at most two standard errors from one of them; NA if there
        are too few runs.
        """
        groups = self.cells[self.cells["comparable"]].groupby(["target", "method"], sort=False)
        ranges = groups.agg(
            low=("published_mean", "min"), high=("published_mean", "max"),
            mean=("mean", "first"), near=("within_2_se", "max"),
        ).reset_index()  # fmt: skip
        between = ranges["mean"].between(ranges["low"], ranges["high"]).astype("boolean")
        return ranges.assign(within=between | ranges.pop("near").astype("boolean"))

    @property
    def disagreements(self) -> pd.DataFrame:
        """The ranges in which comparable sources differ."""
        return self.ranges[self.ranges["low"] < self.ranges["high"]]

    @property
    def judged(self) -> pd.DataFrame:
        """The ranges that decide the status: those of the means over targets, or all ranges if no mean is published."""
        averages = self.ranges[self.ranges["target"] == AVERAGE]
        return averages if len(averages) else self.ranges

    @property
    def inversions(self) -> pd.DataFrame:
        """The pairs whose order is the reverse of the published one."""
        return self.pairs[self.pairs["ours"] < 0]

    @property
    def status(self) -> Literal["agrees", "differs", "incomplete", "not comparable"]:
        """The conclusion.

        incomplete: a run is not ok, or there are too few runs. not comparable: no number has the suite's network and
        protocol. differs: one of the `judged` ranges is not `within`, or the order of two methods is reversed by more
        than noise. agrees: otherwise. Single cells are shown but not judged beside means over targets, since some
        differ by chance even if all true means are equal.
        """
        within = self.judged["within"]
        if (self.runs["status"] != "ok").any():
            return "incomplete"
        if within.empty:
            return "not comparable"
        if not (within.all() and self.inversions["within_2_se"].all()):  # skips NA
            return "differs"
        return "incomplete" if within.isna().any() else "agrees"


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
    have = {"method": [*dict.fromkeys(rows["method"])], "target": [*dict.fromkeys(rows["target"])]}
    numbers = _numbers(table, have["method"], have["target"])
    common = rows[rows["method"].isin(numbers["method"]) & rows["target"].isin(numbers["target"])]
    cells = _cells(experiment, table, numbers, common)
    absent = {f"{what}s": [name for name in have[what] if name not in set(numbers[what])] for what in have}
    return Verification(experiment, table, common, cells, _pairs(cells, common), absent)


def _numbers(table: PublishedNumbers, methods: list[str], targets: list[str]) -> pd.DataFrame:
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


def _cells(
    experiment: Experiment, table: PublishedNumbers, numbers: pd.DataFrame, common: pd.DataFrame
) -> pd.DataFrame:
    """Joins the published numbers with ours; differences only where network and protocol are the suite's."""
    board = leaderboard(common)[[*_OURS]] if len(common) else pd.DataFrame(columns=[*_OURS])
    cells = numbers.merge(board, "left", ["target", "method"])
    choices = (("backbone", table.backbones), ("protocol", table.protocols))
    by_network, by_protocol = (cells[column].isin(["", *names]) for column, names in choices)
    cells = cells.assign(
        suite=results_of(common).plan.suite, experiment=experiment.name, dataset=experiment.dataset, table=table.name,
        metric=table.metric, comparable=by_network & by_protocol,
    ).astype({"reference": bool, "mean": float, "standard_error": float, "published_mean": float})  # fmt: skip
    cells[["n_ok", "n_planned"]] = cells[["n_ok", "n_planned"]].astype("Int64").fillna(0)
    cells = cells.astype({"published_runs": "Int64", "published_bold": "boolean", "bold_paper": "boolean"})
    cells["published_spread"] = cells["published_spread"].astype(float)
    cells["difference"] = (cells["mean"] - cells["published_mean"]).where(cells["comparable"])
    z = _standardised(cells["difference"], cells["n_ok"], cells["standard_error"], *_errors(cells))
    return cells.assign(**z)[[*COLUMNS]]


def _errors(cells: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    """Published standard errors and numbers of runs; 0 and infinity if the kind of spread or the runs are missing."""
    spread, runs = cells["published_spread"], cells["published_runs"].astype(float)
    kind = cells["published_spread_is"]
    error = spread.where(kind == "standard error", (spread / runs**0.5).where(kind == "standard deviation"))
    known = error.notna() & runs.notna()
    return error.where(known, 0.0), runs.where(known, float("inf"))


def _standardised(
    difference: pd.Series[float],
    n: pd.Series[int],
    error: pd.Series[float],
    published_error: pd.Series[float],
    runs: pd.Series[float],
) -> dict[str, pd.Series[Any]]:
    """Divides differences between the means of independent samples by their standard errors (Welch 1947).

    The variance of the difference is the sum of both squared standard errors, with the degrees of freedom of Welch and
    Satterthwaite. A single run of ours has no standard error, so the standard deviation of the published runs replaces
    it; the quotient then shows how well the run fits among them. A published mean without a spread is taken as exact:
    an error of 0 over infinitely many runs. Without a difference the results are missing.
    """
    runs_of_ours, squared, published = n.astype(float), error.astype(float) ** 2, published_error.astype(float) ** 2
    single = runs_of_ours == 1
    variance = (squared + published).mask(single, published * (runs + 1))
    df = (variance**2 / (squared**2 / (runs_of_ours - 1) + published**2 / (runs - 1))).mask(single, runs - 1)
    z = difference.astype(float) / variance**0.5
    within = (z.abs() <= FAR).astype("boolean").mask(z.isna())
    return {"standardised_difference": z, "degrees_of_freedom": df.where(z.notna()), "within_2_se": within}


def _pairs(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Compares the order of our means over the targets with each source's order; see `Verification.pairs`.

    Our difference between two methods is computed seed by seed. The published difference gets a standard error as if
    its runs were not paired. That is too large if runs with the same seed are correlated, so an inversion is called
    noise too often rather than too rarely.
    """
    ok = runs[(runs["status"] == "ok") & runs["score"].notna()]
    of_seeds = ok.groupby(["seed", "method"])["score"].agg(["mean", "size"])
    scores = of_seeds.loc[of_seeds["size"] == runs["target"].nunique(), "mean"].unstack("method")
    errors = pd.concat(_errors(cells), axis=1, keys=["error", "runs"])
    averages = cells.join(errors)[cells["comparable"] & ~cells["reference"] & (cells["target"] == AVERAGE)]
    averages = averages[averages["method"].isin(scores.columns)]
    averages = averages.sort_values("published_mean", ascending=False, kind="stable")
    rows = []
    for _, numbers in averages.groupby([*ORIGIN], sort=False):
        for first, second in combinations(numbers.to_dict("records"), 2):
            ours = (scores[first["method"]] - scores[second["method"]]).dropna()
            published = first["published_mean"] - second["published_mean"]
            if first["method"] != second["method"] and len(ours) and published:
                figures = published, round(ours.mean(), 9), len(ours), ours.sem()  # equal means differ by rounding
                error = (first["error"] ** 2 + second["error"] ** 2) ** 0.5
                rows.append((first["method"], second["method"], *figures, error, min(first["runs"], second["runs"])))
    names = ["first", "second", "published", "ours", "n", "error", "published_error", "runs"]
    pairs = pd.DataFrame(rows, columns=names)
    columns = (pairs[name] for name in ("n", "error", "published_error", "runs"))
    return pairs.assign(**_standardised(pairs["ours"] - pairs["published"], *columns))


def verify_report(runs: pd.DataFrame, verified: Sequence[Verification]) -> Report:
    """What `msda-bench verify` answers."""
    names = {verification.experiment.name for verification in verified}
    without = [table.name for table in results_of(runs).plan.experiments if table.name not in names]
    sections = [Section(tuple(_table(verification)), tuple(_sentences(verification))) for verification in verified]
    notes = (Line("note", f"{name} names no published table and is not verified", wrapped=False) for name in without)
    verdicts = (Line("verdict", _verdict(verification), wrapped=False) for verification in verified)
    last = Section(lines=(Line("line", "", wrapped=False), *notes, *verdicts))
    fine = all(verification.status in {"agrees", "not comparable"} for verification in verified)
    return Report((*sections, last), verified_frame(verified), fine and not results_of(runs).fault_lines)


def _sources(verification: Verification) -> pd.DataFrame:
    sources = verification.cells[[*ORIGIN, "comparable"]].drop_duplicates(ignore_index=True)
    return sources.assign(number=[f"[{place}]" for place in range(1, len(sources) + 1)])


def _table(verification: Verification) -> Iterator[Table]:
    """A row for each published number, if there are any."""
    unit, experiment = Unit("accuracy in percent"), verification.experiment.name
    rows = verification.cells.merge(_sources(verification), "left", [*ORIGIN, "comparable"])
    spread = rows["published_spread_is"].map(_SPREADS).where(rows["published_spread"].notna(), "").fillna("")
    # A bold set of ours is of interest only beside a published one.
    bold = _bold(rows["bold_paper"]).where(rows["published_bold"].notna(), "")
    columns = [
        Column("method", "text", ["method"]),
        Column("target", "text", ["target"]),
        Column("published", "number with error", ["published_mean", "published_spread", "spread"], unit),
        Column("source", "text", ["number"]),
        Column("ours", "number with error", ["mean", "standard_error", "bold"], unit),
        Column("n", "n/planned", ["n_ok", "n_planned"]),
        Column("difference", "difference if comparable", ["difference", "comparable"], unit),
        Column("z", "z if comparable", ["standardised_difference", "comparable"]),
    ]
    rows = rows.assign(spread=spread + _bold(rows["published_bold"]), bold=bold)
    title = f"{experiment}: {unit.label} beside the numbers of {verification.table.name}"
    if len(rows):
        yield Table(f"{experiment}-verify", title, rows, tuple(columns))


def _bold(bold: pd.Series[Any]) -> pd.Series[str]:
    return bold.eq(True).fillna(value=False).map({True: " b", False: ""})  # noqa: FBT003 - pandas names it other


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
    cells, bad = verification.cells, int((verification.runs["status"] != "ok").sum())
    parts = [*_judged(verification), *_near(verification), *_order(verification), *disagreement(verification)]
    rest = int((~cells["comparable"]).sum())
    if not parts:
        parts = [f"none of {len(cells)} published numbers is of the suite's network and protocol"]
    elif rest:
        parts.append(f"{rest} of {len(cells)} published numbers are not comparable")
    why = f" ({bad} of {len(verification.runs)} runs are not ok)" if bad else ""
    return f"{verification.experiment.name}: {verification.status}{why}: {'; '.join(parts)}"


def disagreement(verification: Verification) -> Iterator[str]:
    """On how many numbers comparable sources disagree, and by how much, if they do."""
    ranges = verification.disagreements
    if len(ranges):
        apart = (ranges["high"] - ranges["low"]).max()
        yield f"sources disagree on {len(ranges)} numbers, by up to {apart:.1f} points"


def _judged(verification: Verification) -> Iterator[str]:
    judged = verification.judged
    away = judged[~judged["within"].fillna(value=False)]
    off = ", ".join(f"{row['method']} at {row['target']} {_off(row)}" for row in away.to_dict("records"))
    noun = "averages" if (judged["target"] == AVERAGE).any() else "numbers"
    if len(judged):
        yield f"{judged['within'].sum()} of {len(judged)} {noun} within the published range{off and f' (not {off})'}"


def _off(row: Mapping[Hashable, Any]) -> str:
    """The distance from our mean to the nearest published number."""
    if pd.isna(row["mean"]):
        return "without a mean"
    nearest = min(row["low"], row["high"], key=lambda value: abs(row["mean"] - value))
    few = ", too few runs" if pd.isna(row["within"]) else ""
    return f"{row['mean'] - nearest:+.2f}{few}"


def _near(verification: Verification) -> Iterator[str]:
    """How many targets' cells are near, and how many are not expected to be if all true means are equal."""
    from scipy.special import stdtr

    cells = verification.cells[verification.cells["comparable"] & (verification.cells["target"] != AVERAGE)]
    near, expected = cells["within_2_se"], 2 * stdtr(cells["degrees_of_freedom"].dropna(), -FAR).sum()
    if len(near.dropna()):
        outside = f"{(~near.dropna()).sum()} outside, {expected:.1f} expected by chance"
        without = f", {near.isna().sum()} with too few runs" if near.isna().any() else ""
        yield f"{near.sum()} of {len(near)} cells within {FAR:g} standard errors ({outside}{without})"


def _order(verification: Verification) -> Iterator[str]:
    pairs, inversions = len(verification.pairs), verification.inversions
    within = int(inversions["within_2_se"].sum())
    counts = (within, "within"), (len(inversions) - within, "beyond")
    turned = ", ".join(f"{count} turned {how} noise" for count, how in counts if count)
    if pairs:
        yield f"order of methods agrees in {pairs - len(inversions)} of {pairs} pairs{turned and f' ({turned})'}"
