"""What a table and arrays of the user's have in common: domains, labels and groups that the file itself names."""

from __future__ import annotations

import functools
import hashlib
import math
import mmap
import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AliasChoices, Field

from msda_bench.api import (
    Array,
    ByHand,
    DataError,
    Dataset,
    DomainData,
    File,
    Files,
    Inputs,
    InputSpec,
    Located,
    Size,
    Task,
    component,
)
from msda_bench_builtin.datasets.tables.columns import Plan, Standardise
from msda_bench_builtin.datasets.tables.read import Column, listed, stamp

Mode = Literal["auto", "classification", "regression"]
_MOST_DOMAINS = 500
_MOST_CLASSES = 1000
_MANY = 20
"""More different labels than this, one of them with a fraction, are a regression's."""
_AT_ONCE = 512
"""Rows that are copied in one go; for each the system brings in 64 kB."""
_EMPTY = ("source_1", "source_2", "target")


@dataclass(frozen=True, eq=False)
class Contents:
    """A file's rows, as a dataset gives them.

    Attributes:
        sha256: of the file's bytes.
        rows: of each domain, in the order of their first rows: where they lie in the file.
        x: all rows, before `fit`.
        y: labels of all rows; rows of no domain have any.
        task: what is to be predicted.
        classes: the names of the classes.
        input: the input of a backbone.
        groups: of all rows, or None.
        shared: whether a group has rows in several domains.
        plan: what became of the columns of a table.
        pages: the mappings of the file that `x` lies in, and of a copy of it; empty if it has memory of its own.
        texts: of all rows, if a column is text.
        unlabelled: domains without any label.
        predictions: another model's outputs for all rows, or None.
    """

    sha256: str
    rows: Mapping[str, Array]
    x: Inputs
    y: Array
    task: Task
    classes: tuple[str, ...]
    input: InputSpec
    groups: Array | None
    shared: bool
    plan: Plan | None = None
    pages: list[mmap.mmap] = field(default_factory=list)
    texts: Array | None = None
    predictions: Array | None = None
    unlabelled: tuple[str, ...] = ()

    def of(self, domain: str) -> Inputs:
        """The rows of a domain, float32; those of an array in a file stay on the disk.

        Raises:
            DataError: they must be copied there, and cannot be.
        """
        x, rows = self.x, self.rows[domain]
        if isinstance(x, np.ndarray) and x.dtype == np.float32 and rows[-1] - rows[0] == len(rows) - 1:
            return x[int(rows[0]) : int(rows[-1]) + 1]
        return x[rows].astype(np.float32, copy=False) if not self.pages else self._in_order[domain]

    def release(self) -> None:
        """Takes the pages of the files out of the process's memory, until they are read again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for pages in self.pages:
                pages.madvise(mmap.MADV_DONTNEED)

    @functools.cached_property
    def _in_order(self) -> dict[str, Array]:
        """A copy domain by domain, float32, in a file without a name, which ends with the process."""
        assert isinstance(self.x, np.ndarray)  # noqa: S101 - since it has pages
        sizes = [len(rows) for rows in self.rows.values()]
        try:
            with tempfile.TemporaryFile() as stream:
                for rows in self.rows.values():
                    for start in range(0, len(rows), _AT_ONCE):
                        stream.write(self.x[rows[start : start + _AT_ONCE]].astype(np.float32).data)
                        self.release()
                stream.flush()
                self.pages.append(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            size = 4 * sum(sizes) * math.prod(self.x.shape[1:])
            what = f"{size >> 20} MiB for its rows by domain cannot be written to {tempfile.gettempdir()}"
            remedy = "make room, set TMPDIR to another folder, or save float32 rows sorted by domain"
            raise DataError(f"{what} ({error.strerror}); {remedy}") from None
        parts = np.split(
            np.frombuffer(self.pages[-1], np.float32).reshape(-1, *self.x.shape[1:]), np.cumsum(sizes)[:-1]
        )
        return dict(zip(self.rows, parts, strict=True))


def pages_of(x: Array) -> list[mmap.mmap]:
    """The mapping of a file that an array lies in; empty if it has memory of its own."""
    base: Any = x
    while isinstance(base, np.ndarray):
        base = base.base
    held = base.obj if isinstance(base, memoryview) else None
    return [held] if isinstance(held, mmap.mmap) else []


@component
class FromFile(Dataset):
    """Domains, classes and groups that one file of the user's names.

    Parameters:
        file: the file, relative to the folder of the suite.
        mode: "regression" predicts a number, "classification" one of the different labels; "auto" predicts a number if
            there are more than 20 different labels and one has a fraction. A suite writes it `task`.
        standardise: "sources" gives each number mean 0 and variance 1 over the training rows of all sources, "domain"
            over those of its own domain, "none" leaves it.
        leave_out: domains that are not read.
        predictions: the column or array of another model's predictions, such as a zero-shot model's, for a row with the
            scheme `given`: classes or numbers; arrays may have a score for each class. No method learns from it.
        unlabelled: "refuse" reports rows without a label; "drop" leaves them out, and so domains without any; "target"
            leaves them out, too, except domains without any, which become targets and are never sources.
    """

    licence = "your data's own"
    source = "a file that you supply"

    train: Size = 0.5
    stratify: bool = True
    file: Annotated[str, Located()] = ""
    mode: Annotated[Mode, Field(validation_alias=AliasChoices("task", "mode"))] = "auto"
    standardise: Standardise = "sources"
    leave_out: tuple[str, ...] = ()
    unlabelled: Literal["refuse", "drop", "target"] = "refuse"
    predictions: str | None = None

    @abstractmethod
    def read(self) -> Contents:
        """What the file holds.

        Raises:
            DataError: one line on a file that cannot be used.
        """

    def contents(self) -> Contents:
        """As `read`, once for equal parameters and an unchanged file."""
        # Other parameters change nothing of it, and may be mappings, which have no hash.
        unset: dict[str, Any] = dict.fromkeys(("test", "target_train", "corrupt", "label_shift"))
        bare = replace(self, train=1, protocol="held_out", **unset)
        return _kept(bare, stamp(Path(self.file)))

    @property
    def domains(self) -> tuple[str, ...]:
        """As the file names them, in the order of their first rows; three made-up names while no file is given."""
        return tuple(self.contents().rows) if self.file else _EMPTY

    @property
    def task(self) -> Task:
        """As the labels are."""
        return self.contents().task if self.file else Task("classification", 2)

    @property
    def input(self) -> InputSpec:
        """As the file's columns are."""
        return self.contents().input if self.file else InputSpec((1,))

    @property
    def shared_groups(self) -> bool:  # type: ignore[override]
        """Whether a group has rows in several domains; False for a file that cannot be read, which others report."""
        try:
            return bool(self.file) and self.contents().shared
        except DataError:
            return False

    @property
    def files(self) -> tuple[File, ...]:
        """None below a data folder; one that stands for yours while no file is given."""
        return () if self.file else (File(f"{self.name}/yours", None, None, ByHand("your own file: give `file`")),)

    @property
    def unlabelled_domains(self) -> tuple[str, ...]:
        """Those without any label, if they may be targets; none in a file that cannot be read, which others report."""
        if not self.file or self.unlabelled != "target":
            return ()
        try:
            return self.contents().unlabelled
        except DataError:
            return ()

    def sources(self) -> dict[str, tuple[str, ...]]:
        """All other domains that have labels."""
        labelled = [domain for domain in self.domains if domain not in self.unlabelled_domains]
        return {target: tuple(source for source in labelled if source != target) for target in self.domains}

    @property
    def gives_predictions(self) -> bool:
        """Whether a part of the file holds them."""
        return self.predictions is not None

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """The rows of each domain.

        Raises:
            DataError: no file is given, or it cannot be used.
        """
        if not self.file:
            raise DataError(f"dataset {self.name}: needs `file`, the path of your file")
        return {domain: len(rows) for domain, rows in self.contents().rows.items()}

    def load(self, domain: str, files: Files) -> DomainData:
        """The rows of a domain in the file's order, float32.

        Raises:
            DataError: the file cannot be used, or has other domains.
        """
        if not self.file:
            raise DataError(f"dataset {self.name}: needs `file`, the path of your file")
        read = self.contents()
        if domain not in read.rows:
            raise DataError(f"{self.file}: has no domain {domain!r}; run the suite again")
        rows = read.rows[domain]
        groups = None if read.groups is None else read.groups[rows]
        texts = None if read.texts is None else read.texts[rows]
        predictions = None if read.predictions is None else read.predictions[rows]
        return DomainData(read.of(domain), read.y[rows], groups=groups, texts=texts, predictions=predictions)

    def fingerprint(self) -> str:
        """Changes with the file's bytes and the parameters."""
        text = super().fingerprint() + (self.contents().sha256 if self.file else "")
        return hashlib.sha256(text.encode()).hexdigest()

    def describe(self) -> tuple[str, ...]:
        """What was found in the file, and what became of each column."""
        read = self.contents()
        sizes = listed([f"{domain} ({len(rows)})" for domain, rows in read.rows.items()])
        what = f"classes: {listed(read.classes, 20)}" if read.classes else "label: a number"
        groups = [] if read.groups is None else [f"groups: {len(np.unique(read.groups))}"]
        lacking = [f"without labels, targets only: {listed(read.unlabelled)}"] if read.unlabelled else []
        return (f"domains: {sizes}", *lacking, what, *groups, *(read.plan.lines() if read.plan is not None else ()))

    @property
    def notes(self) -> tuple[str, ...]:
        """The file, and what became of its columns."""
        if not self.file:
            return ()
        made = self.contents()
        what = f"{self.name}: {Path(self.file).name}, sha256 {made.sha256[:16]}"
        return ("; ".join([what, *self.describe()]) + ".",)


