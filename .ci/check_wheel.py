"""Checks what the installed wheel of msda-bench holds: its packages, their type marks and data, and nothing else."""

from __future__ import annotations

import sys
from importlib.metadata import files
from pathlib import Path

PACKAGES = {"msda_bench", "msda_bench_builtin", "msda_bench_dask", "msda_bench_report"}
ROOT = Path(__file__).parents[1]
CLONE = ROOT / "suites"
TABLES = {path.name for path in ROOT.glob("msda_bench/suite/published/*.csv")}
REFERENCE = {path.name for path in ROOT.glob("msda_bench/reference/*.json.gz")}
SUITES = {path.relative_to(CLONE).as_posix() for path in CLONE.rglob("*.yaml")}


def main() -> int:
    """0 if the wheel holds what it should, 1 with a line on what is wrong."""
    paths = [path for path in files("msda-bench") or [] if path.parts[0] != ".." and path.suffix != ".pyc"]
    folders = {path.parts[0] for path in paths if not path.parts[0].endswith(".dist-info")}
    typed = {path.parts[0] for path in paths if path.name == "py.typed"}
    tables = {path.name for path in paths if path.match("msda_bench/suite/published/*.csv")}
    if tables != TABLES:
        print(f"the published tables are {sorted(tables)}, not {sorted(TABLES)}", file=sys.stderr)
    suites = {"/".join(path.parts[2:]) for path in paths if path.parts[:2] == ("msda_bench", "suites")}
    if suites != SUITES:
        print(f"the wheel has other suites than suites/: {sorted(suites ^ SUITES)}", file=sys.stderr)
    reference = {path.name for path in paths if path.match("msda_bench/reference/*")}
    if reference != REFERENCE:
        print(f"the wheel has other references: {sorted(reference ^ REFERENCE)}", file=sys.stderr)
        return 1
    if folders != PACKAGES:
        print(f"the wheel holds {sorted(folders)}, not {sorted(PACKAGES)}", file=sys.stderr)
    if typed != PACKAGES:
        print(f"py.typed is in {sorted(typed)}, not in {sorted(PACKAGES)}", file=sys.stderr)
    return int(folders != PACKAGES or typed != PACKAGES or tables != TABLES or suites != SUITES)


if __name__ == "__main__":
    sys.exit(main())
