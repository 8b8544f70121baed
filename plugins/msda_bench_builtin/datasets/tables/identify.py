"""Looks through a table of the user's before its first suite: what is odd in it, and which columns to leave out."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, DataError, Identified
from msda_bench_builtin.datasets.tables.columns import plan_of
from msda_bench_builtin.datasets.tables.parts import NoLabelsError, OneClassError
from msda_bench_builtin.datasets.tables.read import Column, listed
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile

_FEW = range(3, 11)
"""A number with so many values may be a code of a category; with two it makes no difference."""
_SHOWN = 10
_CODED = 50
"""A column of numbers and texts with at most so many values is taken for a category."""
_REPAIRS = 500
"""Domains of one class that are left out, one after the other."""
_BASELINES = {"logistic": "logistic_regression", "boosting": "gradient_boosting", "forest": "random_forest"}
_BOOSTED = 2000
"""Columns times classes for which boosting takes seconds rather than minutes."""
_ALPHA = 0.05
"""An exact test of n seeds can reach 2 / 2^n at best, times the number of comparisons."""
_ANSWERS = 5
"""Seeds of a suite whose targets have no labels, where nothing is tested."""
NO_LABEL = "(no label)"
_METHODS = (
    "methods: # SRC and scikit-learn's do not adapt; TAR learns from the target's labels, which you would not have"
)
_WORDS = 3
"""Texts of so many words on average may be sentences."""
_SHIFT = 0.2
"""Shares of a class that differ by more between domains call for the mean over classes."""


@dataclass
class Findings:
    """What a first suite should do with the columns, and why.

    Attributes:
        drop: columns to leave out.
        categories: columns of numbers and texts that are categories.
        lines: for the user, a line each.
    """

    drop: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def look_through(path: Path, columns: Mapping[str, Column], label: Column, text: str | None) -> Findings:
    """Judges each input column alone.

    Raises:
        DataError: none is left.
    """
    import pandas as pd

    findings = Findings()
    used = {name: column for name, column in columns.items() if name != text and len(column.texts) > _constant(column)}
    # A copy of a row shows nothing that the row itself does not; a single column has no rows that differ otherwise.
    codes_of = {name: column.codes for name, column in columns.items()} | {NO_LABEL: label.codes}
    counted = np.ones(len(label.codes), bool) if len(columns) == 1 else ~pd.DataFrame(codes_of).duplicated().to_numpy()
    for name, column in used.items():
        if tells(column, label, counted):
            findings.drop.append(name)
            what = f"each value of column {name!r} has one label alone, so it is in `drop`"
            findings.lines.append(f"leak: {what}; take it out only if it is known before the label is")
        else:
            _judge(path, name, column, findings)
    if used and text is None and used.keys() <= {*findings.drop}:
        raise DataError(f"{path}: no column is left to learn from", *(f"{path}: {line}" for line in findings.lines))
    gaps = [f"{name} {100 * share:.0f} %" for name, column in used.items() if (share := (column.codes < 0).mean())]
    codes = [
        name for name, column in used.items() if name not in {*findings.drop, *findings.categories} and _is_code(column)
    ]
    if gaps:
        findings.lines.append(f"missing: {listed(gaps, 40)}")
    if codes:
        findings.lines.append(f"numbers of few values: {listed(codes, 40)}; name those that are codes in `categories`")
    return findings


def _constant(column: Column) -> int:
    """Texts of a column that is left out in any case: none, or one in all rows."""
    return int((column.codes >= 0).all())


def _judge(path: Path, name: str, column: Column, findings: Findings) -> None:
    try:
        plan_of(path, {name: column}, (), None)
    except DataError as error:
        reason, _, remedy = error.lines[0].removeprefix(f"{path}: ").partition("; ")
        category = np.isnan(column.numbers()).any() and len(column.texts) <= _CODED
        (findings.categories if category else findings.drop).append(name)
        damaged = not category and (column.has_commas() or not np.isnan(column.numbers()).all())
        lost = f"; to learn from it {remedy.partition(',')[0]} (a missing value is empty or NA)" if damaged else ""
        words = np.mean([len(text.split()) for text in column.texts])
        read = "; to learn from its words name it by --text" if not category and words >= _WORDS else ""
        findings.lines.append(f"odd: {reason}, so it is in {'`categories`' if category else '`drop`'}{lost}{read}")


def _is_code(column: Column) -> bool:
    numbers = column.numbers()
    return len(numbers) in _FEW and not (numbers % 1).any()


def identified(data: FromFile, params: Mapping[str, Any], lines: Sequence[str]) -> Identified:
    """What `data identify` says of a file, and its first suite, which leaves out what cannot be used.

    Domains without any label are the targets of that suite unless `unlabelled` is "drop".

    Args:
        data: the dataset, with its file.
        params: the parameters that differ from the defaults, without the file.
        lines: what was found in the columns.

    Raises:
        DataError: the file cannot be used.
    """
    notes = list(lines)
    read, more = _readable(data, params.get("unlabelled", "target"), notes)
    labelled = {name: rows for name, rows in read.rows.items() if name not in read.unlabelled}
    task, of = "classification" if read.classes else "regression", shares(labelled, read.y, read.classes)
    if read.predictions is not None and of:
        rows = np.concatenate(list(labelled.values()))
        right = 100 * (read.predictions[rows].argmax(1) == read.y[rows]).mean()
        notes.append(f"given predictions: right in {right:.0f} % of the rows with a label")
    if read.unlabelled:
        names = ", ".join(read.unlabelled)
        notes.append(
            f"targets without labels: {names}; how good a method is there cannot be known, and validators choose"
        )
        more |= {} if read.shared else {"protocol": "transductive"}
    if read.shared:
        notes.append("groups have rows in several domains, so a quarter of the target is the test")
        more["test"] = 0.25
    total = sum(map(len, read.rows.values()))
    what = f"{total} rows of {len(read.rows)} domains, {task}" + (f", {len(read.classes)} classes" if of else "")
    installed = importlib.util.find_spec("sklearn") is not None and len(read.input.shape) == 1
    wide = read.input.shape[0] * max(1, len(read.classes)) > _BOOSTED
    baselines = (*(("logistic",) if of else ()), *(() if wide else ("boosting",)), "forest") if installed else ()
    balanced = bool(of) and shifted(of) and not read.unlabelled
    suite = first_suite(
        read.unlabelled,
        len(labelled),
        classes=bool(of),
        balanced=balanced,
        baselines=baselines,
        given=data.gives_predictions,
    )
    every = {"file": data.file, **{name: value for name, value in params.items() if name != "unlabelled"}, **more}
    kept = (*notes, *(read.plan.lines() if read.plan else ()), *share_lines(of, read.classes, balanced=balanced))
    counts = {
        **row_count(labelled, read.y, read.classes),
        **{name: {NO_LABEL: len(read.rows[name])} for name in read.unlabelled},
    }
    return Identified(what, counts, kept, every, suite=suite)


def _readable(data: FromFile, unlabelled: str, notes: list[str]) -> tuple[Contents, dict[str, Any]]:
    """What the file holds without what cannot be used, and the parameters that leave it out; `notes` says why.

    Raises:
        DataError: the file cannot be used.
    """
    more: dict[str, Any] = {}
    data = replace(data, unlabelled="refuse")
    for _ in range(_REPAIRS):
        try:
            read = data.contents()
            break
        except NoLabelsError as error:
            more["unlabelled"] = unlabelled
            notes.append(f"no label: {error.what}; rows without one are left out")
        except OneClassError as error:
            more["leave_out"] = (*more.get("leave_out", ()), error.domain)
            notes.append(f"one class: {error.what}; this domain is left out")
        data = replace(data, **more)
    else:
        read = data.contents()
    if "unlabelled" in more and not read.unlabelled:
        more["unlabelled"] = "drop"
    return read, more


def tells(column: Column, label: Column, counted: Array) -> bool:
    """Whether each value of a column, with two counted rows on average, has one label alone, and labels differ."""
    there = (column.codes >= 0) & (label.codes >= 0)
    pairs = np.unique(np.stack([column.codes[there], label.codes[there]]), axis=1)
    values, labels = np.unique(pairs[0]), np.unique(pairs[1])
    one_label = pairs.shape[1] == len(values) and len(labels) > 1
    return one_label and 2 * len(values) <= int((there & counted).sum())


def shares(rows: Mapping[str, Array], y: Array, classes: tuple[str, ...]) -> dict[str, Array]:
    """The share of each class in each domain; of a regression none."""
    if not classes:
        return {}
    return {name: np.bincount(y[mine], minlength=len(classes)) / len(mine) for name, mine in rows.items()}


def share_lines(found: Mapping[str, Array], classes: tuple[str, ...], *, balanced: bool) -> Iterator[str]:
    """The shares of the first classes, and whether they differ much."""
    for name, of in found.items():
        yield f"{name}: " + ", ".join(
            f"{label} {100 * share:.0f} %" for label, share in list(zip(classes, of, strict=True))[:_SHOWN]
        )
    if balanced:
        yield "the shares of classes differ between domains, so the suite compares `balanced_accuracy`, their mean"


def shifted(found: Mapping[str, Array]) -> bool:
    """Whether the shares of a class differ much."""
    every = np.stack(list(found.values()))
    return bool((every.max(0) - every.min(0) > _SHIFT).any())


def first_suite(
    unlabelled: Sequence[str], labelled: int, *, classes: bool, balanced: bool, baselines: Collection[str], given: bool
) -> str:
    """What a first suite needs below its dataset: each domain in turn is the target, or those without labels are.

    Args:
        unlabelled: the domains without labels.
        labelled: how many others there are.
        classes: whether the task is classification.
        balanced: whether the mean over classes is compared.
        baselines: those of scikit-learn.
        given: whether the data come with predictions.
    """
    several = labelled > (1 if unlabelled else 2)
    methods = {
        "SRC": "{scheme: pooled}",
        "ensemble": "{scheme: ensemble}" if several else "",
        "CORAL": "{discrepancy: coral, mu: 1.0}" if several else "{scheme: pooled, discrepancy: coral, mu: 1.0}",
        "DANN": "{scheme: pooled, discrepancy: d_A, mu: 0.1}",
        "DARN": "{discrepancy: d_A, mu: 0.1, aggregator: {sharpmax: {gamma: 1.0}}}" if several else "",
        "BNM": "{scheme: {regularised: {by: bnm, weight: 0.1}}}" if classes and several else "",
        **{name: f"{{scheme: {scheme}}}" for name, scheme in _BASELINES.items() if name in baselines},
    }
    compared = sum(map(bool, methods.values())) - 1
    references = {
        "given": "{scheme: given, reference: true}" if given else "",
        "TAR": "{scheme: target_only, reference: true}",
    }
    methods |= {} if unlabelled else references
    rows = "\n".join(f"  {name + ':':9} {recipe}" for name, recipe in methods.items() if recipe)
    common = """\
