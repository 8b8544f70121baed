"""Copies the runs that earlier registered measurements have, before the third is recorded.

`python studies/registered-3/reuse.py [SUITE ...]`: SRC, MCC, BNM, MMD and DARN with their candidates, JOINT and chance
of `registered`, AdaBN of `registered-2`; by default of the whole suite `registered-3`, otherwise of its named parts.
Runs of a task that is not whole yet wait in `pending.jsonl.gz`, which no table reads: the unsealed log of a stopped
recording. Equal keys are equal runs; `msda-bench run` then trains the others.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from msda_bench.cli.main import main
from msda_bench.plugins import discover
from msda_bench.suite.expand import expand
from msda_bench.suite.files import find_suite
from msda_bench.suite.load import load_suite

RESULTS = Path(__file__).parents[2] / "results"
EARLIER = (
    RESULTS / "registered" / "records.jsonl.gz",
    RESULTS / "registered-2" / "records.jsonl.gz",
    Path(__file__).parent / "pending.jsonl.gz",
)
_KEY = re.compile(rb'"key":"([0-9a-f]{64})"')


def planned(suite: str) -> set[bytes]:
    """The keys of the suite's runs."""
    registry = discover()
    return {key.encode() for key in expand(load_suite(find_suite(suite), registry), registry).cells}


def copied(keys: set[bytes], log: Path) -> int:
    """Writes the lines of the earlier records with these keys, each once; how many there were."""
    left = set(keys)
    with log.open("wb") as kept:
        for earlier in EARLIER:
            if not earlier.exists():
                continue
            with gzip.open(earlier) as lines:
                for line in lines:
                    found = _KEY.search(line)
                    if found and found[1] in left:
                        left.remove(found[1])
                        kept.write(line)
    return len(keys) - len(left)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log" / "reused.jsonl"
        log.parent.mkdir()
        keys = set().union(*(planned(suite) for suite in sys.argv[1:] or ["registered-3"]))
        sys.stdout.write(f"{copied(keys, log)} of {len(keys)} runs are recorded\n")
        sys.exit(main(["store", "merge", str(RESULTS / "registered-3"), folder]))