@functools.lru_cache(maxsize=4)
def _kept(data: FromFile, _: tuple[int, int, int]) -> Contents:
    """A few files stay in memory, since each split makes the dataset anew."""
    return data.read()


class RowsError(DataError):
    """What `data identify` mends in a first suite; elsewhere it is a line like others."""

    def __reduce__(self) -> tuple[type[DataError], tuple[str, ...]]:
        return DataError, self.lines


class NoLabelsError(RowsError):
    """Rows have no label."""

    def __init__(self, path: Path, what: str) -> None:
        self.what = what
        remedy = (
            "set `unlabelled: drop` to leave such rows out (docs/own-data.md says what can be known without labels)"
        )
        super().__init__(f"{path}: {what}; {remedy}")


class OneClassError(RowsError):
    """A domain has one class alone."""

    def __init__(self, path: Path, domain: str, label: str) -> None:
        self.domain = domain
        self.what = f"domain {domain!r} has one class alone, {label!r}"
        super().__init__(f"{path}: {self.what}; add rows of another, or name the domain in `leave_out`")


@dataclass(frozen=True)
class Roles:
    """How messages call the parts of a file, such as "column 'site'"."""

    path: Path
    domain: str
    label: str
    group: str


def domains_in(
    roles: Roles, domain: Column, label: Column, *, leave_out: Sequence[str], unlabelled: str
) -> dict[str, Array]:
    """The rows of each domain that have a label; all rows of one without any, if `unlabelled` makes it a target.

    Raises:
        DataError: a row has no domain or, unless those are dropped, no label; or there are too few domains, or too
            many.
    """
    path = roles.path
    if (domain.codes < 0).any():
        raise DataError(f"{path}: row {int(np.argmax(domain.codes < 0)) + 1} has no {roles.domain}; name its domain")
    unknown = [name for name in leave_out if name not in domain.texts]
    if unknown:
        raise DataError(f"{path}: `leave_out` names {unknown[0]!r}; the domains are {listed(domain.texts)}")
    if len(domain.texts) > _MOST_DOMAINS:
        what = f"{roles.domain} has {len(domain.texts)} different values, and at most {_MOST_DOMAINS} can be domains"
        raise DataError(f"{path}: {what}; name another column")
    kept = [place for place, name in enumerate(domain.texts) if name not in leave_out]
    lacking = np.isin(domain.codes, kept) & (label.codes < 0)
    if lacking.any() and unlabelled == "refuse":
        raise NoLabelsError(path, _without_label(roles, domain, lacking))
    rows = {domain.texts[place]: np.flatnonzero((domain.codes == place) & (label.codes >= 0)) for place in kept}
    if unlabelled == "target":
        whole = {domain.texts[place]: np.flatnonzero(domain.codes == place) for place in kept}
        rows = {name: mine if len(mine) else whole[name] for name, mine in rows.items()}
    labelled = {name: mine for name, mine in sorted(rows.items(), key=_first_row) if len(mine)}
    if not (label.codes[np.isin(domain.codes, kept)] >= 0).any():
        raise DataError(f"{path}: has no row with a label; adaptation needs two or more domains ({roles.domain})")
    if len(labelled) < len(("source", "target")):
        what = f"has one domain, {next(iter(labelled))!r}; adaptation needs two or more ({roles.domain})"
        raise DataError(f"{path}: {what}")
    return labelled


