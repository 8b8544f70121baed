"""`msda-bench predict SUITE NEW`: trains one method on all labelled rows, and predicts the rows of a new file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, NewRows
from msda_bench.atomic import named, written
from msda_bench.cli.lines import say, warn, warn_of
from msda_bench.errors import BenchError
from msda_bench.results.files import refuse_result_folders
from msda_bench.running.final import answers_frame, few_lines, read_new, rows_at, targets_in
from msda_bench.running.one_method import FitOptions, OneMethod


def command(*, new: Path, out: Path, **given: Any) -> int:
    """Writes the predictions for a new file; also takes the fields of `FitOptions`."""
    _refuse_existing(out)
    refuse_result_folders(out, what="--out")
    method = OneMethod(FitOptions(**given), warn, lambda line: warn(f"warning: {line}"))
    rows = read_new(method.reader, new)
    outputs = _adapted(method, rows, new) if method.sees_target else _same(method, rows, new)
    frame = answers_frame(rows, method.reader.classes, outputs)
    with named(out, "cannot be written"), written(out, lambda: _refuse_existing(out)) as stream:
        stream.write(frame.to_csv(index=False, lineterminator="\n").encode())
    say(f"wrote {out}: {len(frame)} answers of {method.name}")
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
