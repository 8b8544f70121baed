"""Builds the site's leaderboard (one row per method, one column per experiment); compares methods across datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.analysis import (
    METRIC,
    MIN_PAIRS_ACROSS,
    Across,
    across_datasets,
    by_count,
    by_rank,
    counted,
    listed,
    name_of,
)
from msda_bench_report.site.column import Column

_MOST_NAMED = 4
"""The maximum number of experiments that a sentence names."""


class Row(NamedTuple):
    """A method with its row of the leaderboard in each column, or None."""

    name: str
    cells: tuple[Mapping[Any, Any] | None, ...]
    reference: bool
    """Whether it is a reference in all its columns."""

    @property
    def found(self) -> tuple[Mapping[Any, Any], ...]:
        """The cells that exist."""
        return tuple(cell for cell in self.cells if cell is not None)


def table(columns: Sequence[Column]) -> list[Row]:
    """The methods, ordered by how many baselines they beat, then by their number of columns; references come last."""
    names = dict.fromkeys(name for column in columns for name in column.rows)
    cells = {name: tuple(column.rows.get(name) for column in columns) for name in names}
    rows = [Row(name_of(name), own, all(cell["reference"] for cell in own if cell)) for name, own in cells.items()]
    sizes = [column.n_ranked for column in columns]
    beaten = Counter(name_of(name) for column in columns for name in column.better or ())

    def place(row: Row) -> tuple[Any, ...]:
        return row.reference, -beaten[row.name], -len(row.found), -_share(row), _place(row, sizes)

    return sorted(rows, key=place)


def of_methods(columns: Sequence[Column]) -> Sequence[Column]:
    """The columns for the sentences and the comparison across datasets: those that compare methods, if any."""
    return [column for column in columns if column.compares == "methods"] or columns


def _share(row: Row) -> float:
    """The share of columns in which the method is among the best, of those with enough seeds for a test."""
    known = [bool(cell["bold_holm"]) for cell in row.found if cell["bold_holm"] is not None]
    return sum(known) / len(known) if known else 0.0


def in_order(columns: Iterable[Column]) -> list[Column]:
    """Orders columns by how many of their methods other columns have.

    Columns whose tests can show a difference come first, those that compare variants last.
    """
    every = list(columns)
    counts = Counter(name for column in every for name in column.rows)

    def place(column: Column) -> tuple[bool, bool, int, int]:
        shared = sum(counts[name] - 1 for name in column.rows)
        tested = column.is_tested or column.better is not None
        return column.compares == "variants", not (shared and tested), -shared, -column.n_ok

    return sorted(every, key=place)


def _place(row: Row, sizes: Sequence[int]) -> float:
    """The mean relative rank of a method over columns: 0 for the best, 1 for the last."""
    ranks = [(cell["rank"], size) for cell, size in zip(row.cells, sizes, strict=True) if cell and cell["rank"]]
    return sum((rank - 1) / max(size - 1, 1) for rank, size in ranks) / len(ranks) if ranks else 1.0


def compared(columns: Iterable[Column]) -> Across | None:
    """Compares the methods that enough datasets share across these datasets; None for fewer than two datasets.

    Methods are added one by one, those that most datasets rank first, as long as enough datasets rank all of them. If
    no method is ranked by enough datasets, all experiments count.
    """
    left = [column for column in columns if column.grid.metric == METRIC]
    ranked: dict[str, list[Column]] = {}
    for column in left:
        for name in column.grid.ranked:
            ranked.setdefault(name, []).append(column)
    for name in sorted(ranked, key=lambda name: -_datasets(ranked[name])):
        having = [column for column in left if name in column.grid.ranked]
        left = having if _datasets(having) >= MIN_PAIRS_ACROSS else left
    return across_datasets([column.grid for column in left], [column.pairs for column in left])


def _datasets(columns: Iterable[Column]) -> int:
    return len({column.experiment.dataset for column in columns})


def answer(columns: Sequence[Column], across: Across | None) -> tuple[str, ...]:
    """Sentences on which method is best overall, and how certain that is."""
    concludes = across is not None and across.concludes
    lines = [[*_across(columns, across)], [*_over_baselines(columns), *_most_often(columns)]]
    return tuple(line for own in (lines if concludes else reversed(lines)) for line in own)


def _across(columns: Sequence[Column], across: Across | None) -> Iterator[str]:
    if across is None or not across.concludes or not across.mean_ranks:
        n = _datasets(column for column in columns if column.grid.metric == METRIC)
        few = f"{counted(n, 'dataset')} cannot show which method is best across datasets"
        yield f"{few}: {MIN_PAIRS_ACROSS} that rank the same methods by accuracy are needed."
        return
    yield from by_rank(across)


def _over_baselines(columns: Sequence[Column]) -> Iterator[str]:
    """Names the methods that beat the baselines, and the experiments or their number."""
    found = {column.experiment.name: column.better for column in columns if column.better is not None}
    if not found:
        return
    if any(found.values()):
        where = _named(found) if len(found) <= _MOST_NAMED else _times(found)
        yield f"Significantly better than the baseline: {where}."
    else:
        of = "the one experiment" if len(found) == 1 else f"any of the {len(found)} experiments"
        yield f"No method was shown to be better than the baseline in {of} with enough seeds for that test."
    if left := len(columns) - len(found):
        have = "has" if left == 1 else "have"
        yield f"{counted(left, 'other experiment')} {have} no baseline, or too few seeds for that test."


def _named(found: Mapping[str, Sequence[str]]) -> str:
    own = (f"{listed(map(name_of, names)) if names else 'none'} in {name_of(where)}" for where, names in found.items())
    return "; ".join(own)


def _times(found: Mapping[str, Sequence[str]]) -> str:
    times = by_count(Counter(name for names in found.values() for name in names))
    return "; ".join(
        f"{listed(map(name_of, names))} in {count} of {len(found)} experiments" for count, names in times.items()
    )


def _most_often(columns: Sequence[Column]) -> Iterator[str]:
    """Names the methods that are best, or not shown to be worse than the best, in most experiments."""
    tested = [column for column in columns if column.is_tested]
    if not tested:
        yield "No experiment has enough seeds for a test of all pairs of methods."
        return
    counts: Counter[str] = Counter()
    for column in tested:
        among = sorted((row["rank"], name) for name, row in column.rows.items() if row["bold_holm"])
        counts.update(name for _, name in among)
    most = max(counts.values(), default=0)
    names = [name_of(name) for name, count in counts.items() if count == most]
    verb = "is" if len(names) == 1 else "are"
    if len(tested) == 1:
        where = f"among the best in {name_of(tested[0].experiment.name)}, the one experiment"
    else:
        where = f"most often among the best: in {most} of the {len(tested)} experiments"
    yield f"{listed(names)} {verb} {where} with enough seeds for a test of all pairs."


def leaderboard_frame(frames: Iterable[tuple[str, pd.DataFrame]], columns: Iterable[Column]) -> pd.DataFrame:
    """Joins the leaderboards of all folders; the first columns are those by which a reader filters."""
    known = {(column.folder, column.experiment.name): column for column in columns}
    parts = []
    for folder, board in frames:
        own = [known[folder, name] for name in board["experiment"].astype(object)]
        about = {"page": [one.link for one in own], "modality": [one.modality for one in own]}
        about |= {"protocol": ["; ".join(one.protocol) for one in own], "compares": [one.compares for one in own]}
        parts.append(pd.DataFrame(about).join(board.reset_index(drop=True)))
    return pd.concat(parts, ignore_index=True)
