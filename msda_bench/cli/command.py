"""The commands of `msda-bench`, and their parser."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

COMMANDS: Mapping[str, str] = MappingProxyType({
    "run": "run a suite: train missing cells, write and print the leaderboard",
    "compare": "compare all methods of a result folder, or the same methods of two result folders",
    "leaderboard": "print the leaderboard of a result folder and rewrite its files",
    "report": "write a result folder as one page, report.html, that needs no network",
    "site": "write a static site: a leaderboard of many result folders",
    "verify": "compare a result folder with the published numbers of its suite",
    "sources": "show each source's weight and worth, and the scores on the target without the source",
    "suites": "list, show and copy the suites that come with msda-bench",
    "validate": "check a suite and show its tables and cells",
    "plan": "say what a suite takes to find a gain: seeds and hours",
    "plugins": "list every component and executor with its distribution",
    "check": "test installed components against their contracts",
    "new": "write a complete distribution for a component of your own",
    "data": "list, fetch, verify and identify datasets, and look for leaks",
    "schema": "print the JSON schema of a suite, installed components included",
    "store": "check or merge result folders, or write one as a reference",
})  # fmt: skip
"""What help says of each; `msda_bench.cli.NAME` has the functions `arguments`, unless it takes none, and `command`."""
Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - argparse gives it no other name


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
