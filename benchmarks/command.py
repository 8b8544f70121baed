"""Runs one msda-bench command and prints its cost: `python -m benchmarks.command leaderboard DIR`."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.resident import highest_resident
from msda_bench.cli.main import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    print(json.dumps({"cpu": time.process_time(), "peak": highest_resident()}), file=sys.stderr)
    sys.exit(code)
