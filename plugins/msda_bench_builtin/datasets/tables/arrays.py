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
from msda_bench_builtin.datasets.tables.array_doubts import doubts_in, sampled
from msda_bench_builtin.datasets.tables.findings import Look
from msda_bench_builtin.datasets.tables.folder import ARRAYS, TABLES, arrays_in, files_of, holds, parts_of, said_of
from msda_bench_builtin.datasets.tables.identify import MLP, identified, parameters, repaired
from msda_bench_builtin.datasets.tables.new_arrays import ArraysReader, NewArrays, UsualArray
from msda_bench_builtin.datasets.tables.npz import arrays_of, joined, read_arrays, sha256_of, shape_of, shown_shape
from msda_bench_builtin.datasets.tables.official import Marked, marked_by, named_in
from msda_bench_builtin.datasets.tables.parquet import has_lists
from msda_bench_builtin.datasets.tables.parts import Roles, missing_in, predictions_in
from msda_bench_builtin.datasets.tables.proposals import proposals
from msda_bench_builtin.datasets.tables.read import Column, crossed
from msda_bench_builtin.datasets.tables.rows import Contents, FromFile
from msda_bench_builtin.datasets.tables.signals import (
    Signals,
    fitted,
    guessed,
    network_for,
    oriented,
    padded_axes,
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
        return arrays_in(Path(self.file))

    def roles(self) -> Roles:
        """The arrays of domains, labels and groups; see `FromFile`."""
        held = arrays_of(files_of(Path(self.file), self.reads())[0])
        test = None if self.test_rows is None else named_in(self.test_rows, self._names())[0]
        given = [self.inputs, self.labels, self.domain, self.groups, self.predictions, test]
        if twice := [name for name in given if name is not None and given.count(name) > 1]:
            what = f"array {twice[0]!r} cannot be two of inputs, labels, domains, groups, predictions and test rows"
            raise DataError(f"{self.file}: {what}")
        parts = {"domain": self.domain, "label": self.labels, "group": self.groups}
        columns = {
            role: crossed([self._column(one) for one in names_in(name, held)])
            for role, name in parts.items()
            if name is not None
        }
        return Roles(
            Path(self.file),
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
        return marked_by(Path(self.file), "array", self.test_rows or "", {name: self._column(name)})

    def read(self) -> Contents:
        """The arrays; see `FromFile`."""
        path, parts = Path(self.file), self.parts()
        x, gaps = self._inputs(len(parts.y))
        predictions = None
        if self.predictions is not None:
            part, given = f"array {self.predictions!r}", self._arrays(self.predictions)
            if given.ndim == 1:
                predictions = predictions_in(path, part, self._column(self.predictions), parts)
            else:
                predictions = _scores(path, part, given, (len(x), parts.task.outputs))
        blurred = any(lost_in_float32(x[rows]).any() for rows in parts.rows.values())
        dtype = np.float64 if blurred else np.float32
        spec = InputSpec(x.shape[1:])
        if gaps:
            channels, time = x.shape[1:]
            spec = InputSpec((2 * channels, time), mask=channels)
        odd = tuple(doubts_in(x, parts, self.inputs, alike=self.standardise == "domain", gaps=self.signals != "none"))
        return Contents(
            **vars(parts), sha256=sha256_of(path), x=x, input=spec, predictions=predictions, dtype=dtype, odd=odd
        )

    def _inputs(self, rows: int | None = None) -> tuple[Array, bool]:
        """The array of inputs, and whether numbers are missing; a DataError unless it has so many rows of numbers."""
        path, x = Path(self.file), self._arrays(self.inputs)
        if x.ndim <= 1 or x.dtype.kind not in "fiub" or 0 in x.shape or len(x) != (len(x) if rows is None else rows):
            what = f"array {self.inputs!r} holds {x.dtype} of shape {x.shape}"
            raise DataError(f"{path}: {what}; inputs are numbers (n, ...), a row for each example")
        x = self._oriented(path, x)
        return x, _gaps(path, self.inputs, x, allowed=self.signals != "none")

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
        says = self.domain in names or Path(self.file).is_dir()
        return NewArrays(x, others, self._column(self.domain) if says else None)

    def _of_one_value(self, name: str) -> Array | None:
        """An array of one value a row, of any type but Python objects; None for any other."""
        first = files_of(Path(self.file), self.reads())[0]
        found = shape_of(first, name) if name in arrays_of(first) else None
        if found is not None and (len(found[0]) != 1 or found[1] == "O"):
            return None
        try:
            return self._arrays(name)
        except DataError:
            return None

    def _oriented(self, path: Path, x: Array) -> Array:
        """Signals with their channels first, other rows as they are."""
        if self.signals != "none" and x.ndim not in {2, 3}:
            what = f"array {self.inputs!r} has the shape {x.shape}"
            raise DataError(f"{path}: {what}; signals are (n, time), (n, channels, time) or (n, time, channels)")
        return oriented(x, self.signals)

    def _column(self, name: str) -> Column:
        """An array of labels, domains or groups as a column of texts; NaN and empty texts are missing."""
        values, rows = self._arrays(name), self._arrays(self.domain).shape[:1]
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
        return made.without(name, own[name]) if name in own else made

    def _arrays(self, name: str) -> Array:
        """An array; of a folder those of its files, one below the other."""
        path, parts = Path(self.file), parts_of(Path(self.file), self.reads())
        if not parts:
            return read_arrays(path, [name])[name]
        held = arrays_of(parts[0].path)
        if name in parts[0].columns or (name == self.domain and name not in held):
            counted = self.labels if self.labels in held else self.inputs
            counts = [len(read_arrays(part.path, [counted])[counted]) for part in parts]
            return np.repeat([part.columns.get(name, part.domain or part.stem) for part in parts], counts)
        return joined(name, {part.path: read_arrays(part.path, [name])[name] for part in parts})

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
        named = {*given.values(), *given.get("groups", "").split(","), given.get("test_rows", "").partition("=")[0]}
        given["inputs"] = self._found_inputs(path, named)
        data, left_out, lines = repaired(replace(self, file=str(path), **given), options.get("unlabelled", "target"))
        found: Identified = data.looked_through(given | left_out, lines, says_test="test" in options)
        return found

    def looked_through(self, given: dict[str, Any], lines: list[str], *, says_test: bool) -> Identified:
        """The arrays with the parameters that answer the doubts about them; see `Table`."""
        data, doubt, params = self, "", dict(given)
        if "signals" not in given:
            signals, doubt = self._guessed_signals()
            if signals != "none":
                data, params["signals"] = replace(data, signals=signals), signals
        roles, about_roles = data.proposed(says_test=says_test)
        data = replace(data, **roles)
        about = [*said_of(Path(self.file), data.reads()), *lines, *about_roles, *data.shapes(), *data.contents().odd]
        network = MLP
        if data.signals != "none":
            about.append("plain models are left out of the suite: they read rows of numbers, no signals")
            network = network_for(data.contents().x)
        found = identified(data, params | roles, about, network)
        return replace(found, doubts=[*found.doubts, doubt]) if doubt else found

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
        columns = {name: made for name in self._left() if (made := self._beside(name)) is not None}
        if not columns:
            return {}, []
        look = Look.of(Path(self.file), columns, self.parts(), self.domain, says_test=says_test)
        look = replace(look, beside=tuple(sampled(self._arrays(self.inputs), look.rows)), kind="array")
        found = proposals(look, [*columns])
        params = {"groups": "groups", "test": "test_rows"}
        roles = {params[finding.fate]: finding.column for finding in found if finding.fate in params}
        kept = (finding if finding.fate in params else replace(finding, fate="none") for finding in found)
        return roles, [finding.line(answered=True) for finding in kept if finding.fate in params or finding.remedy]

    def _names(self) -> list[str]:
        """All arrays, and what the names of folders say."""
        path = Path(self.file)
        folders = [part.columns for part in parts_of(path, self.reads())[:1]]
        return [*arrays_of(files_of(path, self.reads())[0]), *(name for columns in folders for name in columns)]

    def _left(self) -> list[str]:
        """The arrays that are not read."""
        names = self._names()
        read = {self.inputs, self.labels, self.domain, self.predictions, *names_in(self.groups or "", names)}
        read |= set() if self.test_rows is None else {named_in(self.test_rows, names)[0]}
        return [name for name in names if name not in read]

    def _beside(self, name: str) -> Column | None:
        """An array of whole numbers or texts, one a row, as a column; None for any other."""
        first = files_of(Path(self.file), self.reads())[0]
        if name in arrays_of(first):
            found = shape_of(first, name)
            if found is None or len(found[0]) != 1 or found[1] not in "iubUS":
                return None
        try:
            return self._column(name)
        except DataError:  # of another length
            return None

    def shapes(self) -> list[str]:
        """The shape of an example, and the arrays that are not read."""
        first = files_of(Path(self.file), self.reads())[0]
        x, left, held = self.contents().x, self._left(), arrays_of(first)
        lines = [f"inputs: array {self.inputs!r}, {x.dtype} of shape {x.shape[1:]} in each row"]
        if self.signals != "none":
            what = f"signals: array {self.inputs!r} {x.shape[1:]}, {signals_in(x)}"
            lines = [f"{what}; --signals says how it is meant otherwise"]
        others = [shown_shape(first, name) for name in left if name in held]
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


def _scores(path: Path, part: str, scores: Array, shape: tuple[int, int]) -> Array:
    """A score for each row and class, or a number for each row."""
    if scores.shape != shape or scores.dtype.kind not in "fiu":
        what = f"{part} holds {scores.dtype} of shape {scores.shape}"
        raise DataError(
            f"{path}: {what}; predictions are classes (n,), or a number for each class {shape}, in their order"
        )
    with np.errstate(over="ignore"):
        given = scores.astype(np.float32)
    if np.isinf(given).any():
        raise DataError(f"{path}: {part} holds a number that is not finite in float32; correct it")
    return given


def _gaps(path: Path, name: str, x: Array, *, allowed: bool) -> bool:
    """Whether numbers are missing (NaN).

    Raises:
        DataError: inputs are not finite otherwise, or have gaps that are not `allowed`, or a row has no number.
    """
    with np.errstate(over="ignore"):
        finite = np.isfinite(x.astype(np.float32, copy=False))
    if finite.all():
        return False
    missing: Array = np.isnan(x)
    what, axes = f"array {name!r}", tuple(range(1, x.ndim))
    infinite = (~finite & ~missing).any(axes)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"{path}: row {row} of {what} holds a number that is not finite in float32; correct or remove the row"
        )
    empty = missing.all(axes)
    if allowed and empty.any():
        raise DataError(f"{path}: row {int(np.argmax(empty))} of {what} has no number, NaN alone; remove the row")
    if allowed:
        return True
    lacking = missing.any(axes)
    many = f"{np.count_nonzero(lacking)} of {len(x)} rows of {what}, first row {int(np.argmax(lacking))}"
    signals = "`signals: channels_first` or `channels_last` (`--signals`) reads them with gaps"
    if padded_axes(missing):
        raise DataError(f"{path}: {many}, begin or end in NaN, the padding of series of different lengths; {signals}")
    remedy = "fill them, such as by numpy.nan_to_num, or remove these rows"
    remedy += f"; {signals}" if x.ndim == len(("row", "channels", "time")) else ""
    raise DataError(f"{path}: {many}, have missing values (NaN); {remedy}")
