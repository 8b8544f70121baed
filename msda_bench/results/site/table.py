"""The site's leaderboard: a row a method, a column an experiment, and methods compared across datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.results.across import METRIC, Across, across_datasets
from msda_bench.results.pairs import MIN_PAIRS_ACROSS
from msda_bench.results.scores import Grid
from msda_bench.results.site.column import Column
from msda_bench.results.verdict import by_rank
from msda_bench.results.words import counted, listed, name_of


class Row(NamedTuple):
    """A method, with its row of the leaderboard of each column, or None."""

    name: str
    cells: tuple[Mapping[Any, Any] | None, ...]
    reference: bool
    """Whether it is a reference in all its columns."""

    @property
    def found(self) -> tuple[Mapping[Any, Any], ...]:
        """The cells that exist."""
        return tuple(cell for cell in self.cells if cell is not None)


def table(columns: Sequence[Column]) -> list[Row]:
    """The methods: those in most columns first, then those most often among the best; references last."""
    names = dict.fromkeys(name for column in columns for name in column.rows)
    cells = {name: tuple(column.rows.get(name) for column in columns) for name in names}
    rows = [Row(name_of(name), own, all(cell["reference"] for cell in own if cell)) for name, own in cells.items()]
    sizes = [column.n_ranked for column in columns]
    return sorted(rows, key=lambda row: (row.reference, -len(row.found), -_share(row), _place(row, sizes)))


def _share(row: Row) -> float:
    """The share of columns with enough seeds for a test in which the method is among the best."""
    known = [bool(cell["bold_holm"]) for cell in row.found if cell["bold_holm"] is not None]
    return sum(known) / len(known) if known else 0.0


def in_order(columns: Iterable[Column]) -> list[Column]:
    """Columns by the number of their methods that others have, too; those whose tests can show a difference first."""
    every = list(columns)
    counts = Counter(name for column in every for name in column.rows)

    def place(column: Column) -> tuple[bool, int, int]:
        shared = sum(counts[name] - 1 for name in column.rows)
        return not (shared and column.is_tested), -shared, -column.n_ok

    return sorted(every, key=place)


def _place(row: Row, sizes: Sequence[int]) -> float:
    """The mean relative rank of a method over columns: 0 for the best, 1 for the last."""
    ranks = [(cell["rank"], size) for cell, size in zip(row.cells, sizes, strict=True) if cell and cell["rank"]]
    return sum((rank - 1) / max(size - 1, 1) for rank, size in ranks) / len(ranks) if ranks else 1.0


def compared(columns: Iterable[Column]) -> Across | None:
    """The methods that enough datasets share, compared across these; None for fewer than two datasets.

    Methods are added in the order of how many datasets rank them, while all of them are ranked together in enough. If
    no method is, all experiments count.
    """
    left = [column.grid for column in columns if column.grid.metric == METRIC]
    ranked: dict[str, list[Grid]] = {}
    for grid in left:
        for name in grid.ranked:
            ranked.setdefault(name, []).append(grid)
    for name in sorted(ranked, key=lambda name: -_datasets(ranked[name])):
        having = [grid for grid in left if name in grid.ranked]
        left = having if _datasets(having) >= MIN_PAIRS_ACROSS else left
    return across_datasets(left)


def _datasets(grids: Iterable[Grid]) -> int:
    return len({grid.experiment.dataset for grid in grids})


def answer(columns: Sequence[Column], across: Across | None) -> tuple[str, ...]:
    """Which method is best overall, and how certain that is, in a few sentences."""
    concludes = across is not None and across.concludes
    lines = [[*_across(columns, across)], [*_over_baselines(columns), *_most_often(columns)]]
    return tuple(line for own in (lines if concludes else reversed(lines)) for line in own)


def _across(columns: Sequence[Column], across: Across | None) -> Iterator[str]:
    if across is None or not across.concludes or not across.mean_ranks:
        n = _datasets(column.grid for column in columns if column.grid.metric == METRIC)
        few = f"{counted(n, 'dataset')} cannot show which method is best across datasets"
        yield f"{few}: {MIN_PAIRS_ACROSS} that rank the same methods by accuracy are needed."
        return
    yield from by_rank(across)


def _over_baselines(columns: Sequence[Column]) -> Iterator[str]:
    """Which methods beat the baselines, and in how many experiments."""
    found = [column.better for column in columns if column.better is not None]
    if not found:
        return
    times: dict[int, list[str]] = {}
    for name, count in Counter(name for names in found for name in names).most_common():
        times.setdefault(count, []).append(name_of(name))
    of = f"of {counted(len(found), 'experiment')} with seeds enough for that test"
    if times:
        shown = "; ".join(f"{listed(names)} in {count}" for count, names in times.items())
        yield f"Significantly better than the baseline, {of}: {shown}."
    else:
        yield f"No method is significantly better than the baseline in any {of}."


def _most_often(columns: Sequence[Column]) -> Iterator[str]:
    """Which methods are best, or not significantly different from the best, in most experiments."""
    tested = [column for column in columns if column.is_tested]
    if not tested:
        yield "No experiment has seeds enough for a test to show a difference between methods."
        return
    counts = Counter(name for column in tested for name, row in column.rows.items() if row["bold_holm"])
    most = max(counts.values(), default=0)
    names = [name_of(name) for name, count in counts.items() if count == most]
    verb = "is" if len(names) == 1 else "are"
    where = f"{most} of the {counted(len(tested), 'experiment')}" if len(tested) > 1 else "the one experiment"
    yield f"{listed(names)} {verb} most often among the best: in {where} with seeds enough for a test."


def leaderboard_frame(frames: Iterable[tuple[str, pd.DataFrame]], columns: Iterable[Column]) -> pd.DataFrame:
    """The leaderboards of all folders as one frame, with each row's page, kind of data and protocol before it."""
    known = {(column.folder, column.experiment.name): column for column in columns}
    parts = []
    for folder, board in frames:
        own = [known[folder, name] for name in board["experiment"].astype(object)]
        about = {"page": [one.link for one in own], "modality": [one.modality for one in own]}
        protocol = ["; ".join(one.protocol) for one in own]
        parts.append(pd.DataFrame(about | {"protocol": protocol}).join(board.reset_index(drop=True)))
    return pd.concat(parts, ignore_index=True)
