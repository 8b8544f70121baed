"""A command, its parser, and how all commands come in: the built-in ones by the same hook as other distributions'."""

from __future__ import annotations

import argparse
import difflib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, TypeAlias

from msda_bench.cli.tables import show
from msda_bench.errors import PluginError, printable
from msda_bench.loading import Brought, brought, claimed

if TYPE_CHECKING:
    from msda_bench.results.report import Report

GROUP = "msda_bench.commands"
"""Name of the entry-point group of commands."""
_HOOK = "msda_commands"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - argparse gives it no other name


@dataclass(frozen=True)
class Command:
    """A command of `msda-bench`.

    `run` and `arguments` are functions, or the names of functions as `module:function`. A name is imported when the
    command is used, so that `msda-bench --help` stays quick.

    Attributes:
        name: its word on the command line.
        help: what it does, in a line.
        run: answers with a report, from which the exit code and the output follow; or prints by itself and returns
            the exit code: 0, or 1 where runs failed or are missing.
        arguments: adds its arguments to its parser; None for none.
        after: the command that it follows in `msda-bench --help`; empty for the end.
    """

    name: str
    help: str
    run: Callable[[argparse.Namespace], int | Report] | str
    arguments: Callable[[argparse.ArgumentParser], None] | str | None = None
    after: str = ""


@dataclass(frozen=True)
class Installed:
    """A command with the distribution that brings it.

    Attributes:
        command: the command.
        by: the distribution.
        conflict: a line if several distributions claim the name, of which none is preferred; else empty.
    """

    command: Command
    by: Brought
    conflict: str = ""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds its arguments to its parser.

        Raises:
            PluginError: another distribution claims its name, or its author's code raised.
        """
        if self.conflict:
            raise PluginError(self.conflict)
        if self.command.arguments is not None:
            with self._blamed():
                _function(self.command.arguments)(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Carries it out and returns the exit code."""
        with self._blamed():
            answer = _function(self.command.run)(args)
        return answer if isinstance(answer, int) else show(args, answer)

    def _blamed(self) -> AbstractContextManager[None]:
        return self.by.blamed(f"command {self.command.name!r}", (BrokenPipeError,))


def installed(given: Iterable[EntryPoint] | None = None) -> tuple[list[Installed], list[str]]:
    """All commands, in the order in which help shows them, and a line for each that cannot be used.

    Args:
        given: replace the installed entry points in tests.
    """
    by_name: dict[str, list[Installed]] = {}
    faults = []
    for part in brought(GROUP, _HOOK, given):
        if isinstance(part, str):
            faults.append(part)
        elif fault := _fault(part.value):
            faults.append(f"{part.origin}: {fault}")
        else:
            by_name.setdefault(part.value.name, []).append(Installed(part.value, part))
    commands = []
    for name, group in by_name.items():
        line = claimed(f"command {name!r}", (entry.by.origin for entry in group)) if len(group) > 1 else ""
        faults += [line] if line else []
        commands.append(replace(group[0], conflict=line))
    return _ordered(commands), faults


def _ordered(commands: list[Installed]) -> list[Installed]:
    """Each command behind the one that it names, the others as they come, the built-in ones first."""
    ordered = sorted(commands, key=lambda entry: bool(entry.by.packages))
    for entry in [entry for entry in ordered if entry.command.after]:
        ordered.remove(entry)
        names = [before.command.name for before in ordered]
        ordered.insert((names.index(entry.command.after) if entry.command.after in names else len(names)) + 1, entry)
    return ordered


def _function(given: Callable[..., Any] | str) -> Callable[..., Any]:
    return pkgutil.resolve_name(given) if isinstance(given, str) else given


def _fault(command: object) -> str:
    """What keeps it from being a command; empty if nothing does."""
    if not isinstance(command, Command):
        return f"hook {_HOOK}: {printable(repr(command))} is no msda_bench.commands.Command"
    what = f"hook {_HOOK}: command {command.name!r}"
    if not (isinstance(command.name, str) and _NAME.fullmatch(command.name)):
        return f"{what} needs a name of small letters, digits and '-', at most 32"
    functions = [given for given in (command.run, command.arguments) if given is not None]
    if not all(callable(given) or isinstance(given, str) for given in functions):
        return f"{what} needs functions, or their names as 'module:function'"
    return "" if isinstance(command.help, str) else f"{what} needs a line of help"


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
