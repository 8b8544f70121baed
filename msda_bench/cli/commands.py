"""The built-in commands, a line each: `msda_bench.cli.NAME` has the functions `command` and `arguments`."""

from msda_bench.cli.command import Command
from msda_bench.marker import hookimpl

_HELP = {
    "run": "run a suite: train missing cells, write and print the leaderboard",
    "compare": "compare all methods of a result folder, or the same methods of two result folders",
    "leaderboard": "print the leaderboard of a result folder and rewrite its files",
    "verify": "compare a result folder with the published numbers of its suite",
    "sources": "show each source's weight and worth, and the scores on the target without the source",
    "suites": "list, show and copy the suites that come with msda-bench",
    "validate": "check a suite and show its tables and cells",
    "plan": "say what a suite takes to find a gain: seeds, hours, and what ten seeds miss",
    "plugins": "list every component and executor with its distribution",
    "check": "test installed components against their contracts",
    "new": "write a complete distribution for a component of your own",
    "data": "list, fetch, verify and identify datasets, and look for leaks",
    "schema": "print the JSON schema of a suite, installed components included",
    "store": "check or merge result folders, or write one as a reference",
}
_WITHOUT_ARGUMENTS = ("plugins", "schema")


@hookimpl
def msda_commands() -> list[Command]:
    """The built-in commands, in the order in which help shows them."""
    return [
        Command(
            name,
            line,
            f"msda_bench.cli.{name}:command",
            None if name in _WITHOUT_ARGUMENTS else f"msda_bench.cli.{name}:arguments",
        )
        for name, line in _HELP.items()
    ]
