"""Parses commands, and suggests the intended word for a misspelt command or option."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - argparse gives it no other name


class Parser(argparse.ArgumentParser):
    """A parser that suggests the intended word.

    Attributes:
        elsewhere: suggestions for options that belong to another option of this command.
        filler: adds the arguments when they are first needed, so that no other command's are imported.
    """

    elsewhere: Mapping[str, str] = {}
    filler: Callable[[Parser], None] | None = None

    def fill(self) -> None:
        """Adds the arguments, if they are not there yet."""
        filler, self.filler = self.filler, None
        if filler is not None:
            filler(self)

    def parse_known_args(  # type: ignore[override]  # typeshed has a form for each kind of namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses unknown options, since only this parser knows the command's options."""
        self.fill()
        parsed, unknown = super().parse_known_args(args, namespace)
        options = [word for word in unknown if word.startswith("--")]
        if options:
            self.error(f"unknown option {options[0]}{self._meant(options[0].partition('=')[0])}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [choice for choice in action.choices or () if isinstance(choice, str)]
        close = difflib.get_close_matches(str(value), choices, n=1)
        if close and value not in choices:
            raise argparse.ArgumentError(action, f"unknown: {value!r} (did you mean {close[0]!r}?)")
        super()._check_value(action, value)

    def _meant(self, option: str) -> str:
        options = [name for name in self._option_string_actions if name.startswith("--")]
        known = {**dict(zip(options, options, strict=True)), **self.elsewhere}
        close = difflib.get_close_matches(option, known, n=1)
        return f" (did you mean {known[close[0]]}?)" if close else ""
