"""Datasets whose domains, labels and groups one file of the user's names: what tables and arrays have in common."""

from __future__ import annotations

import functools
import hashlib
import math
import mmap
import tempfile
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AliasChoices, Field

from msda_bench.api import (
    Added,
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
from msda_bench.functional import MISSING_TEXTS
from msda_bench_builtin.datasets.tables.columns import Plan, Standardise
from msda_bench_builtin.datasets.tables.parts import Mode, Parts, Unlabelled
from msda_bench_builtin.datasets.tables.read import listed, stamp

_AT_ONCE = 512
"""Rows that are copied in one go; for each the system brings in 64 kB."""
_EMPTY = ("source_1", "source_2", "target")


@dataclass(frozen=True, eq=False, kw_only=True)
class Contents(Parts):
    """A file's rows, as a dataset gives them.

    Attributes:
        sha256: of the file's bytes.
        x: all rows, before `fit`.
        input: the input of a backbone.
        plan: what became of the columns of a table.
        pages: the mappings of the file that `x` lies in, and of a copy of it; empty if it has memory of its own.
        texts: of all rows, if a column is text.
        predictions: another model's outputs for all rows, or None.
    """

    sha256: str
    x: Inputs
    input: InputSpec
    plan: Plan | None = None
    pages: list[mmap.mmap] = field(default_factory=list)
    texts: Array | None = None
    predictions: Array | None = None

    def lines(self) -> list[str]:
        """What should be looked at, and what became of each column."""
        return [*self.doubts(), *(self.plan.lines() if self.plan else ())]

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
        missing: texts that stand for a missing value besides the empty one.
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
    missing: Annotated[tuple[str, ...], Added()] = MISSING_TEXTS
    unlabelled: Unlabelled = "refuse"
    predictions: str | None = None

    @abstractmethod
    def parts(self) -> Parts:
        """The domains, labels and groups that the file holds.

        Raises:
            DataError: one line on a file that cannot be used.
        """

    @abstractmethod
    def read(self) -> Contents:
        """All that the file holds; raises as `parts`."""

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
        return DomainData(
            read.of(domain),
            read.y[rows],
            groups=groups,
            texts=texts,
            predictions=predictions,
            places=read.places.get(domain),
        )

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
        return (f"domains: {sizes}", *lacking, what, *groups, *read.lines())

    @property
    def notes(self) -> tuple[str, ...]:
        """The file, and what became of its columns."""
        if not self.file:
            return ()
        made = self.contents()
        what = f"{self.name}: {Path(self.file).name}, sha256 {made.sha256[:16]}"
        return ("; ".join([what, *self.describe()]) + ".",)


@functools.lru_cache(maxsize=4)
def _kept(data: FromFile, _: tuple[int, ...]) -> Contents:
    """A few files stay in memory, since each split makes the dataset anew."""
    return data.read()
