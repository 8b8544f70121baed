"""Caches the analysis of a large folder until its records, the plan or the statistics change.

The file `.analysis` is a cache, never a result: one line with a sha256 of the rest, then JSON. Its key is a digest of
the runs, of this code and its libraries, and of properties of plan.json that only the kernel sets, so that a downloaded
folder cannot contain a forged analysis. A file that is damaged or belongs to other runs is ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter

from msda_bench import __version__
from msda_bench.results.across import Across
from msda_bench.results.leaderboard import Analysis, analyse
from msda_bench.store.files import read_cache, read_file, write_cache
from msda_bench.store.index import FEWEST, stamp_of
from msda_bench.store.store import PLAN
from msda_bench.suite.plan_json import plan_to_json

ANALYSIS = ".analysis"
_LIBRARIES = ("numpy", "pandas", "tabulate")
"""Libraries that affect numbers and their text."""
_MOST = 1 << 28
"""The maximum size of the file in bytes."""


def analysed(runs: pd.DataFrame) -> Analysis:
    """Analyses all runs of a folder, or reads the analysis back if it was kept for exactly these runs."""
    found = _read(runs)
    if found is None:
        found = analyse(runs)
        keep(Path(runs.attrs["folder"] or ""), found, {})
    return found


def keep(folder: Path, analysis: Analysis, files: Mapping[str, bytes]) -> None:
    """Keeps the analysis of a folder's own runs, with digests of its files, if there are many runs.

    A folder that cannot be written is skipped.
    """
    if analysis.runs.attrs["folder"] != str(folder) or len(analysis.runs) < FEWEST:
        return
    document = {
        "of": _digest(analysis.runs),
        "leaderboard": _plain(analysis.leaderboard),
        "comparisons": _plain(analysis.comparisons),
        "across": TypeAdapter(Across | None).dump_python(analysis.across),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    write_cache(folder / ANALYSIS, json.dumps(document).encode())


def has_parquet() -> bool:
    """Whether runs.parquet can be written."""
    return find_spec("pyarrow") is not None


def are_written(folder: Path, analysis: Analysis) -> bool:
    """Whether the folder has all files of an analysis that was read back, unchanged."""
    files = analysis.files or {}
    try:
        return bool(files) and all(
            hashlib.sha256(read_file(folder / name)).hexdigest() == digest for name, digest in files.items()
        )
    except OSError:
        return False


def _read(runs: pd.DataFrame) -> Analysis | None:
    folder = runs.attrs.get("folder")
    if folder is None or len(runs) < FEWEST:
        return None
    data = read_cache(Path(folder, ANALYSIS), _MOST)
    if data is None:
        return None
    try:
        found = json.loads(data)
        if found["of"] != _digest(runs):
            return None
        across = TypeAdapter(Across | None).validate_python(found["across"])
        board, pairs = (_frame(found[name], runs) for name in ("leaderboard", "comparisons"))
        return Analysis(runs, board, pairs, across, found["files"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _digest(runs: pd.DataFrame) -> str:
    """A digest of everything on which an analysis depends."""
    plan, faults = replace(runs.attrs["plan"], cells=()), runs.attrs["faults"]
    parts: list[Any] = [stamp_of(f"{runs.attrs['folder']}/{PLAN}"), plan_to_json(plan), list(map(str, runs))]
    parts += [sorted(faults.damaged), sorted(faults.conflicting), runs.attrs["fault_lines"], has_parquet()]
    parts += [__version__, *map(version, _LIBRARIES)]
    found = hashlib.sha256(json.dumps(parts).encode())
    found.update(pd.util.hash_pandas_object(runs, index=False).to_numpy().tobytes())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _plain(frame: pd.DataFrame) -> dict[str, tuple[str, list[Any]]]:
    """The type and values of each column, with missing values as None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return {str(name): (str(frame[name].dtype), plain[name].tolist()) for name in frame}


def _frame(columns: dict[str, tuple[str, list[Any]]], runs: pd.DataFrame) -> pd.DataFrame:
    frame = pd.DataFrame({name: pd.Series(values, dtype=kind) for name, (kind, values) in columns.items()})
    frame.attrs = dict(runs.attrs)
    return frame