def _first_row(item: tuple[str, Array]) -> int:
    return int(item[1][0]) if len(item[1]) else -1


def _without_label(roles: Roles, domain: Column, lacking: Array) -> str:
    row = int(np.argmax(lacking))
    name = domain.texts[int(domain.codes[row])]
    of_it = domain.codes == domain.codes[row]
    who = (
        f"domain {name!r} has no labels at all" if lacking[of_it].all() else f"row {row + 1} (domain {name!r}) has none"
    )
    return f"{int(lacking.sum())} rows have no {roles.label}: {who}"


def labels_in(
    roles: Roles, label: Column, rows: Mapping[str, Array], mode: Mode
) -> tuple[Array, Task, tuple[str, ...]]:
    """Labels of all rows (-1 or NaN where there is none), the task, and the names of the classes.

    Raises:
        DataError: a label is no number in a regression; there are too many classes, or one alone in a domain.
    """
    path, label = roles.path, label.merged()
    numbers = label.numbers()
    lacking = without_labels(rows, label)
    rows = {name: mine for name, mine in rows.items() if name not in lacking}
    used = np.unique(np.concatenate([label.codes[mine] for mine in rows.values()]))
    real = bool(np.isfinite(numbers[used]).all())
    fractions = real and len(used) > _MANY and bool((numbers[used] % 1 != 0).any())
    if mode == "regression" or (mode == "auto" and fractions):
        if not real:
            text = label.texts[int(used[int(np.argmin(np.isfinite(numbers[used])))])]
            raise DataError(f"{path}: {roles.label} holds {text!r}, which is no finite number; correct it")
        values = np.append(numbers, np.nan).astype(np.float32)
        if not np.isfinite(values[used]).all():
            raise DataError(f"{path}: {roles.label} holds numbers that are too large for float32; scale them")
        return values[label.codes], Task("regression"), ()
    if len(used) > _MOST_CLASSES:
        what = f"{roles.label} has {len(used)} different values, and at most {_MOST_CLASSES} can be classes"
        raise DataError(f"{path}: {what}; set `task: regression`, or name another column")
    if len(used) == 1:
        raise DataError(
            f"{path}: {roles.label} is {label.texts[int(used[0])]!r} in all rows; there is nothing to predict"
        )
    order = sorted(used, key=lambda place: (numbers[place] if real else 0, label.texts[place]))
    places = np.full(len(label.texts) + 1, -1, np.int64)
    places[order] = np.arange(len(order))
    for name, mine in rows.items():
        if len(kinds := np.unique(label.codes[mine])) == 1:
            raise OneClassError(path, name, label.texts[int(kinds[0])])
    classes = tuple(label.texts[place] for place in order)
    return places[label.codes], Task("classification", len(classes)), classes


