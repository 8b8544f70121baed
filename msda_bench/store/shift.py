"""The picture of how the inputs of domains differ: points kept beside the records, so that a page needs no data."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from msda_bench.atomic import named, read_file, write

SHIFT = "shift.json"
MOST_DOMAINS = 60
"""The maximum number of domains in a picture."""
MOST_POINTS = 1200
"""The maximum number of points in a picture, of all domains together."""
_MOST_BYTES = 1 << 24
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Point = tuple[_Number, _Number]


class Cloud(BaseModel):
    """A domain's rows, or a sample of them, as points: the two components of each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    domain: str
    points: Annotated[tuple[_Point, ...], Field(min_length=1, max_length=MOST_POINTS)]


class Shift(BaseModel):
    """Two principal components of the inputs of an experiment's domains.

    Attributes:
        data: what the picture was made from; another value means that it is out of date.
        of: what the components are of, such as pixels.
        explained: the share of the variance of the sampled rows that each component has.
        clouds: the domains.
        left_out: how many domains are not in it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: Annotated[str, Field(max_length=200)]
    of: Annotated[str, Field(max_length=200)]
    explained: _Point
    clouds: Annotated[tuple[Cloud, ...], Field(min_length=2, max_length=MOST_DOMAINS)]
    left_out: Annotated[int, Field(ge=0)] = 0


def read_shifts(folder: Path) -> dict[str, Shift]:
    """The pictures of a result folder, by experiment; none where there is no file, or another than ours."""
    with contextlib.suppress(OSError, ValidationError):
        return _pictures().validate_json(read_file(folder / SHIFT, _MOST_BYTES))
    return {}


def write_shifts(folder: Path, shifts: Mapping[str, Shift]) -> None:
    """Keeps the pictures, in the place of earlier ones.

    Raises:
        StoreError: the folder cannot be written.
    """
    path = folder / SHIFT
    with named(path, "cannot be written, what was there before is intact"):
        write(path, _pictures().dump_json(dict(shifts)))


def _pictures() -> TypeAdapter[dict[str, Shift]]:
    return TypeAdapter(dict[str, Shift])
