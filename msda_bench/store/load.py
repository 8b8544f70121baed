"""Reads one file of a result folder."""

from __future__ import annotations

import errno
from pathlib import Path

from msda_bench.store.codec import BadRecordError, NewerRecordError, decode
from msda_bench.store.files import named, read_file
from msda_bench.store.record import Record

NO_LINK = "is a symbolic link, which is not followed"


def load(path: Path, key: str) -> Record | None:
    """The record of that key in a file; None where there is no file.

    Raises:
        BadRecordError: it is damaged, another cell's, or a link, which is not followed; says what, not where.
        NewerRecordError: a newer msda-bench wrote it.
        StoreError: it cannot be read.
    """
    try:
        with named(path, "cannot be read"):
            try:
                data = read_file(path)
            except FileNotFoundError:
                return None
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise BadRecordError(NO_LINK) from None
        return decode(data, key)
    except NewerRecordError as newer:
        raise NewerRecordError(f"{path}: {newer}") from None


def load_or_tell(path: Path, key: str, bad: list[str]) -> Record | None:
    """The same; of a record that is damaged or newer it adds a line to `bad`, and gives None.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return load(path, key)
    except BadRecordError as error:
        bad.append(f"{path}: {error}")
    except NewerRecordError as newer:
        bad.extend(newer.lines)
    return None
