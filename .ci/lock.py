"""Writes requirements.lock, each version with the sha256 of the file that pip took for it, from pip's own report.

pip install --dry-run --ignore-installed --report report.json -c constraints.txt '.[parquet,skada,sklearn,transport]'
python .ci/lock.py report.json > requirements.lock
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = """\
# What reproduces the recorded environment, with the sha256 of each file:
# python -m pip install --require-hashes -r requirements.lock
# Of {python} on {system} ({machine}) alone: other systems have other files, and the build of torch is the one named.
# Written by .ci/lock.py from pip's report; constraints.txt has the same versions for every system.
"""


def lines(report: dict[str, Any]) -> list[str]:
    """A line for each distribution but the project itself, sorted by name.

    Raises:
        SystemExit: pip names no sha256 of a file.
    """
    pinned = []
    for part in report["install"]:
        name, version = part["metadata"]["name"], part["metadata"]["version"]
        if "dir_info" in part["download_info"]:
            continue
        sha256 = part["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if sha256 is None:
            raise SystemExit(f"{name}: pip reports no sha256 of its file")
        pinned.append(f"{name}=={version} --hash=sha256:{sha256}")
    return sorted(pinned, key=str.lower)


if __name__ == "__main__":
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    of = report["environment"]
    python = f"{of['platform_python_implementation']} {of['python_version']}"
    head = HEAD.format(python=python, system=of["platform_system"], machine=of["platform_machine"])
    print(head + "\n".join(lines(report)))
