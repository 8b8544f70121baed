"""Looks through a user's file and makes its first suite: doubtful columns, domains to leave out, methods."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from msda_bench.api import Array, DataError, Identified
from msda_bench_builtin.datasets.first_suite import Recipes, Settings, about_targets, answers, comparison, plain_methods
from msda_bench_builtin.datasets.sizes import Imbalance, few_examples
from msda_bench_builtin.datasets.tables.column_doubts import doubts_about, used_columns
from msda_bench_builtin.datasets.tables.findings import MEASURED, Look
from msda_bench_builtin.datasets.tables.folder import not_read
from msda_bench_builtin.datasets.tables.official import official_train
from msda_bench_builtin.datasets.tables.parts import Roles, is_regression, option
from msda_bench_builtin.datasets.tables.read import Column
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile
from msda_bench_builtin.datasets.tables.texts import names_in, names_text

_FEW = range(3, 11)
"""A number with so many values may be a code of a category; with two it makes no difference."""
_CODED = 50
"""A column with more values is not proposed as that of domains."""
_DOMAINS = {"domain", "site", "source", "hospital", "centre", "center", "place", "location", "device", "batch", "year"}
_LABELS = {"label", "labels", "y", "target", "class", "outcome", "diagnosis", "disease", "response"}
"""Usual names of columns."""
Network: TypeAlias = dict[str, dict[str, Any]]
MLP: Network = {"mlp": {"hidden": [64], "dropout": 0.2}}
_TRAINING = {"epochs": 8, "steps": 30, "batch": 32, "optimizer": {"adam": {"lr": 0.003}}}
_ROLES = {"group": "group", "test": "test_rows"}
"""The parameters of columns that are no inputs, by how a finding calls them."""
NO_LABEL = "(no label)"
_MANY = 20
"""More classes that are whole numbers may be meant as numbers."""


def column_parameters(look: Look, text: str | None) -> tuple[dict[str, Any], list[str]]:
    """Judges the columns of inputs: the parameters that answer the doubts about them, and a line on each.

    Raises:
        DataError: none is left.
    """
    used = used_columns(look, text)
    findings = doubts_about(look, text)
    lines = [finding.line(answered=finding.fate != "missing") for finding in findings]
    params: dict[str, Any] = {}
    left = {*used}
    for finding in findings:
        if finding.fate in {"drop", "categories"}:
            params[finding.fate] = (*params.get(finding.fate, ()), finding.column)
        elif finding.fate in _ROLES:
            params[_ROLES[finding.fate]] = finding.column
        if finding.fate in {"drop", *_ROLES}:
            left.difference_update(names_in(finding.name, used))
    if used and text is None and not left:
        raise DataError(f"{look.path}: no column is left to learn from", *(f"{look.path}: {line}" for line in lines))
    lines += _gaps(used)
    left.difference_update(params.get("categories", ()))
    lines += _codes({name: column for name, column in used.items() if name in left})
    return params, lines


def _gaps(columns: Mapping[str, Column]) -> list[str]:
    """A line on the columns with missing values."""
    gaps = []
    for name, column in columns.items():
        share = (column.codes < 0).mean()
        if share:
            gaps.append(f"{name} {100 * share:.0f} %")
    if not gaps:
        return []
    return [f"missing: {names_text(gaps, 40)}"]


def _codes(columns: Mapping[str, Column]) -> list[str]:
    """A line on columns of few different whole numbers."""
    codes = []
    for name, column in columns.items():
        if len(column.numbers) in _FEW and not (column.numbers % 1).any():
            codes.append(name)
    if not codes:
        return []
    return [f"numbers of few values: {names_text(codes, 40)}; name those that are codes in `categories`"]


def unnamed(path: Path, columns: Mapping[str, Column]) -> DataError:
    """What to say of a table whose domain and label are not named: its columns, and which these may be."""
    rows = len(next(iter(columns.values())).codes)
    most = min(_CODED, rows // MEASURED)
    several = [name for name, column in columns.items() if 1 < len(column.texts) <= most]
    texts = [name for name in several if np.isnan(columns[name].numbers).all()]
    domain = _called(_DOMAINS, texts or several or ["COLUMN"], 0)
    label = _called(_LABELS, [name for name in columns if name != domain] or ["COLUMN"], -1)
    how = shlex.join(["--domain", domain, "--label", label])
    held = names_text([f"{name} ({_values_of(column)})" for name, column in columns.items()])
    needs = f"a table needs the columns of domains and of labels, such as `{how}`"
    return DataError(f"{path}: {needs}; its columns are {held}")


def _called(usual: Collection[str], names: Sequence[str], otherwise: int) -> str:
    """The first column with a usual name, or the one at another place."""
    return next((name for name in names if name.casefold() in usual), names[otherwise])


def _values_of(column: Column) -> str:
    if not column.texts:
        return "empty"
    what = "texts" if np.isnan(column.numbers).any() else "numbers"
    return f"{len(column.texts)} {what}"


def parameters(options: Mapping[str, str]) -> dict[str, Any]:
    """What the user says of a file, as parameters of a dataset."""
    names = {"task": "mode", "test": "test_rows"}
    given: dict[str, Any] = {names.get(name, name): value for name, value in options.items()}
    given.pop("unlabelled", None)
    if not given.get("test_rows"):
        given.pop("test_rows", None)
    if "missing" in given:
        given["missing"] = tuple(filter(None, given["missing"].split(",")))
    return given


def identify_file(data: FromFile, path: Path, options: Mapping[str, str], given: Mapping[str, Any]) -> Identified:
    """What `data identify` says of a file that the dataset reads with the given parameters.

    Rows and domains that cannot be used are left out first. Domains without any label are the targets of the suite
    unless the option `unlabelled` is "drop".

    Raises:
        DataError: the file cannot be used, or it is in doubt how its labels are meant.
    """
    named = replace(data, file=str(path), **given)
    more, lines = _left_out(named, options.get("unlabelled", "target"))
    return replace(named, **more).looked_through({**given, **more}, lines, says_test="test" in options)


def _left_out(data: FromFile, unlabelled: str) -> tuple[dict[str, Any], list[str]]:
    """The parameters that leave out rows and domains that cannot be used, and why."""
    roles = data.roles()
    domain = roles.domain.named
    label = roles.label.named
    labels = {text: label.codes[domain.codes == place] for place, text in enumerate(domain.texts)}
    more: dict[str, Any] = {}
    notes: list[str] = []
    lacking = int((label.codes < 0).sum())
    if lacking:
        without = [text for text, codes in labels.items() if len(codes) > 1 and (codes < 0).all()]
        what = f"{lacking} rows have no {roles.names[1]}{roles.hint(roles.label)}"
        if without:
            what += f"; domains without any: {names_text(without)}"
        notes.append(f"no label: {what}; rows without one are left out")
        more["unlabelled"] = unlabelled if without else "drop"
    left_out = _useless(data, roles, labels)
    if left_out and len(labels) - len(left_out) < len(("source", "target")):
        few = f"{len(labels) - len(left_out)} of {len(labels)} domains can be used; adaptation needs two or more"
        raise DataError(f"{data.file}: {few}", *(f"{data.file}: {line}" for line in left_out.values()))
    if left_out:
        more["leave_out"] = tuple(left_out)
    return more, [*notes, *left_out.values()]


def _useless(data: FromFile, roles: Roles, labels: Mapping[str, Array]) -> dict[str, str]:
    """The domains that have only one row or one class, and a line on each.

    Raises:
        DataError: a domain's one class may stand for no label.
    """
    label = roles.label.named
    used = np.unique(label.codes[label.codes >= 0])
    regression = is_regression(label.numbers[used], data.mode)
    kinds = {text: np.unique(codes[codes >= 0]).tolist() for text, codes in labels.items()}
    elsewhere = set[int]().union(*(codes for codes in kinds.values() if len(codes) > 1))
    useless: dict[str, str] = {}
    for text, codes in labels.items():
        if len(codes) == 1 or (codes >= 0).sum() == 1:
            useless[text] = f"one row: domain {text!r} has 1 row, such as a sum; this domain is left out"
        elif len(kinds[text]) == 1:
            (only,) = kinds[text]
            kind = "number" if regression else "class"
            what = f"domain {text!r} has one {kind} alone, {label.texts[only]!r}"
            if regression or only not in elsewhere:
                remedy = f"if that stands for no label, {option({*roles.gaps, label.texts[only]})} makes a target"
                raise DataError(f"{data.file}: {what}; {remedy} of the domain; otherwise remove its rows")
            useless[text] = f"one class: {what}; this domain is left out"
    return useless


def identified(data: FromFile, given: Mapping[str, Any], lines: Sequence[str], network: Network = MLP) -> Identified:
    """What `data identify` says of a file, and its first suite.

    Args:
        data: the dataset that reads the file.
        given: the parameters that differ from the defaults, without the file.
        lines: what was found before.
        network: the suite's backbone.

    Raises:
        DataError: the file cannot be used.
    """
    read = data.contents()
    classes = read.classes
    params = {"file": data.file, **given}
    if "mode" in params:
        params["task"] = params.pop("mode")
    drawn, about_draws = _drawn(read)
    counts = _counts(read)
    labelled = [name for name in read.rows if name not in read.unlabelled]
    notes = [*lines, *about_draws, *read.remarks()]
    if read.plan is not None:
        notes += read.plan.lines()
    settings: Settings = {"backbone": (network, ""), "training": (_TRAINING, "")}
    if not read.unlabelled:
        notes += few_examples(counts)
        imbalance = Imbalance.of(counts, classes) if classes else None
        if imbalance is not None:
            notes.append(imbalance.line)
            settings |= imbalance.settings
        notes += about_targets(labelled)
    doubts = [*read.doubts()]
    if data.mode == "auto" and len(classes) > _MANY and all(name.isdecimal() for name in classes):
        what = f"the label has {len(classes)} different whole numbers, taken for classes"
        doubts.append(f"{what}; say --task classification, or --task regression to predict the number")
    (layers,) = network.values()
    methods = _methods(read, len(labelled), given=data.gives_predictions, norm="norm" in layers)
    if read.unlabelled:
        suite = answers(read.unlabelled, methods, settings, classes=bool(classes))
    else:
        suite = comparison(labelled, methods, settings)
    task = f"classification, {len(classes)} classes" if classes else "regression"
    n_rows = sum(map(len, read.rows.values()))
    what = f"{n_rows} rows of {len(read.rows)} domains, {task}"
    said = _how_much(data, read, given.get("drop", ()))
    return Identified(what, counts, notes, params | drawn, suite, doubts, said)


def _drawn(read: Contents) -> tuple[dict[str, Any], list[str]]:
    """The parameters that say how examples are drawn, and lines on them."""
    params: dict[str, Any] = {}
    lines: list[str] = []
    if read.unlabelled:
        unknown = "how good a method is there cannot be known, and validators choose"
        lines.append(f"targets without labels: {names_text(read.unlabelled)}; {unknown}")
        if not read.shared:
            params["protocol"] = "transductive"
    if read.classes and read.groups is not None:
        params["stratify"] = "shares"
    if read.test is not None:
        params["train"], line = official_train(read.rows, read.test, read.groups)
        lines.append(line)
    elif read.shared:
        params["test"] = 0.25
        lines.append("groups have rows in several domains, so a quarter of the target is the test")
    return params, lines


def _counts(read: Contents) -> dict[str, dict[str, int]]:
    """The rows of each class in each domain; those without labels come last."""
    counts: dict[str, dict[str, int]] = {}
    for name, rows in read.rows.items():
        if name in read.unlabelled:
            continue
        if read.classes:
            found = np.bincount(read.y[rows], minlength=len(read.classes)).tolist()
            counts[name] = dict(zip(read.classes, found, strict=True))
        else:
            counts[name] = {"rows": len(rows)}
    for name in read.unlabelled:
        counts[name] = {NO_LABEL: len(read.rows[name])}
    return counts


def _how_much(data: FromFile, read: Contents, drop: Sequence[str]) -> str:
    """How many rows and columns are read, and which are not."""
    path = Path(data.file)
    plan = read.plan
    n_rows = sum(map(len, read.rows.values()))
    line = f"read {n_rows} of {len(read.y)} rows"
    left: list[str] = []
    if plan is not None:
        left += drop
        left += [name for name, _ in plan.dropped]
        used = len(plan.kinds) + (plan.text is not None)
        line += f", {used} of {used + len(left)} columns of inputs"
    if path.is_dir():
        left += not_read(path, data.reads())
    if not left:
        return line
    return f"{line}; not read: {names_text(left, 40)}"


def _methods(read: Contents, labelled: int, *, given: bool, norm: bool) -> Recipes:
    """The methods of a first suite.

    Args:
        read: the file's rows.
        labelled: how many domains have labels.
        given: whether another model's predictions are shown, too.
        norm: whether the network normalises by batches.
    """
    several = labelled > (1 if read.unlabelled else 2)
    pooled = {"scheme": "pooled"}
    domains = {"discrepancy": "d_A", "mu": 0.1}
    coral = {"discrepancy": "coral", "mu": 1.0}
    methods: Recipes = {"SRC": pooled}
    if several:
        methods["ensemble"] = {"scheme": "ensemble"}
    methods["CORAL"] = coral if several else pooled | coral
    methods["DANN"] = pooled | domains
    if several:
        methods["DARN"] = domains | {"aggregator": {"sharpmax": {"gamma": 1.0}}}
    if several and read.classes:
        methods["BNM"] = {"scheme": {"regularised": {"by": "bnm", "weight": 0.1}}}
    if norm:
        methods["AdaBN"] = {"scheme": "adabn"}
    columns = read.input.shape[0] if len(read.input.shape) == 1 else 0
    methods |= plain_methods(columns, len(read.classes), several=several)
    if read.unlabelled:
        return methods
    if given:
        methods["given"] = {"scheme": "given", "reference": True}
    methods["TAR"] = {"scheme": "target_only", "reference": True}
    if several:
        methods["JOINT"] = {"scheme": "joint", "reference": True}
    return methods
