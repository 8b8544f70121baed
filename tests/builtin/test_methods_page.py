"""docs/methods.md describes exactly the method parts and validators that come with msda-bench."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msda_bench.plugins import discover

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        ("discrepancy", "Discrepancies"),
        ("aggregator", "Aggregators"),
        ("scheme", "Schemes"),
        ("validator", "Validators"),
    ],
)
def test_every_method_part_and_validator_has_a_row(kind: str, heading: str) -> None:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    ours = [entry.name for entry in discover().entries if entry.kind == kind and entry.distribution == "msda-bench"]
    assert sorted(rows) == sorted(ours)