def without_labels(rows: Mapping[str, Array], label: Column) -> tuple[str, ...]:
    """The domains without any label."""
    return tuple(name for name, mine in rows.items() if (label.codes[mine] < 0).all())


def predictions_in(
    path: Path, part: str, column: Column, rows: Mapping[str, Array], task: Task, classes: tuple[str, ...]
) -> Array:
    """Outputs of all rows: 1 for the predicted class, or the predicted number; NaN for a row without a prediction.

    Raises:
        DataError: a row predicts no class, or no number.
    """
    column = column.merged()
    used = np.unique(np.concatenate([column.codes[mine] for mine in rows.values()]))
    used = used[used >= 0]
    if task.kind == "regression":
        outputs = np.append(column.numbers(), np.nan).astype(np.float32)[:, None]
        wrong, what = ~np.isfinite(outputs[used, 0]), "which is no finite number"
    else:
        outputs = np.full((len(column.texts) + 1, len(classes)), np.nan, np.float32)
        for place, text in enumerate(column.texts):
            outputs[place] = [name == text for name in classes]
        wrong, what = ~(outputs[used] == 1).any(1), f"which is none of the classes {listed(classes, 20)}"
    if wrong.any():
        text = column.texts[int(used[int(np.argmax(wrong))])]
        raise DataError(f"{path}: {part} holds {text!r}, {what}; correct it, or leave it empty")
    return outputs[column.codes]


def groups_in(roles: Roles, group: Column | None, rows: Mapping[str, Array]) -> tuple[Array | None, bool]:
    """The group of each row, and whether one has rows in several domains.

    Raises:
        DataError: a row has no group, or all rows of a domain are of one.
    """
    if group is None:
        return None, False
    by = {name: np.unique(group.codes[mine]) for name, mine in rows.items()}
    for name, kinds in by.items():
        if kinds[0] < 0:
            row = int(rows[name][int(np.argmax(group.codes[rows[name]] < 0))])
            raise DataError(f"{roles.path}: row {row + 1} has no {roles.group}; give each row a group, even its own")
        if len(kinds) == 1:
            what = f"all rows of domain {name!r} are of one group, {group.texts[int(kinds[0])]!r}"
            raise DataError(f"{roles.path}: {what}, so they cannot be split; name another {roles.group}")
    names = np.array([*group.texts, ""], np.str_)
    return names[group.codes], len(np.unique(np.concatenate(list(by.values())))) < sum(map(len, by.values()))
