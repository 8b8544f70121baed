"""`msda-bench schema`: prints the JSON schema of a suite, by which editors complete and check suites."""

from __future__ import annotations

import argparse
import json


def command(_: argparse.Namespace) -> int:
    """See the registry."""
    from msda_bench.plugins import discover
    from msda_bench.suite.json_schema import suite_schema

    print(json.dumps(suite_schema(discover()), indent=2))
    return 0
