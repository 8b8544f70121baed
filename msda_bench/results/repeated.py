"""The mark of a submission: some of its runs, drawn by its results, that a maintainer has trained again."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pandas as pd
from pydantic import Field, TypeAdapter, ValidationError

from msda_bench.atomic import named, read_file
from msda_bench.errors import StoreError, printable
from msda_bench.results.serialize import rows_of
from msda_bench.store.record import RESULTS, made_on
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.mistakes import dotted, faults

FILE = "repeated.json"
DRAWN = 12
"""The number of runs that are drawn."""
_LIMIT = 100_000
_RESULT = ["key", "status", "n_test", "n_correct", "sum_squared_error"]
_Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_LONGEST = 200
_Words = Annotated[str, Field(min_length=1, max_length=_LONGEST)]


@dataclass(frozen=True)
class Repeated:
    """Which runs were trained again, and how they compare.

    Attributes:
        by: who did it, in their words.
        on: the day.
        made_on: the system that trained them.
        results: the sha256 of the results that drew them.
        of: the number of results.
        runs: by key, the size of the difference in the score; null if one of the two has none.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid", "allow_inf_nan": False}

    by: _Words
    on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    made_on: _Words
    results: _Key
    of: Annotated[int, Field(ge=1)]
    runs: Annotated[dict[_Key, Annotated[float, Field(ge=0)] | None], Field(min_length=1, max_length=DRAWN)]
    schema: Literal[1] = 1

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        return canonical_json(vars(self)).encode() + b"\n"

    def __str__(self) -> str:
        equal = sum(difference == 0 for difference in self.runs.values())
        known = [difference for difference in self.runs.values() if difference is not None]
        most = max(known, default=0.0)
        far = f", the largest difference in the score {most:.3g}" if most else ""
        lost = len(self.runs) - len(known)
        ended = f", {lost} ended otherwise" if lost else ""
        drawn = f"{len(self.runs)} of {self.of} runs, drawn by their results"
        who = f"by {printable(self.by)} on {self.on} ({printable(self.made_on)})"
        return f"repeated {who}: {drawn}; {equal} equal{far}{ended}"


def _results(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.loc[runs["status"].isin(RESULTS).to_numpy(), _RESULT].drop_duplicates("key").sort_values("key")


def digest_of(runs: pd.DataFrame) -> tuple[str, int]:
    """The sha256 of the results of a folder's runs, and their number."""
    results = _results(runs)
    return hashlib.sha256(canonical_json(rows_of(results)).encode()).hexdigest(), len(results)


def drawn(runs: pd.DataFrame) -> tuple[str, ...]:
    """The keys of the runs to train again; another result anywhere draws others."""
    digest, _ = digest_of(runs)
    keys = sorted(_results(runs)["key"], key=lambda key: hashlib.sha256(f"{digest} {key}".encode()).digest())
    return tuple(keys[:DRAWN])


def compared(runs: pd.DataFrame, again: pd.DataFrame, by: str, on: str) -> Repeated:
    """The mark of a folder's runs, of which `again` has the drawn ones trained anew.

    Raises:
        StoreError: a drawn run has no result there.
    """
    digest, count = digest_of(runs)
    ours, theirs = (frame.drop_duplicates("key").set_index("key") for frame in (runs, again))
    keys = list(drawn(runs))
    theirs = theirs.reindex(keys)
    if untrained := (~theirs["status"].isin(RESULTS)).sum():
        raise StoreError(f"{untrained} of {len(keys)} drawn runs have no result yet; run the command again")
    ended = ours.loc[keys, "status"].astype(str) == theirs["status"].astype(str)
    apart = (ours.loc[keys, "score"] - theirs["score"]).abs()
    apart = apart.mask(apart.isna() & ended, 0.0)  # both diverged
    first = {name: None if pd.isna(value) else value for name, value in theirs.iloc[0].items()}
    where = made_on(first) or "an unnamed system"
    differences = {key: None if math.isnan(value) else value for key, value in zip(keys, apart.tolist(), strict=True)}
    return Repeated(printable(by, _LONGEST), on, printable(where, _LONGEST), digest, count, differences)


def read_repeated(folder: Path) -> Repeated | None:
    """The mark of a result folder; None if it has none.

    Raises:
        StoreError: it cannot be used.
    """
    path = folder / FILE
    if not os.path.lexists(path):
        return None
    with named(path, "cannot be read"):
        data = read_file(path, _LIMIT)
    try:
        return TypeAdapter(Repeated).validate_json(data, strict=True)
    except ValidationError as error:
        first = next(iter(faults(error, lambda _: ("key", []))))
        raise StoreError(f"{path}: is damaged: {dotted(first.loc)}: {first.what}; repeat the runs again") from None


def fault_of(folder: Path, runs: pd.DataFrame) -> str | None:
    """A line if the folder's mark is not of these runs; None if it is, or if there is none."""
    try:
        mark = read_repeated(folder)
    except StoreError as error:
        return error.lines[0]
    if mark is None or ((mark.results, mark.of) == digest_of(runs) and {*mark.runs} == {*drawn(runs)}):
        return None
    return f"{folder / FILE}: is not of these results, which have changed or draw other runs; repeat them again"


def mark_of(folder: Path, runs: pd.DataFrame) -> str | None:
    """The sentence on the folder's mark, or on what is wrong with it; None if there is none."""
    fault = fault_of(folder, runs)
    return fault or (None if (mark := read_repeated(folder)) is None else str(mark))
