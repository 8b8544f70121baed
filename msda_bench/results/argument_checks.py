"""Checks the arguments of public functions before they are used; an error is one line that names the parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
from pandas.api.types import is_numeric_dtype
from pydantic import ConfigDict, TypeAdapter, ValidationError

_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)
_MOST = 3
"""The most missing columns that an error names."""


@dataclass(frozen=True)
class FrameSchema:
    """The columns of a data frame that public functions take, all by a parameter of this name.

    Of the columns that it needs, `texts` hold a text in every row, and `numbers` numbers or nothing. The function
    `maker` makes such a frame, and so does `read` from a result folder.
    """

    parameter: str
    maker: str
    columns: Sequence[str]
    texts: Sequence[str]
    numbers: Sequence[str]
    read: Callable[[str | Path], pd.DataFrame]

    def take(self, value: object) -> pd.DataFrame:
        """The frame, or that of a result folder.

        Raises:
            TypeError: it is neither a path nor a frame.
            ValueError: the frame lacks a column, or has another type of values in one.
            BenchError: the folder cannot be read.
        """
        if isinstance(value, str | Path):
            return self.read(argument(self.parameter, value, str | Path))
        if not isinstance(value, pd.DataFrame):
            what = f"must be a result folder or a frame from {self.maker}"
            raise TypeError(f"{self.parameter}: {what}, not {_shown(value)}")
        self._check(value)
        return value

    def _check(self, value: pd.DataFrame) -> None:
        lacking = [repr(name) for name in self.columns if name not in value.columns]
        if len(lacking) > _MOST:
            self.refuse(f"lacks {', '.join(lacking[:_MOST])}, ...")
        if lacking:
            self.refuse(f"lacks {', '.join(lacking)}")
        if not value.columns.is_unique:
            self.refuse("has two columns of one name")
        for name in self.texts:
            if not all(isinstance(text, str) for text in value[name].unique()):
                self.refuse(f"has other values than texts in {name!r}")
        for name in self.numbers:
            if not _are_numbers(value[name]):
                self.refuse(f"has other values than numbers in {name!r}")

    def refuse(self, why: str) -> NoReturn:
        """Raises ValueError."""
        raise ValueError(f"{self.parameter}: the frame {why}; give one from {self.maker}, or some of its rows")


def _are_numbers(column: pd.Series[Any]) -> bool:
    """Whether a column has numbers, or None, alone."""
    if is_numeric_dtype(column):
        return True
    return all(value is None or isinstance(value, Real) for value in column)


def argument(name: str, value: Any, kind: Any) -> Any:
    """A value of this type, numpy's numbers as Python's.

    Raises:
        TypeError: it has another type.
        ValueError: it is out of range, or unknown.
    """
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, str | Path) and "\0" in str(value):
        raise ValueError(f"{name}: {str(value)[:80]!r} has a null character")
    try:
        return TypeAdapter(kind, config=_STRICT).validate_python(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    why = " or ".join(dict.fromkeys(fault["msg"].removeprefix("Input should be ") for fault in faults))
    of_type = all(fault["type"].endswith("_type") or fault["type"].startswith("is_") for fault in faults)
    raise (TypeError if of_type else ValueError)(f"{name}: must be {why}, not {_shown(value)}")


def _shown(value: object) -> str:
    plain = value is None or isinstance(value, str | int | float)
    return repr(value)[:80] if plain else f"a {type(value).__name__}"
