"""Copies the runs that both registered measurements have, before the second is recorded.

`python studies/registered-2/reuse.py`: SRC, JOINT and chance, and DARN with its authors' settings, which is the first
candidate of DARN-gamma. Equal keys are equal runs; `msda-bench run` then trains the others.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msda_bench as mb
from msda_bench.cli.main import main

RESULTS = Path(__file__).parents[2] / "results"
SHARED = ["SRC", "JOINT", "chance"]


def reused() -> set[str]:
    """The keys of the runs."""
    runs = mb.load_results(RESULTS / "registered")
    authors = (runs["method"] == "DARN") & (runs["candidate"] == 0)
    return {*runs.loc[runs["method"].isin(SHARED) | authors, "key"].dropna()}


if __name__ == "__main__":
    keys = reused()
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log" / "reused.jsonl"
        log.parent.mkdir()
        with gzip.open(RESULTS / "registered" / "records.jsonl.gz") as lines, log.open("wb") as kept:
            kept.writelines(line for line in lines if json.loads(line)["record"]["key"] in keys)
        sys.exit(main(["store", "merge", str(RESULTS / "registered-2"), folder]))
