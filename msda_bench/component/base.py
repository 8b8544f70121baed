"""What every component is: a frozen, validated set of parameters with a name and a version."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as validated_dataclass

Count = Annotated[int, Field(ge=1)]
"""A whole number of at least 1."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A finite number above 0."""
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A finite number of at least 0."""
Rate = Annotated[float, Field(ge=0, lt=1)]
"""A number in [0, 1), such as a dropout rate."""

_C = TypeVar("_C")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def component(cls: type[_C]) -> type[_C]:
    """Makes a class a frozen dataclass whose fields are validated when it is built.

    The fields are the parameters that a suite may set; pydantic checks their types strictly, so
    `Sharpmax(gamma=-1.0)` raises `pydantic.ValidationError`, whether Python or a suite says it.
    """
    config = ConfigDict(extra="forbid", strict=True)
    made: type[_C] = validated_dataclass(frozen=True, kw_only=True, config=config)(cls)  # type: ignore[assignment]
    return made


class Component:
    """Base of all components.

    Attributes:
        kind: which of the six kinds it is; set by the kind's base class.
        name: how a suite names it; `[A-Za-z0-9][A-Za-z0-9_.-]{0,63}`.
        version: raised by its author whenever the numbers it gives change; part of every cell's key.
        stackable: False when its code branches on tensor values and so must train alone.
        stacked: of an aggregator or a scheme, names of float parameters that its code uses in tensor arithmetic alone;
            runs with different values then train in one stack, and each sees its own as a 0-dimensional tensor.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    version: ClassVar[int] = 1
    stackable: ClassVar[bool] = True
    stacked: ClassVar[tuple[str, ...]] = ()

    def params(self) -> dict[str, Any]:
        """The parameters as plain JSON values, defaults included."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = {field.name: getattr(self, field.name) for field in fields}
        plain: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False))
        return plain

    @classmethod
    def description(cls) -> str:
        """The first line of the class's docstring."""
        lines = (cls.__doc__ or "").strip().splitlines()
        return lines[0] if lines else ""
