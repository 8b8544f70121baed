"""Shows results: charts (`msda_bench.plots`), the report page of a folder, and the site of many."""

from msda_bench.commands import Command, hookimpl

_HELP = {
    "report": ("write a result folder as one page, report.html, that needs no network", "leaderboard"),
    "site": ("write a static site: a leaderboard of many result folders", "report"),
}


@hookimpl
def msda_commands() -> list[Command]:
    """The commands of this package, each with the one that it follows."""
    home = "msda_bench_report.commands"
    return [
        Command(name, line, f"{home}:{name}", f"{home}:{name}_arguments", after)
        for name, (line, after) in _HELP.items()
    ]
