"""The commands of `msda-bench`, and their parser."""

from __future__ import annotations

import argparse
import difflib
import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msda_bench import __version__
from msda_bench.cli import arguments
from msda_bench.cli.arguments import Argument


class Action(NamedTuple):
    """A command without actions, or an action of one.

    Attributes:
        calls: `module:function` of `msda_bench.cli`, which gets the arguments by keyword and returns the exit code.
        arguments: that it has.
        line: the help for an action.
    """

    calls: str
    arguments: tuple[Argument, ...] = ()
    line: str = ""


class Command(NamedTuple):
    """The help for a command, and what it calls: one function, or one for each action."""

    line: str
    more: str
    examples: tuple[str, ...]
    does: Action | Mapping[str, Action]


COMMANDS: Mapping[str, Mapping[str, Command]] = MappingProxyType({
    "Run": {
        "run": Command(
            "run a suite: train missing runs, write and print the leaderboard",
            "Results go into a folder of the suite's name; the same command resumes where an earlier one stopped.",
            ("run quickstart", "run mine.yaml --only method=SRC,seed=0-4"),
            Action("run:command", arguments.RUN),
        ),
        "predict": Command(
            "train one method of a suite on all labelled rows, and predict the rows of a new file",
            "New rows need no labels and are read like the suite's own data. A method that adapts is adapted to them.",
            ("predict mine.yaml new.csv --method SRC", "predict mine.yaml photos --method DANN --out photos.csv"),
            Action("predict:command", arguments.PREDICT),
        ),
        "suites": Command(
            "list, show and copy the suites that come with msda-bench",
            "A suite is a file that names the data, the methods, the seeds and how all of them train.",
            ("suites list", "suites copy quickstart --out mine"),
            {
                "list": Action("suites:listing", (), "show each suite, its data, methods and seeds, and what it needs"),
                "show": Action("suites:show", arguments.SUITES_SHOW, "print a suite and the files that it includes"),
                "copy": Action(
                    "suites:copy",
                    arguments.SUITES_COPY,
                    "write a suite and the files that it includes into a folder, for editing",
                ),
            },
        ),
        "validate": Command(
            "check a suite and show its tables and runs",
            "Trains nothing. Each mistake is printed with its line in the file.",
            ("validate mine.yaml", "validate quickstart"),
            Action("suites:validate", arguments.VALIDATE),
        ),
    },
    "Read": {
        "leaderboard": Command(
            "print the leaderboard of a result folder and rewrite its files",
            "Shows mean scores with tests against the baseline.",
            ("leaderboard results/quickstart", "leaderboard results/quickstart --format csv"),
            Action("read:leaderboard", arguments.LEADERBOARD),
        ),
        "compare": Command(
            "compare all methods of a result folder, or the same methods of two",
            "Differences are paired by target and seed, with an interval and an exact test.",
            ("compare results/quickstart", "compare results/mine results/theirs --match Mine=DARN"),
            Action("read:compare", arguments.COMPARE),
        ),
        "report": Command(
            "write a result folder as one page, report.html",
            "The page needs no network.",
            ("report results/quickstart", "report results/mine --against reference"),
            Action("read:report", arguments.REPORT),
        ),
        "site": Command(
            "write a static site: a leaderboard of many result folders",
            "Each folder gets its page, and the first page ranks the methods over all of them.",
            ("site results/*", "site results/quickstart results/mine --out public"),
            Action("read:site", arguments.SITE),
        ),
        "sources": Command(
            "show what each source is worth to each method",
            "Shows the weight of each source, and the score on the target without it where a suite has such runs.",
            ("sources results/quickstart", "sources results/leaderboard-sources --format csv"),
            Action("read:sources", arguments.SOURCES),
        ),
        "verify": Command(
            "compare a result folder with published numbers",
            "Uses the tables that the suite names in `published`, or that of --table.",
            ("verify results/paper-amazon", "verify results/mine --table theirs.csv"),
            Action("read:verify", arguments.VERIFY),
        ),
    },
    "Own data": {
        "data": Command(
            "list, fetch, verify and identify datasets, and look for leaks",
            "`data identify` turns a table or a folder of images into a first suite.",
            ("data identify patients.csv --domain site --label y", "data fetch fonts"),
            {
                "list": Action("data:listing", arguments.DATA_LIST, "show every dataset, its licence and source"),
                "fetch": Action("data:fetch", arguments.DATA_FILES, "download missing files into the cache"),
                "identify": Action(
                    "identify:identify", arguments.DATA_IDENTIFY, "recognise a folder or file as a known dataset"
                ),
                "leaks": Action(
                    "leaks:leaks",
                    arguments.DATA_LEAKS,
                    "look for test rows of a suite that training has seen elsewhere",
                ),
                "verify": Action("data:verify", arguments.DATA_FILES, "check every file; with --all, kept arrays, too"),
            },
        ),
    },
    "Write a plugin": {
        "new": Command(
            "write a complete package for a component of your own",
            "The folder has the component, its tests and a small suite, ready to install.",
            ("new aggregator my_weights", "new dataset my_data --out packages"),
            Action("author:new", arguments.NEW),
        ),
        "check": Command(
            "test installed components against their contracts",
            "Prints each clause and whether the component keeps it.",
            ("check my_weights", "check sharpmax --params '{gamma: 2.0}'"),
            Action("author:check", arguments.CHECK),
        ),
        "plugins": Command(
            "list every component and executor with its package",
            "Plugins that cannot be used are named with the reason.",
            ("plugins", "plugins | grep scheme"),
            Action("author:plugins"),
        ),
        "schema": Command(
            "print the JSON schema of a suite, installed components included",
            "Editors complete and check suites with it.",
            ("schema > suite.schema.json", "schema | head"),
            Action("author:schema"),
        ),
    },
    "Maintain": {
        "store": Command(
            "check, seal or merge result folders, or write one as a reference",
            "`store verify` finds damaged records and files that do not match them.",
            ("store verify --strict results/quickstart", "store merge results/both results/one results/other"),
            {
                "verify": Action(
                    "store:verify", arguments.STORE_VERIFY, "check every record of result folders against its sha256"
                ),
                "merge": Action(
                    "store:merge", arguments.STORE_MERGE, "copy the results of other folders into the first"
                ),
                "seal": Action(
                    "store:seal",
                    arguments.STORE_SEAL,
                    "put the logs of a result folder into one file, also while others train",
                ),
                "reference": Action(
                    "store:reference", arguments.STORE_REFERENCE, "write a result folder as one file for --against"
                ),
            },
        ),
    },
})  # fmt: skip
"""The commands in the groups of `--help`."""
_OF_ONLY = {"--seeds": "--only seed=0-4", "--targets": "--only target=books"}
"""Options that users may expect where there is `--only`, and what to write instead."""


