"""The lines of a result folder, which tests read, lose, alter and damage."""

import hashlib

from msda_bench.store import Store
from msda_bench.store.codec import decode
from msda_bench.store.record import RESULTS
from msda_bench.suite.run_spec import canonical_json


def key_of(cell):
    """The key of a cell that is plain JSON values."""
    return hashlib.sha256(canonical_json(cell).encode()).hexdigest()


def lines_of(folder):
    """The line of the result that counts, by key."""
    store = Store(folder).refresh()
    return {key: store.line(stored) for key, stored in store.results.items()}


def records_of(folder):
    """The result that counts, by key."""
    return {key: decode(line) for key, line in lines_of(folder).items()}


def relog(folder, changed):
    """Puts these bytes in the place of the results of these keys, into one log, which is returned."""
    store = Store(folder).refresh()
    lines = [
        changed[stored.key] if stored.status in RESULTS and stored.key in changed else store.line(stored)
        for stored in store.in_order()
    ]
    for path in (folder / "records.jsonl.gz", *folder.glob("log/*")):
        path.unlink(missing_ok=True)
    log = folder / "log" / "00000000-1-00.jsonl"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(lines))
    return log


def contents(folder, pattern="*"):
    """The bytes of every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob(pattern) if path.is_file()}


def n_lines(folder):
    """The number of whole lines in the logs of a folder, which may not exist yet."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("log/*.jsonl"))
