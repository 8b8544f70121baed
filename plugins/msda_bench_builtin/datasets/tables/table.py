"""The user's own table: a CSV, TSV or Parquet file, or a folder of them, with domains and labels in columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from msda_bench.api import AddedLater, Count, DataError, Files, Identified, Inputs, InputSpec, NewRowsReader, component
from msda_bench.functional import ngram_counts, unspaced
from msda_bench_builtin.datasets.tables.column_doubts import doubts_about, gaps_in, used_columns
from msda_bench_builtin.datasets.tables.columns import Gaps, Plan, encoded, fitted, plan_of, ranges_of, with_words
from msda_bench_builtin.datasets.tables.findings import Look
from msda_bench_builtin.datasets.tables.folder import TABLES, is_table, said_of, stamp
from msda_bench_builtin.datasets.tables.identify import (
    column_parameters,
    identified,
    identify_file,
    parameters,
    unnamed,
)
from msda_bench_builtin.datasets.tables.new_table import TableReader, usual_in
from msda_bench_builtin.datasets.tables.official import Marked, marked_by, named_in
from msda_bench_builtin.datasets.tables.parquet import has_lists
from msda_bench_builtin.datasets.tables.parts import Parts, Roles, missing_in, predictions_in
from msda_bench_builtin.datasets.tables.read import Column, column, crossed, read_table
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile
from msda_bench_builtin.datasets.tables.texts import names_in


@component
class Table(FromFile):
    """Your own table, a CSV, TSV or Parquet file: a row for each example, and its domain, label and inputs in columns.

    A folder of such files is one table; if they have no column `domain`, each is a domain of its name.

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
        group: a column that names rows that belong together, such as those of one patient; or several, with commas
            between them, such as `subject,trial`.
        words: columns of the bag of words: the words and word groups in the most training rows.
        ngrams: longest group of words.
        units: what words are: "words", or "characters" in scripts without blanks such as Chinese, Japanese or Thai.
        gaps: "mark" has columns that say where a value was missing; "fill" hides that, where it tells the domain or the
            class: a missing number is the median, a missing category the most frequent one of the sources.
    """

    name = "table"
    modality = "tabular"
    version = 2
    endings = TABLES

    domain: str = "domain"
    label: str = "label"
    inputs: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    text: str | None = None
    group: str | None = None
    words: Count = 2000
    ngrams: Annotated[int, Field(ge=1, le=5)] = 2
    units: Annotated[Literal["words", "characters"], AddedLater()] = "words"
    gaps: Annotated[Gaps, AddedLater()] = "mark"

    def roles(self) -> Roles:
        """The columns that are no inputs; see `FromFile`."""
        _, columns = self.columns()
        self._named(columns)  # which refuses a column with two of them
        names = f"domain (column {self.domain!r})", f"label (column {self.label!r})", f"`group` ({self.group!r})"
        return Roles(
            self.path,
            column(self.path, columns, self.domain, "domain"),
            column(self.path, columns, self.label, "label"),
            self._group(columns),
            names,
            frozenset().union(*(held.gaps for held in columns.values())),
            self._marked(columns),
        )

    def read(self) -> Contents:
        """The table; see `FromFile`."""
        sha256, columns = self.columns()
        parts = self.parts()
        inputs = self._inputs(columns, parts)
        predictions = None
        if self.predictions is not None:
            given = column(self.path, columns, self.predictions, "predictions")
            predictions = predictions_in(self.path, f"column {self.predictions!r}", given, parts)
        plan = replace(plan_of(self.path, inputs, self.categories, self.text), gaps=self.gaps)
        findings = doubts_about(self.look(columns, parts), self.text)
        x: Inputs = encoded(plan, inputs, ranges_of(plan, inputs), scaled=self.standardise != "none")
        spec = InputSpec((plan.width,))
        texts = None
        if self.text is not None:
            words = inputs[self.text]
            x = with_words(x, words, self.ngrams, self.units)
            texts = words.written
            spec = InputSpec((plan.width + self.words,), sparse=True, texts=True, beside=plan.width)
        read_table.cache_clear()  # since `contents` keeps the result
        return Contents(
            **vars(parts),
            sha256=sha256,
            x=x,
            input=spec,
            plan=plan,
            texts=texts,
            predictions=predictions,
            odd=tuple(finding.line(answered=False) for finding in findings),
        )

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns from training rows how columns become numbers."""
        return fitted(self._plan, train, self.standardise, self.words if self.text else 0)

    @property
    def _plan(self) -> Plan:
        plan = self.contents().plan
        assert plan is not None  # noqa: S101 - a table has one
        return plan

    def new_rows_reader(self, files: Files) -> NewRowsReader:
        """What reads tables with the same columns."""
        read = self.contents()
        _, columns = self.columns()
        parts = self.parts()
        inputs = self._inputs(columns, parts)
        named = {"domain": self.domain, "label": self.label, "predictions": self.predictions}
        vocabulary: Sequence[str] = ()
        if self.text is not None:
            _, vocabulary = ngram_counts([*inputs[self.text].texts, ""], self.ngrams, units=self.units)
        read_table.cache_clear()
        return TableReader(
            classes=read.classes,
            sees_target=self.standardise == "domain",
            plan=self._plan,
            usual=usual_in(self.look(columns, parts), ranges_of(self._plan, inputs)),
            roles={role: name for role, name in named.items() if name is not None},
            missing=self.missing,
            scaled=self.standardise != "none",
            ngrams=self.ngrams,
            units=self.units,
            vocabulary=tuple(vocabulary),
        )

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """Looks through a table: its domains and classes, and columns that look like a leak or cannot be used."""
        if path.is_dir() and "label" not in options:
            return None
        if not is_table(path) or has_lists(path):
            return None
        if not options:
            raise unnamed(path, replace(self, file=str(path)).columns()[1])
        if not path.is_dir() and not options.keys() >= {"domain", "label"}:
            raise DataError(f"{path}: a table needs both --domain and --label")
        if "signals" in options:
            raise DataError(f"{path}: a table has no signals; save them as arrays, (n, channels, time) by numpy.savez")
        return identify_file(self, path, options, parameters(options))

    def looked_through(self, given: dict[str, Any], lines: list[str], *, says_test: bool) -> Identified:
        """The table with the parameters that answer the doubts about its columns; see `FromFile`."""
        found: dict[str, Any] = {}
        if "missing" not in given:
            found, about_gaps = self._gaps()
            lines += about_gaps
        table = replace(self, **found)
        if table.has_no_blanks():
            what = f"column {self.text!r} puts no blanks between words, so its characters and their pairs are counted"
            lines.append(f"text: {what} (`units: characters`)")
            found["units"] = "characters"
        look = table.look(table.columns()[1], table.parts(), says_test=says_test)
        kinds, doubts = column_parameters(look, table.text)
        found |= kinds
        return identified(replace(self, **found), given | found, [*said_of(self.path, TABLES), *lines, *doubts])

    def columns(self) -> tuple[str, dict[str, Column]]:
        """The sha256 of the file's bytes, and its columns by name."""
        everywhere, own = missing_in(self.missing)
        sha256, columns = read_table(self.path, everywhere, self.domain, stamp(self.path, TABLES))
        for name, texts in own.items():
            held = column(self.path, columns, name, "missing")
            columns = {**columns, name: held.without(name, texts)}
        return sha256, columns

    def _group(self, columns: Mapping[str, Column]) -> Column | None:
        """The column of groups; several, with commas between them, make a group of each combination."""
        if self.group is None:
            return None
        names = names_in(self.group, columns)
        return crossed([column(self.path, columns, name, "group") for name in names])

    def _marked(self, columns: Mapping[str, Column]) -> Marked | None:
        if self.test_rows is None:
            return None
        column(self.path, columns, named_in(self.test_rows, columns)[0], "test_rows")
        return marked_by(self.path, "column", self.test_rows, columns)

    def look(self, columns: Mapping[str, Column], parts: Parts, *, says_test: bool = False) -> Look:
        """The columns of inputs and the rows, to be judged."""
        inputs = self._inputs(columns, parts)
        alike = self.standardise == "domain"
        look = Look.of(self.path, inputs, parts, self.domain, alike=alike, says_test=says_test)
        return replace(look, fills=self.gaps == "fill")

    def _gaps(self) -> tuple[dict[str, Any], list[str]]:
        """The texts that stand for missing values, as `missing`, if some numbers among the inputs surely do."""
        look = self.look(self.columns()[1], self.parts())
        texts: list[str] = []
        lines: list[str] = []
        for finding in gaps_in(look, used_columns(look, self.text)):
            if finding.fate == "missing":
                texts += finding.column.split(",")
                lines.append(finding.line(answered=True))
        if not texts:
            return {}, []
        return {"missing": (*sorted(look.gaps), *texts)}, lines

    def has_no_blanks(self) -> bool:
        """Whether the text is of a script that puts no blanks between words."""
        if self.text is None:
            return False
        return unspaced(column(self.path, self.columns()[1], self.text, "text").texts)

    def _inputs(self, columns: Mapping[str, Column], parts: Parts) -> dict[str, Column]:
        """The columns to learn from, as if the rows that are not read were like the others."""
        roles = self._named(columns)
        if self.inputs and self.drop:
            raise DataError(f"{self.path}: `inputs` and `drop` are both given; name one of them")
        text = () if self.text is None else (self.text,)
        for key, names in {"inputs": self.inputs, "categories": self.categories, "text": text}.items():
            for name in names:
                column(self.path, columns, name, key)
                if name in roles:
                    what = "the `text`" if key == "text" else f"one of the `{key}`"
                    raise DataError(f"{self.path}: column {name!r} is the {roles[name]}, so it cannot be {what}")
        for name in self.drop:
            column(self.path, columns, name, "drop")
        left_out = {*roles, *self.drop}
        chosen = [name for name in self.inputs or columns if name not in left_out]
        used = {name: columns[name] for name in (*chosen, *text)}
        rows = np.sort(np.concatenate(list(parts.rows.values())))
        if len(rows) == len(parts.y):
            return used
        return {name: held.only(rows) for name, held in used.items()}

    def _named(self, columns: Collection[str]) -> dict[str, str]:
        """What columns are that are no inputs."""
        named = {
            "domain": self.domain,
            "label": self.label,
            "predictions": self.predictions,
            "test_rows": self.marking(columns),
        }
        roles: dict[str, str] = {}
        for role, name in named.items():
            if name is None:
                continue
            if name in roles:
                raise DataError(f"{self.file}: column {name!r} is both {roles[name]} and {role}; name two columns")
            roles[name] = role
        if self.group is None:
            return roles
        return dict.fromkeys([self.group, *self.group.split(",")], "group") | roles