class Parser(argparse.ArgumentParser):
    """A parser that suggests the intended word; its help ends with examples."""

    def __init__(self, *, examples: Iterable[str] = (), **options: Any) -> None:
        epilog = "\n  msda-bench ".join(["examples:", *examples]) if examples else None
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"epilog": epilog, "formatter_class": form, **options})

    def parse_known_args(  # type: ignore[override]  # typeshed has a form for each kind of namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses unknown options, since only this parser knows the command's options."""
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
        known = {name: name for name in self._option_string_actions if name.startswith("--")}
        known |= _OF_ONLY if "--only" in known else {}
        close = difflib.get_close_matches(option, known, n=1)
        return f" (did you mean {known[close[0]]}?)" if close else ""


def make_parser() -> Parser:
    """The parser of all commands."""
    width = max(map(len, itertools.chain.from_iterable(COMMANDS.values())))
    words = ["Benchmarks multi-source domain adaptation."]
    for group, commands in COMMANDS.items():
        words += ["", f"{group}:", *(f"  {name:{width}}  {command.line}" for name, command in commands.items())]
    examples = ("run quickstart", "report results/quickstart")
    parser = Parser(prog="msda-bench", description="\n".join(words), examples=examples)
    parser.add_argument("--version", action="version", version=f"msda-bench {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, help="as listed; COMMAND --help explains it")
    for name, command in itertools.chain.from_iterable(one.items() for one in COMMANDS.values()):
        description = textwrap.fill(f"{command.line[0].upper()}{command.line[1:]}. {command.more}", 80)
        subparser = subparsers.add_parser(name, description=description, examples=command.examples)
        if isinstance(command.does, Action):
            _fill(subparser, command.does)
            continue
        actions = subparser.add_subparsers(title="actions", metavar="ACTION", required=True)
        for word, action in command.does.items():
            _fill(actions.add_parser(word, help=action.line), action)
    return parser


def _fill(parser: argparse.ArgumentParser, action: Action) -> None:
    for name, options in action.arguments:
        parser.add_argument(name, **options)
    parser.set_defaults(calls=action.calls)
