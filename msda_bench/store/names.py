"""Finds the files of a result folder's cells and parses their names; no other module searches for them.

Names alone show which cells have a damaged record or results in conflict.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

Kind = Literal["result", "failure", "conflict", "bad"]
_RECORD = re.compile(
    r"(?P<key>[0-9a-f]{64})(?:\.json|\.(?P<kind>failure|conflict)-(?P<number>[1-9][0-9]{0,8})\.json|\.(?P<bad>bad)-[1-9][0-9]*)"
)
_ORDER = ("result", "failure", "conflict", "bad")


class RecordFile(NamedTuple):
    """A file named as a record: the result of the cell `key`, or a numbered file of some kind for it."""

    folder: str
    name: str
    key: str
    kind: Kind
    number: int

    @classmethod
    def of(cls, folder: str, name: str) -> RecordFile | None:
        """The parts of a name; None if it is not a record's, or in the wrong folder."""
        found = _RECORD.fullmatch(name)
        if found is None or not folder.endswith(f"/{found['key'][:2]}"):
            return None
        kind = cast("Kind", found["kind"] or found["bad"] or "result")
        return cls(folder, name, found["key"], kind, int(found["number"] or 0))

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.folder, self.name)

    def order(self) -> tuple[str, int, int]:
        """Sorts by key, the result first, then in the order of writing."""
        return self.key, _ORDER.index(self.kind), self.number


@dataclass(frozen=True)
class Faults:
    """Cells with faulty files.

    Attributes:
        damaged: keys of cells without a result that have a damaged record, in quarantine or not.
        conflicting: keys of cells that have another result besides the one that counts.
    """

    damaged: frozenset[str] = frozenset()
    conflicting: frozenset[str] = frozenset()

    def __deepcopy__(self, memo: dict[int, Any]) -> Faults:
        """Itself, which never changes: pandas copies a frame's `attrs` with nearly every operation."""
        return self


def scan(cells: Path) -> list[RecordFile]:
    """Every file named as a record, in no order; empty if the folder does not exist.

    Raises:
        OSError: a folder cannot be read.
    """
    if not cells.is_dir():
        return []
    with os.scandir(cells) as entries:
        folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return [file for folder in folders for file in files_in(folder)]


def files_in(folder: str, beginning: str = "") -> list[RecordFile]:
    """The files of one of its folders, which must exist, whose names begin with `beginning`."""
    names = [name for name in os.listdir(folder) if name.startswith(beginning)]  # noqa: PTH208 - faster than paths
    return [file for name in names if (file := RecordFile.of(folder, name)) is not None]


def faults_among(files: Collection[RecordFile], keys: Iterable[str], ended: Collection[str]) -> Faults:
    """Damaged and conflicting records of the cells `keys`; `ended` are those with a readable result."""
    wanted = set(keys)
    damaged = {file.key for file in files if file.kind in {"result", "bad"} and file.key not in ended}
    conflicting = {file.key for file in files if file.kind == "conflict"}
    return Faults(frozenset(damaged & wanted), frozenset(conflicting & wanted))
