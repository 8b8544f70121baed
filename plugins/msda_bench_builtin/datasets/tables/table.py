"""A table of the user's: a CSV, TSV or Parquet file with a column of domains and one of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from msda_bench.api import Count, DataError, Identified, Inputs, InputSpec, component
from msda_bench_builtin.datasets.tables.columns import encoded, fitted, plan_of, with_words
from msda_bench_builtin.datasets.tables.identify import identified, look_through
from msda_bench_builtin.datasets.tables.parts import (
    Roles,
    domains_in,
    groups_in,
    labels_in,
    predictions_in,
    without_labels,
)
from msda_bench_builtin.datasets.tables.read import ENDINGS, Column, column, read_table
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile


@component
class Table(FromFile):
    """Your own table, a CSV, TSV or Parquet file: a row for each example, and its domain, label and inputs in columns.

    Numbers are standardised, a missing one becomes the median, and a column says that it was missing; a category
    becomes a column for each of its values, and one for values that no training row has. All that is learned of
    training rows only. `msda-bench data identify FILE --domain D --label L --suite mine.yaml` writes a first suite.

    Parameters:
        domain: the column that names each row's domain.
        label: the column to predict.
        inputs: the columns to learn from; all others but these if empty.
        drop: columns not to learn from.
        categories: columns of numbers that are codes of categories.
        text: a column that is read as a bag of words, or as it is by a backbone that reads; the other columns follow.
        group: a column that names rows that belong together, such as those of one patient.
        words: columns of the bag of words: the words and word groups in the most training rows.
        ngrams: longest group of words.
    """

    name = "table"
    modality = "tabular"
    version = 1

    domain: str = "domain"
    label: str = "label"
    inputs: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    text: str | None = None
    group: str | None = None
    words: Count = 2000
    ngrams: Annotated[int, Field(ge=1, le=5)] = 2

    def read(self) -> Contents:
        """The table; see `FromFile`."""
        return _read(self)

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns from training rows how columns become numbers."""
        plan = self.contents().plan
        assert plan is not None  # noqa: S101 - a table has one
        return fitted(plan, train, self.standardise, self.words if self.text else 0)

    def identify_columns(self, path: Path, columns: Mapping[str, str]) -> Identified | None:
        """Looks through a table: its domains and classes, and columns that look like a leak or cannot be used.

        Raises:
            DataError: the file cannot be used.
        """
        if path.suffix.lower() not in ENDINGS:
            return None
        held = read_table(path)[1]
        given: dict[str, Any] = dict(columns)
        table = replace(self, file=str(path), **given)
        findings = look_through(path, _inputs(table, path, held), column(path, held, table.label, "label"), table.text)
        given |= {key: names for key in ("drop", "categories") if (names := tuple(getattr(findings, key)))}
        return identified(replace(self, file=str(path), **given), given, findings.lines)


def _read(table: Table) -> Contents:
    path = Path(table.file)
    sha256, columns = read_table(path)
    domain = column(path, columns, table.domain, "domain")
    label = column(path, columns, table.label, "label")
    group = column(path, columns, table.group, "group") if table.group is not None else None
    inputs = _inputs(table, path, columns)
    roles = Roles(
        path, f"domain (column {table.domain!r})", f"label (column {table.label!r})", f"`group` ({table.group!r})"
    )
    rows = domains_in(roles, domain, label, leave_out=table.leave_out, unlabelled=table.unlabelled)
    y, task, classes = labels_in(roles, label, rows, table.mode)
    groups, shared = groups_in(roles, group, rows)
    predictions = None
    if table.predictions is not None:
        given = column(path, columns, table.predictions, "predictions")
        predictions = predictions_in(path, f"column {table.predictions!r}", given, rows, task, classes)
    plan = plan_of(path, inputs, table.categories, table.text)
    x: Inputs = encoded(plan, {**inputs, table.domain: domain}, scaled=table.standardise != "none")
    width, texts = plan.width, None
    if table.text is not None:
        x = with_words(x, inputs[table.text], table.ngrams)
        width += table.words
        texts = np.array([*inputs[table.text].texts, ""], object)[inputs[table.text].codes]
    with_text = texts is not None
    spec = InputSpec((width,), sparse=with_text, texts=with_text, beside=plan.width if with_text else 0)
    return Contents(
        sha256,
        rows,
        x,
        y,
        task,
        classes,
        spec,
        groups,
        shared,
        plan,
        texts=texts,
        predictions=predictions,
        unlabelled=without_labels(rows, label),
    )


def _inputs(table: Table, path: Path, columns: Mapping[str, Column]) -> dict[str, Column]:
    """The columns to learn from."""
    roles = _roles(table, path)
    if table.inputs and table.drop:
        raise DataError(f"{path}: `inputs` and `drop` are both given; name one of them")
    for key in ("inputs", "drop", "categories"):
        for name in getattr(table, key):
            column(path, columns, name, key)
            if key != "drop" and name in roles:
                raise DataError(f"{path}: column {name!r} is the {roles[name]}, so it cannot be one of the `{key}`")
    chosen = [name for name in table.inputs or columns if name not in roles and name not in table.drop]
    if table.text is not None:
        column(path, columns, table.text, "text")
        if table.text in roles:
            raise DataError(f"{path}: column {table.text!r} is the {roles[table.text]}, so it cannot be the `text`")
        chosen = list(dict.fromkeys([*chosen, table.text]))
    return {name: columns[name] for name in chosen}


def _roles(table: Table, path: Path) -> dict[str, str]:
    """What columns are that are no inputs."""
    roles: dict[str, str] = {}
    named = (
        ("domain", table.domain),
        ("label", table.label),
        ("predictions", table.predictions),
        ("group", table.group),
    )
    for role, name in named:
        if name is not None and role != "group" and name in roles:
            raise DataError(f"{path}: column {name!r} is both {roles[name]} and {role}; name two columns")
        if name is not None:
            roles[name] = role
    return roles
