"""Checks what the installed wheel of msda-bench holds: both packages, their type marks, and nothing else."""

from __future__ import annotations

import sys
from importlib.metadata import files

PACKAGES = {"msda_bench", "msda_bench_builtin"}


def main() -> int:
    """0 if the wheel holds what it should, 1 with a line on what is wrong."""
    paths = [path for path in files("msda-bench") or [] if path.parts[0] != ".." and path.suffix != ".pyc"]
    folders = {path.parts[0] for path in paths if not path.parts[0].endswith(".dist-info")}
    typed = {path.parts[0] for path in paths if path.name == "py.typed"}
    if folders != PACKAGES:
        print(f"the wheel holds {sorted(folders)}, not {sorted(PACKAGES)}", file=sys.stderr)
    if typed != PACKAGES:
        print(f"py.typed is in {sorted(typed)}, not in {sorted(PACKAGES)}", file=sys.stderr)
    return int(folders != PACKAGES or typed != PACKAGES)


if __name__ == "__main__":
    sys.exit(main())
