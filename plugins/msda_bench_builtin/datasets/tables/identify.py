"""Looks through a table of the user's before its first suite: what is odd in it, and which columns to leave out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import DataError, Identified
from msda_bench_builtin.datasets.first_rows import control_rows, needed_seeds, written
from msda_bench_builtin.datasets.first_targets import first_targets
from msda_bench_builtin.datasets.sizes import Imbalance, few_examples
from msda_bench_builtin.datasets.tables.findings import MEASURED, Look
from msda_bench_builtin.datasets.tables.folder import not_read
from msda_bench_builtin.datasets.tables.judge import judge, used_columns
from msda_bench_builtin.datasets.tables.official import official_train
from msda_bench_builtin.datasets.tables.parts import is_regression, option
from msda_bench_builtin.datasets.tables.read import Column, listed, names_in
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile

_FEW = range(3, 11)
"""A number with so many values may be a code of a category; with two it makes no difference."""
_CODED = 50
"""A column with more values is not proposed as that of domains."""
_DOMAINS = {"domain", "site", "source", "hospital", "centre", "center", "place", "location", "device", "batch", "year"}
_LABELS = {"label", "labels", "y", "target", "class", "outcome", "diagnosis", "disease", "response"}
"""Usual names of columns."""
_MLP = "{mlp: {hidden: [64], dropout: 0.2}}"
_TRAINING = "training: {epochs: 8, steps: 30, batch: 32, optimizer: {adam: {lr: 0.003}}}"
_COMPARISON = """\
targets: {targets}
seeds: {seeds} # splits; fewer could not show a difference after the correction for {compared} comparisons
{common}methods: # SRC and plain models do not adapt; TAR and JOINT learn from the target's labels, which you lack
{rows}
compare: {{pairs: baseline}}
"""
_ANSWERS = """\
targets: {targets} # without labels: no score, no rank and no test can be known
seeds: 5 # models, whose answers can be averaged
{common}keep: [predictions] # of every row of the target; see mb.load_predictions
validators: [{validators}] # scores that need no label of the target
select: {{how: grid, budget: 3, by: {by}, space: {{training.optimizer.adam.lr: [0.001, 0.003, 0.01]}}}}
methods: # SRC and plain models do not adapt
{rows}
"""
NO_LABEL = "(no label)"
_MANY = 20
"""More classes that are whole numbers may be meant as numbers."""


def look_through(look: Look, text: str | None) -> tuple[dict[str, Any], list[str]]:
    """Judges the columns of inputs: the parameters that answer the doubts about them, and a line on each.

    Raises:
        DataError: none is left.
    """
    used = used_columns(look, text)
    kinds: dict[str, list[str]] = {"drop": [], "categories": []}
    more: dict[str, Any] = {}
    found = judge(look, text)
    for finding in found:
        if finding.fate in kinds:
            kinds[finding.fate].append(finding.column)
        elif finding.fate == "group":
            more["group"] = finding.column
        elif finding.fate == "test":
            more["test_rows"] = finding.column
    lines = [finding.line(answered=finding.fate != "missing") for finding in found]
    roles = {*names_in(more.get("group", ""), used), *(finding.name for finding in found if finding.fate == "test")}
    judged = {*kinds["drop"], *kinds["categories"], *roles}
    if used and text is None and used.keys() <= {*kinds["drop"], *roles}:
        raise DataError(f"{look.path}: no column is left to learn from", *(f"{look.path}: {line}" for line in lines))
    gaps = [f"{name} {100 * share:.0f} %" for name, column in used.items() if (share := (column.codes < 0).mean())]
    few = [name for name, of in used.items() if len(of.numbers) in _FEW and name not in judged]
    codes = [name for name in few if not (used[name].numbers % 1).any()]
    if gaps:
        lines.append(f"missing: {listed(gaps, 40)}")
    if codes:
        lines.append(f"numbers of few values: {listed(codes, 40)}; name those that are codes in `categories`")
    return {kind: tuple(names) for kind, names in kinds.items() if names} | more, lines


def unnamed(path: Path, columns: Mapping[str, Column]) -> DataError:
    """What to say of a table whose domain and label are not named: its columns, and which these may be."""
    said = []
    for name, column in columns.items():
        kind = "texts" if np.isnan(column.numbers).any() else "numbers"
        said.append(f"{name} ({f'{len(column.texts)} {kind}' if column.texts else 'empty'})")
    several = [name for name, of in columns.items() if 1 < len(of.texts) <= min(_CODED, len(of.codes) // MEASURED)]
    few = [name for name in several if np.isnan(columns[name].numbers).all()] or several or ["COLUMN"]
    domain = next((name for name in few if name.casefold() in _DOMAINS), few[0])
    others = [name for name in columns if name != domain] or ["COLUMN"]
    label = next((name for name in others if name.casefold() in _LABELS), others[-1])
    how = shlex.join(["--domain", domain, "--label", label])
    what = f"its columns are {listed(said)}"
    return DataError(f"{path}: a table needs the columns of domains and of labels, such as `{how}`; {what}")


def given_by(columns: Mapping[str, str]) -> dict[str, Any]:
    """What the user says of a file, as parameters of a dataset."""
    given: dict[str, Any] = {
        name: value for name, value in columns.items() if name not in {"unlabelled", "task", "test"}
    }
    given |= {"test_rows": columns["test"]} if columns.get("test") else {}
    given |= {"mode": columns["task"]} if "task" in columns else {}
    given |= {"missing": tuple(filter(None, columns["missing"].split(",")))} if "missing" in columns else {}
    return given


def repaired(data: FromFile, unlabelled: str) -> tuple[Any, dict[str, Any], list[str]]:
    """The dataset without the rows and domains that cannot be used, the parameters that leave them out, and why.

    Domains without any label are the targets of the suite unless `unlabelled` is "drop".

    Raises:
        DataError: the file cannot be used, or it is in doubt how its labels are meant.
    """
    roles = data.roles()
    domain, label = roles.domain.named, roles.label.named
    labels = {text: label.codes[domain.codes == place] for place, text in enumerate(domain.texts)}
    used = np.unique(label.codes[label.codes >= 0])
    regression = is_regression(label.numbers[used], data.mode)
    several = {code for of in labels.values() if len(kinds := np.unique(of[of >= 0])) > 1 for code in kinds.tolist()}
    more: dict[str, Any] = {}
    notes: list[str] = []
    out: list[str] = []
    if lacking := int((label.codes < 0).sum()):
        where = [text for text, of in labels.items() if len(of) > 1 and (of < 0).all()]
        what = f"{lacking} rows have no {roles.names[1]}{roles.hint(roles.label)}"
        what += f"; domains without any: {listed(where)}" if where else ""
        notes.append(f"no label: {what}; rows without one are left out")
        more["unlabelled"] = unlabelled if where else "drop"
    for text, of in labels.items():
        kinds = np.unique(of[of >= 0])
        if len(of) == 1 or (of >= 0).sum() == 1:
            notes.append(f"one row: domain {text!r} has 1 row, such as a sum; this domain is left out")
        elif len(kinds) == 1:
            what = f"domain {text!r} has one {'number' if regression else 'class'} alone, {label.texts[kinds[0]]!r}"
            if regression or kinds[0] not in several:
                remedy = f"if that stands for no label, {option({*roles.gaps, label.texts[kinds[0]]})} makes a target"
                raise DataError(f"{data.file}: {what}; {remedy} of the domain; otherwise remove its rows")
            notes.append(f"one class: {what}; this domain is left out")
        else:
            continue
        out.append(text)
    more |= {"leave_out": tuple(out)} if out else {}
    return replace(data, **more), more, notes


def identified(data: FromFile, params: Mapping[str, Any], lines: Sequence[str], network: str = _MLP) -> Identified:
    """What `data identify` says of a file, and its first suite.

    `params` are those that differ from the defaults, without the file, `lines` what was found before, and `network` the
    suite's backbone; a DataError says why the file cannot be used.
    """
    read, every = data.contents(), {"file": data.file, **params}
    every |= {"task": every.pop("mode")} if "mode" in every else {}
    notes, classes = list(lines), read.classes
    labelled = {name: read.y[of] for name, of in read.rows.items() if name not in read.unlabelled}
    doubts = [*read.doubts()]
    if data.mode == "auto" and len(classes) > _MANY and all(name.isdecimal() for name in classes):
        what = f"the label has {len(classes)} different whole numbers, taken for classes"
        doubts.append(f"{what}; say --task classification, or --task regression to predict the number")
    counted = [np.bincount(y, minlength=len(classes)) if classes else np.array([len(y)]) for y in labelled.values()]
    rows_of = [dict(zip(classes or ("rows",), of.tolist(), strict=True)) for of in counted]
    counts = dict(zip(labelled, rows_of, strict=True))
    counts |= {name: {NO_LABEL: len(read.rows[name])} for name in read.unlabelled}
    if read.unlabelled:
        unknown = "how good a method is there cannot be known, and validators choose"
        notes.append(f"targets without labels: {listed(read.unlabelled)}; {unknown}")
        every |= {} if read.shared else {"protocol": "transductive"}
    if classes and read.groups is not None:
        every["stratify"] = "shares"
    if read.test is not None:
        every["train"], line = official_train(read.rows, read.test, read.groups)
        notes.append(line)
    elif read.shared:
        notes.append("groups have rows in several domains, so a quarter of the target is the test")
        every["test"] = 0.25
    notes += [*read.remarks(), *(read.plan.lines() if read.plan else ())]
    if not read.unlabelled:
        notes += few_examples(counts)
    imbalance = Imbalance.of(counts, classes) if classes and not read.unlabelled else None
    if imbalance is not None:
        notes.append(imbalance.line)
    targets, chosen = first_targets([*labelled])
    notes += [] if read.unlabelled else chosen
    metric, given = imbalance.yaml if imbalance else "", data.gives_predictions
    suite = _first_suite(read, len(labelled), targets, metric=metric, given=given, network=network)
    said = _read_of(data, read, params.get("drop", ()))
    task = f"classification, {len(classes)} classes" if classes else "regression"
    what = f"{sum(map(len, read.rows.values()))} rows of {len(read.rows)} domains, {task}"
    return Identified(what, counts, tuple(notes), every, suite=suite, doubts=tuple(doubts), read=said)


def _read_of(data: FromFile, read: Contents, drop: Sequence[str]) -> str:
    """How many rows and columns are read, and what is not."""
    path, plan = Path(data.file), read.plan
    line = f"read {sum(map(len, read.rows.values()))} of {len(read.y)} rows"
    left = [] if plan is None else [*drop, *(name for name, _ in plan.dropped)]
    if plan is not None:
        used = len(plan.kinds) + (plan.text is not None)
        line += f", {used} of {used + len(left)} columns of inputs"
    if path.is_dir():
        left += not_read(path, data.reads())
    return line + (f"; not read: {listed(left, 40)}" if left else "")


def _first_suite(read: Contents, labelled: int, targets: str, *, metric: str, given: bool, network: str) -> str:
    """What a first suite needs below its dataset: each domain in turn is the target, or those without labels are."""
    unlabelled, classes = read.unlabelled, bool(read.classes)
    several = labelled > (1 if unlabelled else 2)
    columns = read.input.shape[0] if len(read.input.shape) == 1 else 0
    common = f"backbone: {network}\n{_TRAINING}\n"
    recipes = (
        ("SRC", "{scheme: pooled}", True),
        ("ensemble", "{scheme: ensemble}", several),
        ("CORAL", f"{{{'' if several else 'scheme: pooled, '}discrepancy: coral, mu: 1.0}}", True),
        ("DANN", "{scheme: pooled, discrepancy: d_A, mu: 0.1}", True),
        ("DARN", "{discrepancy: d_A, mu: 0.1, aggregator: {sharpmax: {gamma: 1.0}}}", several),
        ("BNM", "{scheme: {regularised: {by: bnm, weight: 0.1}}}", classes and several),
        ("AdaBN", "{scheme: adabn}", "norm: batch" in network),
        *((*row, True) for row in control_rows(columns, len(read.classes), several=several)),
        ("given", "{scheme: given, reference: true}", given and not unlabelled),
        ("TAR", "{scheme: target_only, reference: true}", not unlabelled),
        ("JOINT", "{scheme: joint, reference: true}", several and not unlabelled),
    )
    kept = [(name, recipe) for name, recipe, used in recipes if used]
    rows = written(kept)
    if unlabelled:
        targets = json.dumps(list(unlabelled), ensure_ascii=False)
        validators, by = ("source_accuracy, bnm, snd", "bnm") if classes else ("source_risk", "source_risk")
        return _ANSWERS.format(targets=targets, common=common, validators=validators, by=by, rows=rows)
    seeds, compared = needed_seeds(kept)
    common += metric
    return _COMPARISON.format(targets=targets, seeds=seeds, compared=compared, common=common, rows=rows)
