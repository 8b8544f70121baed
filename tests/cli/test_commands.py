"""Commands of other distributions: they come in by the same hook as the built-in ones, and harm no other."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import pytest

from msda_bench.cli.main import main

GROUP = "msda_bench.commands"
HEAD = "from msda_bench.commands import BenchError, Command, hookimpl, say\n"
HOOK = "@hookimpl\ndef msda_commands():\n    return [COMMANDS]\n"
GREET = """
def arguments(parser):
    parser.add_argument("--loud", action="store_true")
def greet(args):
    say("HELLO" if args.loud else "hello")
    return 1 if args.loud else 0
"""


def plugin(commands: str, code: str = GREET) -> str:
    return HEAD + code + HOOK.replace("COMMANDS", commands)


@pytest.fixture
def bring(install):
    """`bring(commands, code)` installs a distribution with commands."""

    def run(commands: str, code: str = GREET, name: str = "greeter") -> None:
        install(name, plugin(commands, code), version="2.5", group=GROUP)

    return run


def shown(capsys) -> list[str]:
    """The commands in the order of help."""
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.split("COMMAND\n")[1].splitlines()
    return [line.split()[0] for line in lines if line[4] != " "]


def test_another_distributions_command_is_one_like_the_built_in(bring, capsys):
    built_in = shown(capsys)
    bring('Command("greet", "say hello", greet, arguments), Command("bye", "say it", "builtins:len", after="verify")')
    place = built_in.index("verify") + 1
    assert shown(capsys) == [*built_in[:place], "bye", *built_in[place:], "greet"]
    assert main(["greet"]) == 0
    assert main(["greet", "--loud"]) == 1
    assert capsys.readouterr() == ("hello\nHELLO\n", "")
    assert main(["greet", "--luod"]) == 2
    assert "unknown option --luod (did you mean --loud?)" in capsys.readouterr().err


def test_functions_by_name_are_imported_only_when_they_are_needed(bring, site, capsys):
    bring('Command("late", "come late", "late_module:run", "late_module:arguments")')
    (site / "late_module.py").write_text("def arguments(parser): ...\ndef run(args):\n    return 1\n")
    shown(capsys)
    assert "late_module" not in sys.modules
    assert main(["late"]) == 1


BROKEN = {
    "at import": ("1 / 0", "", "(greeter): greeter.py:2: ZeroDivisionError: division by zero"),
    "in the hook": ("", "1 / 0", "hook msda_commands: greeter.py:5: ZeroDivisionError: division by zero"),
    "another hook": (
        "@hookimpl\ndef msda_validators():\n    return []",
        "",
        "msda_validators cannot be in the entry-point group msda_bench.commands",
    ),
    "no command": ("", "{'name': 'greet'}", "is no msda_bench.commands.Command"),
    "no name": ("", 'Command("--help", "help", print)', "'--help' needs a name of small letters, digits and '-'"),
    "no function": ("", 'Command("greet", "say hello", 3)', "command 'greet' needs functions, or their names"),
    "no help": ("", 'Command("greet", None, print)', "command 'greet' needs a line of help"),
}


@pytest.mark.parametrize(("code", "commands", "line"), BROKEN.values(), ids=BROKEN)
def test_a_broken_one_is_a_warning_and_stops_no_other(bring, capsys, code, commands, line):
    bring(commands, code + "\n")
    assert main(["suites", "show", "smoke"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("msda-bench: warning: greeter 2.5: ")
    assert line in warning


RAISING = {
    "when it runs": ("def arguments(_): ...\ndef greet(_):\n    raise SystemExit(0)\n", "greeter.py:4: SystemExit: 0"),
    "in its arguments": ("def arguments(_):\n    {}[3]\ngreet = print\n", "greeter.py:3: KeyError: 3"),
    "on purpose": ("def arguments(_): ...\ndef greet(_):\n    raise BenchError('x: no')\n", "msda-bench: error: x: no"),
}


@pytest.mark.parametrize(("code", "line"), RAISING.values(), ids=RAISING)
def test_what_it_raises_is_a_line_with_its_authors_own(bring, capsys, code, line):
    bring('Command("greet", "say hello", greet, arguments)', code)
    assert main(["greet"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.endswith(line)


def test_of_two_with_one_name_none_is_preferred(bring, capsys):
    bring('Command("check", "say hello", greet)')
    line = "command 'check' is claimed by greeter 2.5 and msda-bench 0.1.0; uninstall one of them"
    assert main(["suites", "show", "smoke"]) == 0
    assert capsys.readouterr().err == f"msda-bench: warning: {line}\n"
    assert main(["check", "x"]) == 2
    assert capsys.readouterr().err.endswith(f"msda-bench: error: {line}\n")


def test_every_built_in_command_comes_in_by_the_hook(capsys):
    (point,) = (point for point in entry_points(group=GROUP) if point.name == "builtin")
    names = [command.name for command in point.load().msda_commands()]
    assert names == [name for name in shown(capsys) if name in names]


REPORTING = """
import pandas as pd
from msda_bench.commands import Column, Line, Report, Section, Table, add_output_options, add_table_options
def arguments(parser):
    add_table_options(parser)
    add_output_options(parser)
def greet(args):
    rows = pd.DataFrame({"method": ["a\\x1b[31m", "b"], "score": [1.5, None]})
    columns = (Column("method", "text", ["method"]), Column("mean", "number", ["score"]))
    lines = (Line("note", "one\\x1b note"), Line("caption", "a caption"))
    return Report((Section((Table("t", "a title", rows, columns),), lines),), rows, complete=False)
"""


def test_a_report_is_rendered_as_those_of_the_built_in_commands(bring, capsys):
    bring('Command("greet", "say hello", greet, arguments)', REPORTING)
    assert main(["greet", "--quiet"]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    said = ["a title", "method mean", "-------- ------", "a [31m 1.50", "b -", "note: one note"]
    assert [" ".join(line.split()) for line in out.splitlines() if line.strip()] == said
    assert main(["greet", "--format", "csv"]) == 1
    assert capsys.readouterr().out.splitlines() == ["method,score", "a [31m,1.5", "b,"]