backbone: {mlp: {hidden: [64], dropout: 0.2}}
training: {epochs: 8, steps: 30, batch: 32, optimizer: {adam: {lr: 0.003}}}
"""
    if unlabelled:
        validators, by = ("source_accuracy, bnm, snd", "bnm") if classes else ("source_risk", "source_risk")
        return f"""\
targets: {json.dumps(list(unlabelled), ensure_ascii=False)} # without labels: no score, no rank and no test can be known
seeds: {_ANSWERS} # models, whose answers can be averaged
{common}keep: [predictions] # of every row of the target; see mb.load_predictions
validators: [{validators}] # scores that need no label of the target
select: {{how: grid, budget: 3, by: {by}, space: {{training.optimizer.adam.lr: [0.001, 0.003, 0.01]}}}}
methods: # SRC and scikit-learn's do not adapt
{rows}
"""
    metric = (
        "metric: balanced_accuracy # the mean over classes, whose shares differ between domains\n" if balanced else ""
    )
    seeds = 1 + math.ceil(math.log2(compared / _ALPHA))
    return f"""\
targets: all # each domain in turn, from all others
seeds: {seeds} # splits; fewer could not show a difference after the correction for {compared} comparisons
{common}{metric}{_METHODS}
{rows}
compare: {{against: SRC}}
"""


def row_count(rows: Mapping[str, Array], y: Array, classes: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Rows of each class by domain; of a regression all rows."""
    if not classes:
        return {name: {"rows": len(mine)} for name, mine in rows.items()}
    counted: dict[str, dict[str, int]] = {}
    for name, mine in rows.items():
        of: Any = np.bincount(y[mine], minlength=len(classes)).tolist()
        counted[name] = dict(zip(classes, of, strict=True))
    return counted
