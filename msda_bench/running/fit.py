"""`msda_bench.fit`: trains one method of a suite as a model that predicts new files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from msda_bench.errors import LONGEST_LINE, BenchError, printable
from msda_bench.results.argument_checks import argument
from msda_bench.running.final import FittedMethod, as_path, few_lines, read_new, refuse_several, targets_in
from msda_bench.running.one_method import FitOptions, OneMethod
from msda_bench.suite.described import own_methods
from msda_bench.suite.spec import MAX_SEED


def fit(
    suite: str | Path,
    method: str,
    target: str | Path | pd.DataFrame | Mapping[str, Any] | None = None,
    *,
    results: str | Path = "results",
    seed: int | None = None,
    device: str = "auto",
    fetch: bool = False,
    trust_files: bool = False,
    quiet: bool = False,
    methods: Mapping[str, Any] | None = None,
) -> FittedMethod:
    """Trains a method of a suite on every labelled row but official test rows, as a model that predicts new files.

    Args:
        suite: a file, such as `mine.yaml`, or a suite that comes with msda-bench.
        method: the name of one of its methods; not of one that learns from the target's labels.
        target: the unlabelled rows of the domain to adapt to: a file or folder, a data frame or a mapping of arrays. A
            method that looks at no target needs none.
        results: parent of the suite's result folder: where the suite selects settings, the method gets those that were
            selected most often, over targets and seeds.
        seed: of all draws; None for the suite's first.
        device: auto, cpu or cuda.
        fetch: whether missing data may be downloaded.
        trust_files: whether the code of Python files that the suite names as estimators may run.
        quiet: print no progress.
        methods: your own estimators by name, as for `msda_bench.run`.

    Returns:
        The model: `predict`, `predict_proba` and `answers` take new files. `joblib.dump` stores it.

    Raises:
        TypeError, ValueError: an argument has another type, or is out of range.
        BenchError: the suite, the method, a plugin, the data or the target cannot be used, or training diverged.
    """
    if (seed := argument("seed", seed, int | None)) is not None and not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed: must be a whole number from 0 to 2**31 - 1, not {seed}")
    in_memory = isinstance(target, pd.DataFrame) or (isinstance(target, Mapping) and bool(target))
    rows_of = target if in_memory else argument("target", target, str | Path | None)
    options = FitOptions(
        suite=Path(argument("suite", suite, str | Path)),
        method=argument("method", method, str),
        results=Path(argument("results", results, str | Path)),
        seed=seed,
        device=argument("device", device, Literal["auto", "cpu", "cuda"]),
        fetch=argument("fetch", fetch, bool),
        trust_files=argument("trust_files", trust_files, bool),
        estimators=own_methods(methods) if isinstance(methods, Mapping) else argument("methods", methods, None),
        quiet=argument("quiet", quiet, bool),
    )
    trained = OneMethod(options, _report, _warn)
    if rows_of is None:
        if trained.sees_target:
            raise BenchError(f"{method}: adapts to the new domain; give its rows as `target`, without labels")
        return trained.fit(None, None)
    with as_path(rows_of) as path:
        rows = read_new(trained.reader, path)
    if not trained.sees_target:
        return trained.fit(None, None)
    targets = targets_in(rows, path)
    refuse_several(method, targets, path)
    for line in (*trained.doubts_about(rows), *few_lines(method, targets)):
        warnings.warn(printable(line), stacklevel=2)
    return trained.fit(next(iter(targets)), rows.data)


def _report(line: str) -> None:
    print(f"msda-bench: {printable(line, LONGEST_LINE)}", file=sys.stderr)


def _warn(line: str) -> None:
    _report(f"warning: {line}")
