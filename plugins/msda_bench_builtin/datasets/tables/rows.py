"""The base of tables and arrays: datasets whose domains, labels and groups stand in one file of the user."""

from __future__ import annotations

import functools
import hashlib
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AliasChoices, Field

from msda_bench.api import (
    AddedLater,
    Array,
    ByHand,
    DataError,
    Dataset,
    DomainData,
    Extent,
    File,
    FilePath,
    Files,
    Identified,
    Inputs,
    InputSpec,
    Size,
    Stratify,
    Task,
    component,
)
from msda_bench.functional import MISSING_TEXTS
from msda_bench_builtin.datasets.tables.columns import Plan, Standardise
from msda_bench_builtin.datasets.tables.folder import stamp
from msda_bench_builtin.datasets.tables.official import named_in
from msda_bench_builtin.datasets.tables.parts import Mode, Parts, Roles, Unlabelled, parts_of
from msda_bench_builtin.datasets.tables.texts import names_text

_EMPTY = ("source_1", "source_2", "target")


@dataclass(frozen=True, eq=False, kw_only=True)
class Contents(Parts):
    """A file's rows, as a dataset gives them.

    Attributes:
        sha256: of the file's bytes.
        x: all rows, before `fit`.
        input: the input of a backbone.
        plan: what became of the columns of a table.
        texts: of all rows, if a column is text.
        dtype: of a domain's rows; float64 if float32 would lose digits that standardising needs.
        predictions: another model's outputs for all rows, or None.
        odd: doubts about the inputs, a line each.
    """

    sha256: str
    x: Inputs
    input: InputSpec
    plan: Plan | None = None
    texts: Array | None = None
    predictions: Array | None = None
    dtype: type[np.floating[Any]] = np.float32
    odd: tuple[str, ...] = ()


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
        missing: texts that stand for a missing value besides the empty one; `COLUMN=TEXT` in one column alone.
        predictions: the column or array of another model's predictions, such as a zero-shot model's, for a row with the
            scheme `given`: classes or numbers; arrays may have a score for each class. No method learns from it.
        test_rows: the column or array that marks official test rows, and its values that do, such as `split=test`; the
            values may be left out if they are called as usual. In a domain that has some these are the test of each
            run, and `train` is of its other rows. None draws the test of each run.
        unlabelled: "refuse" reports rows without a label; "drop" leaves them out, and so domains without any; "target"
            leaves them out, too, except domains without any, which become targets and are never sources.
    """

    licence = "your data's own"
    source = "a file that you supply"
    endings: ClassVar[tuple[str, ...]]
    """The endings of the files that are read."""

    train: Size = 0.5
    stratify: Stratify = True
    file: Annotated[str, FilePath()] = ""
    mode: Annotated[Mode, Field(validation_alias=AliasChoices("task", "mode"))] = "auto"
    standardise: Standardise = "sources"
    leave_out: tuple[str, ...] = ()
    missing: Annotated[tuple[str, ...], AddedLater()] = MISSING_TEXTS
    unlabelled: Unlabelled = "refuse"
    predictions: str | None = None
    test_rows: Annotated[str | None, AddedLater()] = None

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.file)

    def reads(self) -> tuple[str, ...]:
        """How the files that are read end."""
        return self.endings

    def marking(self, held: Collection[str]) -> str | None:
        """The one of these columns or arrays that marks official test rows; None without `test_rows`."""
        return None if self.test_rows is None else named_in(self.test_rows, held)[0]

    @abstractmethod
    def looked_through(self, given: dict[str, Any], lines: list[str], *, says_test: bool) -> Identified:
        """What `data identify` says, with the parameters that answer the doubts about columns or arrays.

        Args:
            given: the parameters so far.
            lines: what was found so far.
            says_test: whether the user says which rows are official test rows, or that none are.
        """

    @abstractmethod
    def roles(self) -> Roles:
        """The columns of domains, labels and groups.

        Raises:
            DataError: one line on a file that cannot be used.
        """

    def parts(self) -> Parts:
        """The domains, labels and groups that the file holds; raises as `roles`."""
        return parts_of(self.roles(), leave_out=self.leave_out, unlabelled=self.unlabelled, mode=self.mode)

    @abstractmethod
    def read(self) -> Contents:
        """All that the file holds; raises as `roles`."""

    def contents(self) -> Contents:
        """What `read` returns; it is called once for equal parameters and an unchanged file.

        Raises:
            DataError: no file is given, or it cannot be used.
        """
        if not self.file:
            raise DataError(f"dataset {self.name}: needs `file`, the path of your file")
        # Other parameters change nothing of it, and may be mappings, which have no hash.
        unset: dict[str, Any] = dict.fromkeys(("test", "target_train", "corrupt", "label_shift"))
        bare = replace(self, train=1, protocol="held_out", duplicates="keep", **unset)
        return _kept(bare, stamp(self.path, self.reads()))

    @property
    def domains(self) -> tuple[str, ...]:
        """The names in the file, in the order of their first rows; three made-up names while no file is given."""
        return tuple(self.contents().rows) if self.file else _EMPTY

    @property
    def task(self) -> Task:
        """Classification or regression, depending on the labels."""
        return self.contents().task if self.file else Task("classification", 2)

    @property
    def input(self) -> InputSpec:
        """The input that follows from the file's columns."""
        return self.contents().input if self.file else InputSpec((1,))

    @property
    def shared_groups(self) -> bool:  # type: ignore[override]
        """Whether a group has rows in several domains; False for a file that cannot be read, which others report."""
        try:
            return self.contents().shared
        except DataError:
            return False

    @property
    def files(self) -> tuple[File, ...]:
        """No file below a data folder; a placeholder for yours while no file is given."""
        return () if self.file else (File(f"{self.name}/yours", None, None, ByHand("your own file: give `file`")),)

    @property
    def unlabelled_domains(self) -> tuple[str, ...]:
        """The domains without any label, if they may be targets; none in a file that cannot be read."""
        try:
            return self.contents().unlabelled if self.unlabelled == "target" else ()
        except DataError:
            return ()

    def sources(self) -> dict[str, tuple[str, ...]]:
        """All other domains that have labels."""
        unlabelled = self.unlabelled_domains
        labelled = [domain for domain in self.domains if domain not in unlabelled]
        return {target: tuple(source for source in labelled if source != target) for target in self.domains}

    @property
    def gives_predictions(self) -> bool:
        """Whether a part of the file holds them."""
        return self.predictions is not None

    def sizes(self, files: Files | None = None) -> dict[str, Extent]:
        """The rows of each domain, or (training, test) if some are official test rows; raises as `contents`."""
        read = self.contents()
        sizes: dict[str, Extent] = {}
        for domain, rows in read.rows.items():
            tested = 0 if read.test is None else int(read.test[rows].sum())
            sizes[domain] = (len(rows) - tested, tested) if tested else len(rows)
        return sizes

    def load(self, domain: str, files: Files) -> DomainData:
        """The rows of a domain in the file's order, float32, or float64 where `fit` needs more digits."""
        read = self.contents()
        if domain not in read.rows:
            raise DataError(f"{self.file}: has no domain {domain!r}; run the suite again")
        rows = read.rows[domain]
        first, last = rows[0], rows[-1]
        lie_together = last - first == len(rows) - 1  # then they need no copy
        x = read.x[slice(first, last + 1) if lie_together else rows].astype(read.dtype, copy=False)
        test, groups, texts, predictions = (
            None if values is None else values[rows]
            for values in (read.test, read.groups, read.texts, read.predictions)
        )
        if test is not None and not test.any():
            test = None
        places = read.places.get(domain)
        return DomainData(x, read.y[rows], test, None, groups, texts, predictions, places)

    def fingerprint(self) -> str:
        """Changes with the file's bytes and the parameters."""
        text = super().fingerprint() + (self.contents().sha256 if self.file else "")
        return hashlib.sha256(text.encode()).hexdigest()

    def describe(self) -> tuple[str, ...]:
        """What was found in the file, and what became of each column."""
        read = self.contents()
        sizes = names_text([f"{domain} ({len(rows)})" for domain, rows in read.rows.items()])
        lines = [f"domains: {sizes}"]
        if read.unlabelled:
            lines.append(f"without labels, targets only: {names_text(read.unlabelled)}")
        lines.append(f"classes: {names_text(read.classes, 20)}" if read.classes else "label: a number")
        if read.groups is not None:
            lines.append(f"groups: {len(np.unique(read.groups))}")
        gaps = [item for item in self.missing if item not in MISSING_TEXTS]
        if gaps:
            lines.append(f"missing values are written {names_text(gaps)}")
        lines += [f"odd: {doubt}" for doubt in read.doubts()]
        lines += [*read.odd, *read.remarks()]
        if read.plan is not None:
            lines += read.plan.lines()
        return tuple(lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """The file, and what became of its columns."""
        if not self.file:
            return ()
        made = self.contents()
        what = f"{self.name}: {self.path.name}, sha256 {made.sha256[:16]}"
        return ("; ".join([what, *self.describe()]) + ".",)


@functools.lru_cache(maxsize=4)
def _kept(data: FromFile, _: tuple[int, ...]) -> Contents:
    """A few files stay in memory, since each split creates the dataset again."""
    return data.read()
