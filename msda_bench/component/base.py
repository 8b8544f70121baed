"""The base of all components: a frozen, validated set of parameters with a name and a version."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as validated_dataclass
from pydantic.fields import FieldInfo

Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
"""A whole number of at least 1."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A finite number above 0."""
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A finite number of at least 0."""
Rate = Annotated[float, Field(ge=0, lt=1)]
"""A number in [0, 1), such as a dropout rate."""
PLAIN_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
"""The pattern of names of components, suites and methods."""


@dataclasses.dataclass(frozen=True)
class AddedLater:
    """Marks a parameter that was added to a released component, in `Annotated[TYPE, AddedLater()] = DEFAULT`.

    At its default such a parameter is not part of the keys of runs and the fingerprints of datasets, so results stored
    before it existed are still found. Its default must therefore give the numbers of that time; when they change, raise
    the component's `version` as for any other change. With `AddedLater(VALUE)` it is this plain JSON value, and not the
    default, that gives them.
    """

    before: Any = ...


@dataclasses.dataclass(frozen=True)
class FilePath:
    """Marks a text parameter that names a file of the user's, in `Annotated[str, FilePath()]`.

    A suite names it relative to its own folder, and the component gets the absolute path. Where a file lies changes no
    number, so that the parameter is in no key; its bytes must be in the dataset's fingerprint.
    """


_C = TypeVar("_C")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def component(cls: type[_C]) -> type[_C]:
    """Makes a class a frozen dataclass whose fields are validated when it is built.

    The fields are the parameters that a suite may set; pydantic checks their types strictly. `Sharpmax(gamma=-1.0)`
    raises `pydantic.ValidationError`, in Python and in a suite.

    Raises:
        TypeError: a parameter is marked as `AddedLater` but has no default.
    """
    config = ConfigDict(extra="forbid", strict=True)
    made: type[_C] = validated_dataclass(frozen=True, kw_only=True, config=config)(cls)  # type: ignore[assignment]
    for name, info, _ in _marked(made, AddedLater):
        if info.is_required():
            raise TypeError(f"{cls.__name__}.{name} is marked as AddedLater and so needs a default")
    return made


def _marked(cls: type, kind: type[_C]) -> Iterator[tuple[str, FieldInfo, _C]]:
    """The fields of a pydantic class with marks of a kind, and these marks."""
    fields: dict[str, FieldInfo] = cls.__pydantic_fields__  # type: ignore[attr-defined]
    for name, info in fields.items():
        for mark in info.metadata:
            if isinstance(mark, kind):
                yield name, info, mark


def path_parameters(cls: type) -> frozenset[str]:
    """The parameters of a component that are marked as `FilePath`."""
    return frozenset(name for name, _, _ in _marked(cls, FilePath))


def without_added(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """The plain values of a pydantic class that are part of keys: `AddedLater` ones only where they change numbers."""
    before = before_added(cls)
    return {name: value for name, value in values.items() if (name, value) not in before.items()}


def before_added(cls: type) -> dict[str, Any]:
    """The plain values of a pydantic class's `AddedLater` parameters that are part of no key."""
    before = {}
    for name, info, mark in _marked(cls, AddedLater):
        before[name] = info.get_default(call_default_factory=True) if mark.before is ... else mark.before
    return _plain(before)


class Component:
    """Base of all components.

    Attributes:
        kind: one of the seven kinds; set by the kind's base class.
        name: its name in a suite; `[A-Za-z0-9][A-Za-z0-9_.-]{0,63}`.
        version: its author raises it whenever its numbers change; part of every cell's key.
        stackable: False when its code branches on tensor values and so must train alone.
        capturable: of a backbone or a scheme, True when its step, its `after_step` and the layers that it builds keep
            nothing in Python, such as a count of calls, so that a CUDA graph may record them. What stacks and is of
            this package is recorded without it.
        stacked: of an aggregator or a scheme, names of float parameters that its code uses in tensor arithmetic only;
            runs with different values then train in one stack, and each sees its value as a 0-dimensional tensor.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    version: ClassVar[int] = 1
    stackable: ClassVar[bool] = True
    capturable: ClassVar[bool] = False
    stacked: ClassVar[tuple[str, ...]] = ()

    def params(self) -> dict[str, Any]:
        """The parameters as plain JSON values, defaults included."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = {field.name: getattr(self, field.name) for field in fields}
        return _plain(values)

    def identity(self) -> dict[str, Any]:
        """The parameters in keys and fingerprints: not `FilePath` ones, nor `AddedLater` ones at their default.

        A dataset that overrides `fingerprint` includes these.
        """
        paths = path_parameters(type(self))
        values = {name: value for name, value in self.params().items() if name not in paths}
        return without_added(type(self), values)

    def file_paths(self) -> dict[str, str]:
        """The `FilePath` parameters: paths on this machine."""
        return {name: getattr(self, name) for name in sorted(path_parameters(type(self)))}

    @classmethod
    def description(cls) -> str:
        """The first line of the class's docstring."""
        lines = (cls.__doc__ or "").strip().splitlines()
        return lines[0] if lines else ""


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False))
    return plain
