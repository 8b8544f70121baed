"""The notes on other packages say what was measured."""

import csv
import re
from pathlib import Path

from tests.reader import table

FOLDER = Path(__file__).parent.parent / "studies" / "peers"


def test_the_table_is_the_measurement():
    found = {}
    with (FOLDER / "peers.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["package"], row["step"], row["task"]), {})[row["probe"]] = row["seen"]
    text = (FOLDER / "README.md").read_text()
    (_, _, _, *probes), *rows = table(text, "| package |")
    assert [tuple(row[:3]) for row in rows] == list(found)
    for row, seen in zip(rows, found.values(), strict=True):
        for probe, cell in zip(probes, row[3:], strict=True):
            number = seen.get(probe, "-")
            assert cell == (number if re.fullmatch(r"[0-9.]+|-", number) else "error"), (row, probe)
