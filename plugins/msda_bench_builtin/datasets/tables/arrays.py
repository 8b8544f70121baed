"""The user's own arrays, such as features of CLIP, DINOv2 or an EEG: an npz archive of numpy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from pydantic import AliasChoices, Field

from msda_bench.api import AddedLater, Array, DataError, Files, Identified, Inputs, InputSpec, NewRowsReader, component
from msda_bench.functional import lost_in_float32, standardiser
from msda_bench_builtin.datasets.tables.array_checks import has_gaps, scores_of
from msda_bench_builtin.datasets.tables.array_doubts import doubts_in, sampled
from msda_bench_builtin.datasets.tables.findings import Look
from msda_bench_builtin.datasets.tables.folder import (
    ARRAYS,
    TABLES,
    Part,
    arrays_in,
    files_of,
    holds,
    parts_of,
    said_of,
)
from msda_bench_builtin.datasets.tables.identify import MLP, identified, identify_file, parameters
from msda_bench_builtin.datasets.tables.new_arrays import ArraysReader, NewArrays, UsualArray
from msda_bench_builtin.datasets.tables.npz import arrays_of, joined, read_arrays, sha256_of, shape_of, shown_shape
from msda_bench_builtin.datasets.tables.official import Marked, marked_by
from msda_bench_builtin.datasets.tables.parquet import has_lists
from msda_bench_builtin.datasets.tables.parts import Parts, Roles, missing_in, predictions_in
from msda_bench_builtin.datasets.tables.proposals import proposals
from msda_bench_builtin.datasets.tables.read import Column, crossed
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile
from msda_bench_builtin.datasets.tables.signals import (
    Signals,
    fitted,
    guessed,
    network_for,
    oriented,
    signals_in,
)
from msda_bench_builtin.datasets.tables.texts import names_in, names_text, text_of


@component
class Arrays(FromFile):
    """Your own features, an npz archive as `numpy.savez` writes it: inputs, labels and domains, an array each.

    A folder of archives is read as one; if they have no array of domains, each is a domain of its name. Python objects
    are never read.

    Parameters:
        inputs: the array of inputs, (n, ...) numbers.
        labels: that of labels, (n,) whole numbers, texts, or any numbers for a regression.
        domain: that of domains, (n,) whole numbers or texts; a suite may also write `domains`.
        groups: that of groups, (n,) whole numbers or texts, or several with commas between them, such as
            `subject,session`; None if rows are independent.
        signals: "channels_first" if a row of the inputs is a signal (channels, time), "channels_last" if it is (time,
            channels), either if it is (time,); "none" if each of its numbers stands for itself. Channels of signals are
            standardised each as a whole, and NaN stands for a gap, or for padding after the end of a shorter signal.
    """

    name = "arrays"
    version = 2
    endings = ARRAYS

    inputs: str = "x"
    labels: str = "y"
    domain: Annotated[str, Field(validation_alias=AliasChoices("domains", "domain"))] = "domain"
    groups: str | None = None
    signals: Annotated[Signals, AddedLater()] = "none"

    def reads(self) -> tuple[str, ...]:
        """`.npz`, or `.parquet` if the file or folder has such columns."""
        return arrays_in(self.path)

    @property
    def _files(self) -> list[Part]:
        """The files of a folder; none of a single file."""
        return parts_of(self.path, self.reads())

    @property
    def _first(self) -> Path:
        """The file, or the first one of a folder."""
        return files_of(self.path, self.reads())[0]

    def roles(self) -> Roles:
        """The arrays of domains, labels and groups; see `FromFile`."""
        test = self.marking(self._names())
        given = [self.inputs, self.labels, self.domain, self.groups, self.predictions, test]
        twice = [name for name in given if name is not None and given.count(name) > 1]
        if twice:
            what = f"array {twice[0]!r} cannot be two of inputs, labels, domains, groups, predictions and test rows"
            raise DataError(f"{self.file}: {what}")
        parts = {"domain": self.domain, "label": self.labels, "group": self.groups}
        held = arrays_of(self._first)
        columns: dict[str, Column] = {}
        for role, name in parts.items():
            if name is not None:
                columns[role] = crossed([self._column(one) for one in names_in(name, held)])
        return Roles(
            self.path,
            columns["domain"],
            columns["label"],
            columns.get("group"),
            tuple(f"{role} (array {name!r})" for role, name in parts.items()),
            frozenset().union(*(column.gaps for column in columns.values())),
            self._marked(test),
        )

    def _marked(self, name: str | None) -> Marked | None:
        """What marks official test rows; `name` is the array that does."""
        if name is None:
            return None
        return marked_by(self.path, "array", self.test_rows or "", {name: self._column(name)})

    def read(self) -> Contents:
        """The arrays; see `FromFile`."""
        parts = self.parts()
        x, gaps = self._inputs(len(parts.y))
        blurred = any(lost_in_float32(x[rows]).any() for rows in parts.rows.values())
        spec = InputSpec(x.shape[1:])
        if gaps:
            channels, time = x.shape[1:]
            spec = InputSpec((2 * channels, time), mask=channels)
        doubts = doubts_in(x, parts, self.inputs, alike=self.standardise == "domain", gaps=self.signals != "none")
        return Contents(
            **vars(parts),
            sha256=sha256_of(self.path),
            x=x,
            input=spec,
            predictions=self._predictions(parts),
            dtype=np.float64 if blurred else np.float32,
            odd=tuple(doubts),
        )

    def _predictions(self, parts: Parts) -> Array | None:
        """Another model's outputs for all rows."""
        if self.predictions is None:
            return None
        what = f"array {self.predictions!r}"
        given = self._arrays(self.predictions)
        if given.ndim == 1:
            return predictions_in(self.path, what, self._column(self.predictions), parts)
        return scores_of(self.path, what, given, (len(parts.y), parts.task.outputs))

    def _inputs(self, rows: int | None = None) -> tuple[Array, bool]:
        """The array of inputs, and whether numbers are missing; a DataError unless it has so many rows of numbers."""
        x = self._arrays(self.inputs)
        if x.ndim <= 1 or x.dtype.kind not in "fiub" or 0 in x.shape or rows not in {None, len(x)}:
            what = f"array {self.inputs!r} holds {x.dtype} of shape {x.shape}"
            raise DataError(f"{self.path}: {what}; inputs are numbers (n, ...), a row for each example")
        x = self._oriented(x)
        return x, has_gaps(self.path, self.inputs, x, allowed=self.signals != "none")

    def new_rows_reader(self, files: Files) -> NewRowsReader:
        """What reads arrays of the same shape."""
        read = self.contents()
        x = cast("Array", read.x)
        return ArraysReader(
            classes=read.classes,
            sees_target=self.standardise == "domain",
            source=self,
            shape=x.shape[1:],
            dtype=read.dtype,
            usual=UsualArray.of(x, read.rows),
            gaps=read.input.mask > 0,
        )

    def named(self) -> NewArrays:
        """All arrays of a file that may lack labels and domains.

        Raises:
            DataError: it is no such file, or its inputs are no numbers.
        """
        x, _ = self._inputs()
        names = self._names()
        others = {name: self._of_one_value(name) for name in names if name != self.inputs}
        says = self.domain in names or self.path.is_dir()
        return NewArrays(x, others, self._column(self.domain) if says else None)

    def _of_one_value(self, name: str) -> Array | None:
        """An array of one value a row, of any type but Python objects; None for any other."""
        found = self._shape_of(name)
        if found is not None and (len(found[0]) != 1 or found[1] == "O"):
            return None
        try:
            return self._arrays(name)
        except DataError:
            return None

    def _shape_of(self, name: str) -> tuple[tuple[int, ...], str] | None:
        """The shape of an array of the first file, and the kind of its dtype; None if it has no such array."""
        first = self._first
        return shape_of(first, name) if name in arrays_of(first) else None

    def _oriented(self, x: Array) -> Array:
        """Signals with their channels first, other rows as they are."""
        if self.signals != "none" and x.ndim not in {2, 3}:
            what = f"array {self.inputs!r} has the shape {x.shape}"
            raise DataError(f"{self.path}: {what}; signals are (n, time), (n, channels, time) or (n, time, channels)")
        return oriented(x, self.signals)

    def _column(self, name: str) -> Column:
        """An array of labels, domains or groups as a column of texts; NaN and empty texts are missing."""
        values = self._arrays(name)
        rows = self._arrays(self.domain).shape[:1]
        if values.shape != rows or values.dtype.kind not in "iubfUS":
            what = f"array {name!r} holds {values.dtype} of shape {values.shape}"
            raise DataError(f"{self.file}: {what}; whole numbers or texts of shape ({rows[0]},) are needed")
        different, codes = np.unique(values, return_inverse=True)
        try:
            texts = [text_of(value) for value in different.tolist()]
        except UnicodeDecodeError:
            raise DataError(f"{self.file}: array {name!r} holds bytes that are no UTF-8 text; save texts") from None
        everywhere, own = missing_in(self.missing)
        made = Column.of(texts, codes.reshape(-1).astype(np.int64), everywhere)
        return made.without(name, own.get(name, ()))

    def _arrays(self, name: str) -> Array:
        """An array; of a folder those of its files, one below the other."""
        files = self._files
        if not files:
            return read_arrays(self.path, [name])[name]
        held = arrays_of(files[0].path)
        if name in files[0].columns or (name == self.domain and name not in held):
            counted = self.labels if self.labels in held else self.inputs
            counts = [len(read_arrays(file.path, [counted])[counted]) for file in files]
            return np.repeat([file.columns.get(name, file.domain or file.stem) for file in files], counts)
        return joined(name, {file.path: read_arrays(file.path, [name])[name] for file in files})

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """Looks through an archive: its domains and classes; the inputs are `x`, or the only other array."""
        if path.is_dir():
            is_mine = "label" in options and holds(path, ARRAYS) and not holds(path, TABLES)
        else:
            is_mine = path.suffix.lower() in ARRAYS
        if not is_mine and not ((path.is_file() or "label" in options) and has_lists(path)):
            return None
        if not path.is_dir() and not options.keys() >= {"domain", "label"}:
            held = names_text(arrays_of(path))
            raise DataError(f"{path}: name the arrays of domains and labels by --domain and --label; it has {held}")
        if "text" in options:
            raise DataError(f"{path}: arrays have no column of text; leave --text out, or save a table")
        given = parameters(options)
        for role, name in (("label", "labels"), ("group", "groups")):
            if role in given:
                given[name] = given.pop(role)
        named = {*given.values(), *given.get("groups", "").split(",")}
        named.add(given.get("test_rows", "").partition("=")[0])
        given["inputs"] = self._found_inputs(path, named)
        return identify_file(self, path, options, given)

    def looked_through(self, given: dict[str, Any], lines: list[str], *, says_test: bool) -> Identified:
        """The arrays with the parameters that answer the doubts about them; see `FromFile`."""
        found: dict[str, Any] = {}
        doubt = ""
        if "signals" not in given:
            signals, doubt = self._guessed_signals()
            if signals != "none":
                found["signals"] = signals
        roles, about_roles = replace(self, **found).proposed(says_test=says_test)
        found |= roles
        data = replace(self, **found)
        about = [*said_of(self.path, self.reads()), *lines, *about_roles, *data.shapes(), *data.contents().odd]
        network = MLP
        if data.signals != "none":
            about.append("plain models are left out of the suite: they read rows of numbers, no signals")
            network = network_for(data.contents().x)
        said = identified(data, given | found, about, network)
        return replace(said, doubts=[*said.doubts, doubt]) if doubt else said

    def _found_inputs(self, path: Path, named: Collection[str]) -> str:
        """The array of inputs: `x`, or the only other one, or the only other one with rows of numbers."""
        first = files_of(path, arrays_in(path))[0]
        others = [name for name in arrays_of(first) if name not in named]
        if self.inputs in others:
            return self.inputs
        shapes = {name: shape_of(first, name) for name in others}
        rows = [name for name, found in shapes.items() if found and len(found[0]) > 1 and found[1] in "iufb"]
        if len(others) != 1 and len(rows) != 1:
            held = names_text([shown_shape(first, name) for name in others]) or "no other"
            what = f"which array holds the inputs? call it {self.inputs!r}; it has {held}"
            if any(name.endswith("_test") for name in others):
                what += "; make one array of those of both sides, and an array `split` of 'train' and 'test'"
            raise DataError(f"{path}: {what}")
        return others[0] if len(others) == 1 else rows[0]

    def _guessed_signals(self) -> tuple[Signals, str]:
        """How rows (n, a, b) are read as signals, and why that is in doubt."""
        x = self._arrays(self.inputs)
        if x.ndim != len(("row", "channels", "time")) or x.dtype.kind not in "fiub" or 0 in x.shape:
            return "none", ""
        guess = guessed(x)
        if not guess.doubt:
            return guess.signals, ""
        what = f"array {self.inputs!r} of shape {x.shape} may hold signals, but {guess.doubt}"
        return "none", f"{what}; say --signals channels_first, channels_last, or none if its rows are no signals"

    def describe(self) -> tuple[str, ...]:
        """What was found in the file, and the size of signals."""
        if self.signals == "none":
            return super().describe()
        return (*super().describe(), f"signals: {signals_in(self.contents().x)}")

    def proposed(self, *, says_test: bool) -> tuple[dict[str, Any], list[str]]:
        """Roles for arrays of one value a row that are not read, as parameters; and a line on each."""
        columns: dict[str, Column] = {}
        for name in self._left():
            column = self._beside(name)
            if column is not None:
                columns[name] = column
        if not columns:
            return {}, []
        look = Look.of(self.path, columns, self.parts(), self.domain, says_test=says_test)
        look = replace(look, beside=tuple(sampled(self._arrays(self.inputs), look.rows)), kind="array")
        params = {"groups": "groups", "test": "test_rows"}
        roles: dict[str, Any] = {}
        lines: list[str] = []
        for finding in proposals(look, [*columns]):
            if finding.fate in params:
                roles[params[finding.fate]] = finding.column
                lines.append(finding.line(answered=True))
            elif finding.remedy:
                lines.append(replace(finding, fate="none").line(answered=True))
        return roles, lines

    def _names(self) -> list[str]:
        """All arrays, and what the names of folders say."""
        names = arrays_of(self._first)
        for file in self._files[:1]:
            names += file.columns
        return names

    def _left(self) -> list[str]:
        """The arrays that are not read."""
        names = self._names()
        groups = names_in(self.groups or "", names)
        read = {self.inputs, self.labels, self.domain, self.predictions, *groups, self.marking(names)}
        return [name for name in names if name not in read]

    def _beside(self, name: str) -> Column | None:
        """An array of whole numbers or texts, one a row, as a column; None for any other."""
        if name in arrays_of(self._first):
            found = self._shape_of(name)
            if found is None or len(found[0]) != 1 or found[1] not in "iubUS":
                return None
        try:
            return self._column(name)
        except DataError:  # of another length
            return None

    def shapes(self) -> list[str]:
        """The shape of an example, and the arrays that are not read."""
        x = self.contents().x
        lines = [f"inputs: array {self.inputs!r}, {x.dtype} of shape {x.shape[1:]} in each row"]
        if self.signals != "none":
            what = f"signals: array {self.inputs!r} {x.shape[1:]}, {signals_in(x)}"
            lines = [f"{what}; --signals says how it is meant otherwise"]
        first = self._first
        held = arrays_of(first)
        others = [shown_shape(first, name) for name in self._left() if name in held]
        if others:
            ask = "" if self.groups else "; name by --group one that says which rows belong together"
            lines.append(f"arrays not read: {names_text(others)}{ask}")
        return lines

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns means and variances from training rows."""
        rows = cast("Mapping[str, Array]", train)
        sources = {name: rows[name] for name in list(rows)[:-1] or rows}
        if self.signals != "none":
            features = fitted(rows, sources, self.standardise, gaps=self.input.mask > 0)
            return cast("Callable[[str, Inputs], Inputs]", features)
        if self.standardise == "none":
            return super().fit(train)
        learned = standardiser(rows, "domain") if self.standardise == "domain" else standardiser(sources, "pooled")
        return cast("Callable[[str, Inputs], Inputs]", learned)
