"""The commands of `msda-bench`, and their parser."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias


class Command(NamedTuple):
    """What help says of a command."""

    line: str
    more: str
    examples: tuple[str, str]


COMMANDS: Mapping[str, Mapping[str, Command]] = MappingProxyType({
    "Run": {
        "run": Command(
            "run a suite: train missing runs, write and print the leaderboard",
            "Results go into a folder of the suite's name; the same command resumes where an earlier one stopped.",
            ("run quickstart", "run mine.yaml --only method=SRC,seed=0-4"),
        ),
        "suites": Command(
            "list, show and copy the suites that come with msda-bench",
            "A suite is a file that names the data, the methods, the seeds and how all of them train.",
            ("suites list", "suites copy quickstart --out mine"),
        ),
        "validate": Command(
            "check a suite and show its tables and runs",
            "Trains nothing. Each mistake is a line with its place in the file.",
            ("validate mine.yaml", "validate quickstart"),
        ),
        "plan": Command(
            "estimate the seeds and hours needed to detect a gain",
            "Reads the runs that are there, such as those of the first seeds.",
            ("plan mine.yaml", "plan mine.yaml --detect 0.5 --pilot results/quickstart"),
        ),
    },
    "Read": {
        "leaderboard": Command(
            "print the leaderboard of a result folder and rewrite its files",
            "Shows mean scores with tests against the baseline.",
            ("leaderboard results/quickstart", "leaderboard results/quickstart --format csv"),
        ),
        "compare": Command(
            "compare all methods of a result folder, or the same methods of two",
            "Differences are paired by target and seed, with an interval and an exact test.",
            ("compare results/quickstart", "compare results/mine results/theirs --match Mine=DARN"),
        ),
        "report": Command(
            "write a result folder as one page, report.html",
            "The page needs no network.",
            ("report results/quickstart", "report results/mine --against reference"),
        ),
        "site": Command(
            "write a static site: a leaderboard of many result folders",
            "Each folder gets its page, and the first page ranks the methods over all of them.",
            ("site results/*", "site results/quickstart results/mine --out public"),
        ),
        "sources": Command(
            "show what each source is worth to each method",
            "Shows the weight of each source, and the score on the target without it where a suite has such runs.",
            ("sources results/quickstart", "sources results/leaderboard-sources --format csv"),
        ),
        "verify": Command(
            "compare a result folder with published numbers",
            "Uses the tables that the suite names in `published`, or that of --table.",
            ("verify results/paper-amazon", "verify results/mine --table theirs.csv"),
        ),
    },
    "Own data": {
        "data": Command(
            "list, fetch, verify and identify datasets, and look for leaks",
            "`data identify` turns a table or a folder of images into a first suite.",
            ("data identify patients.csv --domain site --label y", "data fetch fonts"),
        ),
    },
    "Write a plugin": {
        "new": Command(
            "write a complete package for a component of your own",
            "The folder has the component, its tests and a small suite, ready to install.",
            ("new aggregator my_weights", "new dataset my_data --out packages"),
        ),
        "check": Command(
            "test installed components against their contracts",
            "Prints each clause and whether the component keeps it.",
            ("check my_weights", "check sharpmax --params '{gamma: 2.0}'"),
        ),
        "plugins": Command(
            "list every component and executor with its package",
            "Plugins that cannot be used are named with the reason.",
            ("plugins", "plugins | grep scheme"),
        ),
        "schema": Command(
            "print the JSON schema of a suite, installed components included",
            "Editors complete and check suites with it.",
            ("schema > suite.schema.json", "schema | head"),
        ),
    },
    "Maintain": {
        "store": Command(
            "check, seal or merge result folders, or write one as a reference",
            "`store verify` finds damaged records and files that do not match them.",
            ("store verify --strict results/quickstart", "store merge results/both results/one results/other"),
        ),
    },
})  # fmt: skip
"""The commands in the groups of `--help`.

`msda_bench.cli.NAME` has the functions `arguments`, unless it takes none, and `command`, unless it has actions.
"""
Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - argparse gives it no other name


class Parser(argparse.ArgumentParser):
    """A parser that suggests the intended word.

    Attributes:
        elsewhere: suggestions for options that belong to another option of this command.
        filler: adds the arguments when they are first needed, so that no other command's are imported.
    """

    elsewhere: Mapping[str, str] = {}
    filler: Callable[[Parser], None] | None = None

    def __init__(self, *, examples: Iterable[str] = (), **options: Any) -> None:
        """As `ArgumentParser`, with lines that help ends with."""
        epilog = "\n  msda-bench ".join(["examples:", *examples]) if examples else None
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"epilog": epilog, "formatter_class": form, **options})

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
