"""`msda-bench predict SUITE NEW`: trains one method on all labelled rows, and answers the rows of a new file."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from msda_bench.api import Array, NewRows
from msda_bench.atomic import named, written
from msda_bench.cli.lines import say, warn_of
from msda_bench.cli.one_method import OneMethod, Wish
from msda_bench.errors import BenchError, printable
from msda_bench.results.door import argument
from msda_bench.results.files import refuse_result_folders
from msda_bench.running.final import (
    FittedMethod,
    answers_frame,
    as_path,
    few_lines,
    read_new,
    refuse_several,
    rows_at,
    targets_in,
)
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
    wish = Wish(
        suite=Path(argument("suite", suite, str | Path)),
        method=argument("method", method, str),
        results=Path(argument("results", results, str | Path)),
        seed=seed,
        device=argument("device", device, Literal["auto", "cpu", "cuda"]),
        fetch=argument("fetch", fetch, bool),
        trust_files=argument("trust_files", trust_files, bool),
        added=own_methods(methods) if isinstance(methods, Mapping) else argument("methods", methods, None),
    )
    trained = OneMethod(wish, quiet=argument("quiet", quiet, bool))
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


def command(args: argparse.Namespace) -> int:
    """Writes the answers for a new file."""
    _refuse_existing(args.out)
    refuse_result_folders(args.out, what="--out")
    wish = Wish(args.suite, args.method, args.results, args.seed, args.device, args.fetch, args.trust_files)
    method = OneMethod(wish, quiet=args.quiet)
    rows = read_new(method.reader, args.new)
    outputs = _adapted(method, rows, args.new) if method.sees_target else _same(method, rows, args.new)
    frame = answers_frame(rows, method.reader.classes, outputs)
    with named(args.out, "cannot be written"), written(args.out, lambda: _refuse_existing(args.out)) as stream:
        stream.write(frame.to_csv(index=False, lineterminator="\n").encode())
    say(f"wrote {args.out}: {len(frame)} answers of {args.method}")
    return 0


def _same(method: OneMethod, rows: NewRows, path: Path) -> Array:
    """The outputs for new rows of a model that looks at none of them."""
    warn_of(method.doubts_about(rows))
    outputs = method.fit(None, None).outputs(rows.data)
    warn_of(method.doubts(path.name, outputs))
    return outputs


def _adapted(method: OneMethod, rows: NewRows, path: Path) -> Array:
    """The outputs for new rows of a model for each of their domains."""
    targets = targets_in(rows, path)
    warn_of([*method.doubts_about(rows), *few_lines(method.name, targets)])
    parts = []
    for target, places in targets.items():
        mine = rows_at(rows.data, places)
        parts.append(method.fit(target, mine).outputs(mine))
        warn_of(method.doubts(target, parts[-1]))
    order = np.argsort(np.concatenate([*targets.values()]))
    made: Array = np.concatenate(parts)[order]
    return made


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise BenchError(f"{path}: already there; name another file with --out, or move this one")
