"""A trained method of a suite that predicts the rows of new files and can be stored by joblib."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from msda_bench.api import Array, BenchError, DataError, DomainData, NewRows, NewRowsReader
from msda_bench.data import LocalFiles
from msda_bench.engine.final import FinalModel
from msda_bench.errors import printable
from msda_bench.suite.run_spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

New: TypeAlias = "str | Path | pd.DataFrame | Mapping[str, Array]"
"""New rows: a file or folder, or a table or arrays of this session."""
PREDICTED = "predicted"
"""The column of predictions."""
PROBABILITY = "probability_"
"""Begins the names of columns with the probability of a class."""
FEW = 20
"""Fewer rows are too few to adapt to."""


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """A method of a suite, trained on every labelled row of the suite's data.

    Files are read, checked and made numbers as the suite's own data were. `joblib.dump` stores it, and `joblib.load`
    reads it where the same packages are installed; like each pickle, it is to be loaded from those you trust alone.

    Attributes:
        method: its name in the suite.
        target: the domain to whose rows it adapts; None for a method that looks at none.
        weights: of each source in training, in sum 1, as in a record.
        reader: what reads new files.
        model: the trained model.
        device: where it was trained; it predicts on the CPU where no GPU is.
    """

    method: str
    target: str | None
    weights: dict[str, float]
    reader: NewRowsReader
    model: FinalModel
    device: str

    @property
    def classes_(self) -> Array:
        """The names of the classes, in the order of `predict_proba`.

        Raises:
            AttributeError: it predicts numbers.
        """
        if not self.reader.classes:
            raise AttributeError(f"{self.method} predicts numbers, not classes")
        return np.array(self.reader.classes, object)

    def predict(self, new: New) -> Array:
        """The prediction for each new row: (n,) names of classes, or float64 numbers.

        Rows count as the target's, whatever domain they name. What is doubtful about them is a UserWarning.

        Args:
            new: a file or folder; for a suite of a table also a data frame, of arrays a mapping of them by name.

        Raises:
            DataError: a line for each reason why the rows cannot be answered right.
        """
        return self.named(self.outputs(self._read(new).data))

    def predict_proba(self, new: New) -> Array:
        """The probability of each class, (n, classes) float64; the rest as `predict`.

        Raises:
            AttributeError: it predicts numbers.
            DataError: as `predict`.
        """
        if not self.reader.classes:
            raise AttributeError(f"{self.method} predicts numbers, not classes")
        return shares_of(self.outputs(self._read(new).data))

    def answers(self, new: New) -> pd.DataFrame:
        """The frame that `msda-bench predict` writes; see `answers_frame`. The rest as `predict`."""
        rows = self._read(new)
        return answers_frame(rows, self.reader.classes, self.outputs(rows.data))

    def outputs(self, data: DomainData) -> Array:
        """The outputs (n, outputs) float64 of rows that the reader has read: logits, or numbers."""
        device = self.device
        if device != "cpu":
            import torch

            device = device if torch.cuda.is_available() else "cpu"
        return self.model.outputs(data, LocalFiles(dataset=self.model.cell.dataset.name), device)

    def named(self, outputs: Array) -> Array:
        """The predictions in the words of the user's file."""
        if not self.reader.classes:
            return outputs[:, 0]
        return self.classes_[outputs.argmax(1)]  # type: ignore[no-any-return]

    def _read(self, new: New) -> NewRows:
        with as_path(new) as path:
            rows = read_new(self.reader, path)
        for line in doubts_about(rows, self.model.cell):
            warnings.warn(printable(line), stacklevel=3)
        return rows


@contextmanager
def as_path(new: New) -> Iterator[Path]:
    """A path to new rows; those of this session are in a file until the block ends."""
    if isinstance(new, str | Path):
        yield Path(new)
        return
    with TemporaryDirectory() as folder:
        if isinstance(new, Mapping):
            path = Path(folder, "new.npz")
            np.savez(path, **new)  # type: ignore[arg-type]  # numpy's stub takes `allow_pickle` for one of the arrays
        else:
            path = Path(folder, "new.csv")
            new.to_csv(path, index=False)
        yield path


def doubts_about(rows: NewRows, cell: RunSpec) -> tuple[str, ...]:
    """The warnings about new rows that apply to a method."""
    return rows.lines if cell.standardise == "domain" else (*rows.lines, *rows.units)


def read_new(reader: NewRowsReader, path: Path) -> NewRows:
    """The rows of a new file or folder.

    Raises:
        DataError: it is not there, has no rows, or a line for each reason why they cannot be answered right.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    rows = reader.read(path, LocalFiles())
    if not len(rows.data.y):
        raise DataError(f"{path}: has no rows")
    taken = [PREDICTED, *(f"{PROBABILITY}{name}" for name in reader.classes)]
    for name in taken:
        if name in rows.beside:
            raise DataError(f"{path}: column {name!r} is also the name of a column of answers; rename it")
    return rows


def targets_in(rows: NewRows, path: Path) -> dict[str, Array]:
    """The places of the rows of each domain, in the order of their first rows; one of the file's name if none is named.

    Raises:
        BenchError: there are more than 500.
    """
    if rows.domains is None:
        return {path.name.partition(".")[0] or "new": np.arange(len(rows.data.y))}
    names = dict.fromkeys(rows.domains.tolist())
    return {name: np.flatnonzero(rows.domains == name) for name in names}


def few_lines(method: str, targets: dict[str, Array]) -> list[str]:
    """A line on domains with so few rows that a method can hardly adapt to them."""
    few = [f"{name} ({len(places)})" for name, places in targets.items() if len(places) < FEW]
    if not few:
        return []
    return [f"{method} adapts to the new rows, and there are few in {', '.join(few)}; give it {FEW} or more"]


def rows_at(data: DomainData, places: Array) -> DomainData:
    """Some rows of a domain."""
    texts = None if data.texts is None else data.texts[places]
    whole = len(places) == len(data.y)
    return replace(data, x=data.x[places], y=data.y[places], texts=texts, identity=data.identity if whole else None)


def shares_of(outputs: Array) -> Array:
    """Probabilities from logits, (n, classes)."""
    from scipy.special import softmax

    shares: Array = softmax(outputs, axis=1)
    return shares


def answers_frame(rows: NewRows, classes: tuple[str, ...], outputs: Array) -> pd.DataFrame:
    """The answers: a row for each of the new ones, in their order.

    Columns that no model looks at come first, as texts, then `predicted`: the class as the suite's data name it, with
    a column `probability_CLASS` for each class; or the number, in the unit of the suite's data.

    Raises:
        BenchError: two columns would have the same name.
    """
    import pandas as pd

    made: dict[str, object] = dict(rows.beside)
    if not classes:
        return pd.DataFrame({**made, PREDICTED: outputs[:, 0]})
    made[PREDICTED] = np.array(classes, object)[outputs.argmax(1)]
    shares = shares_of(outputs)
    made |= {f"{PROBABILITY}{name}": shares[:, number] for number, name in enumerate(classes)}
    return pd.DataFrame(made)


def refuse_several(method: str, targets: dict[str, Array], path: Path) -> None:
    """Refuses a file of several domains where one model is to adapt to one.

    Raises:
        BenchError: it has several.
    """
    if len(targets) > 1:
        what = f"{path}: has {len(targets)} domains, and {method} adapts to one"
        raise BenchError(f"{what}; give the rows of one (`msda-bench predict` fits a model for each)")
