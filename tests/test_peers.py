"""The notes on other packages say what was measured."""

import csv
import re
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "studies" / "peers"


def measured():
    found = {}
    with (FOLDER / "peers.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["package"], row["step"], row["task"]), {})[row["probe"]] = row["seen"]
    return found


def test_the_table_is_the_measurement():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    header, *lines = [line for line in text.splitlines() if line.startswith("| ")]
    _, _, _, *probes = header.strip("| ").split(" | ")
    table = {}
    for line in lines:
        package, step, task, *cells = line.strip("| ").split(" | ")
        table[package, step, task] = dict(zip(probes, cells, strict=True))
    found = measured()
    assert list(table) == list(found)
    for row, cells in table.items():
        for probe, cell in cells.items():
            seen = found[row].get(probe, "-")
            expected = seen if re.fullmatch(r"[0-9.]+|-", seen) else "error"
            assert cell == expected, (row, probe)


def test_what_was_learned_is_in_the_measurement():
    found = measured()
    without = found["skada", "none", "reactor"]
    learning = found["skada", "TransferSubspaceLearning", "reactor"]
    assert all(learning[probe] == without[probe] for probe in ("accuracy", "rows", "unit", "class missing"))
    assert found["skada", "OTLabelProp", "reactor"]["rows"] == "34.2"
    assert found["skada", "JCPOTLabelProp", "hospitals"]["unit"] == "75.0"
    for (package, step, _), probes in found.items():
        looks = any(name in step for name in ("TLRotate", "MDWM", "no domain_weight"))
        assert (float(probes.get("target labels", 0)) > 0) == looks, (package, step)
        assert "arrays" not in probes
        assert float(probes.get("one at a time", 0)) == 0
        assert probes.get("state", "none") in ("none", "warnings")
