"""The tests that tests/README.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMED = re.compile(r"`(?P<path>tests/[\w/]+(?:\.py)?)?(?:::(?P<test>\w+))?`")


def test_every_test_that_is_named_exists() -> None:
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    path, found = Path(), 0
    for row in (line for line in text.splitlines() if line.startswith("| ")):
        for name in NAMED.finditer(row.rpartition(" | ")[2]):
            path = ROOT / name["path"] if name["path"] else path
            assert path.exists(), name[0]
            assert name["test"] is None or f"def {name['test']}(" in path.read_text(encoding="utf-8"), name[0]
            found += 1
    assert found > 50
