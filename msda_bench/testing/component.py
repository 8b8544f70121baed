"""What every component promises, whatever its kind."""

from __future__ import annotations

import pickle
from typing import ClassVar

from msda_bench.api import Component
from msda_bench.plugins import Entry
from msda_bench.plugins.discover import NAME

_IN_MODULES = (
    "for dropout use msda_bench.api.Dropout in place of torch.nn.Dropout; for other random numbers "
    "msda_bench.functional.uniform with the key of a msda_bench.api.StepKey module"
)


class ComponentContract:
    """Base of the contracts; subclass the one of your component's kind.

    Attributes:
        component: the component under test.
        draws: how a component of its kind draws random numbers, for a message.
    """

    component: ClassVar[Component]
    draws: ClassVar[str] = _IN_MODULES

    @property
    def who(self) -> str:
        """The component, for messages."""
        return f"{self.component.kind} {self.component.name!r}"

    def test_is_described(self) -> None:
        """It has a name that suites can write, a version of at least 1 and a docstring."""
        cls = type(self.component)
        name = getattr(cls, "name", None)
        assert isinstance(name, str), f"{cls.__name__}.name is {name!r}; the contract asks for a string"
        assert NAME.fullmatch(name), f"{cls.__name__}.name is {name!r}; the contract asks for {NAME.pattern}"
        assert type(cls.version) is int, f"{self.who}: version is {cls.version!r}; the contract asks for an integer"
        assert cls.version >= 1, f"{self.who}: version is {cls.version}; the contract asks for at least 1"
        assert cls.__doc__, f"{self.who} has no docstring; its first line is what `msda-bench plugins` shows"

    def test_parameters_round_trip(self) -> None:
        """A component made from its own parameters, as a suite would, is the same."""
        cls = type(self.component)
        decorated = "__pydantic_validator__" in vars(cls)
        assert decorated, f"{cls.__name__} is not decorated with @component; the contract asks for it"
        params = self.component.params()
        again = Entry(self.component.kind, cls, "", "").create(params)
        assert again == self.component, f"{self.who} made from its own params() {params} is not the same: {again}"

    def test_pickles(self) -> None:
        """It survives pickling, so that it can be sent to another process."""
        again = pickle.loads(pickle.dumps(self.component))  # noqa: S301 - bytes made in this very line
        assert again == self.component, f"{self.who} is not the same after pickling: {again}"
