"""The files of a result folder's cells, and what their names say; the one place that looks for them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple, cast

Kind = Literal["result", "failure", "conflict", "bad"]
_RECORD = re.compile(
    r"(?P<key>[0-9a-f]{64})(?:\.json|\.(?P<kind>failure|conflict)-(?P<number>[1-9][0-9]{0,8})\.json|\.(?P<bad>bad)-[1-9][0-9]*)"
)
_ORDER = ("result", "failure", "conflict", "bad")


class RecordFile(NamedTuple):
    """A file that is named as a record.

    Attributes:
        folder: the folder that it is in.
        name: its name.
        key: of its cell.
        kind: the result that counts, an attempt that gave none, another result, or a damaged one that was set aside.
        number: among the attempts or other results; 0 for the rest.
    """

    folder: str
    name: str
    key: str
    kind: Kind
    number: int

    @classmethod
    def of(cls, folder: str, name: str) -> RecordFile | None:
        """What a name says; None where it names no record, or one in the wrong folder."""
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


def scan(cells: Path) -> list[RecordFile]:
    """Every file that is named as a record, in no order; none where there is no such folder.

    Raises:
        OSError: a folder cannot be read.
    """
    if not cells.is_dir():
        return []
    with os.scandir(cells) as entries:
        folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    found = (RecordFile.of(folder, name) for folder in folders for name in os.listdir(folder))  # noqa: PTH208
    return [file for file in found if file is not None]
