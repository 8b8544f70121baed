"""Fills the generated parts of the documentation: commands, suite keys, components, contracts and examples of hooks.

A page asks for a part with a comment of its own line, such as `<!-- made: suite -->`.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msda_bench import hookspecs
from msda_bench.cli.command import make_parser
from msda_bench.plugins import KINDS, Registry, discover
from msda_bench.suite.load import suite_schema
from msda_bench.testing import CONTRACTS, checks

_MARK = re.compile(r"^<!-- made: ([a-z_]+) -->$", re.MULTILINE)
HOOKS = [name for name, _ in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith("msda_")]
ROOT = Path(__file__).parent.parent
STRANGERS = ROOT / "tests" / "strangers"
"""Schemes as strangers write them."""
_PARTS = {
    "TrainingConfig": "training",
    "MethodSpec": "methods, each row",
    "Splitting": "split_sources",
    "SelectSpec": "select",
    "Optimizer": "training.optimizer",
}


def fill(markdown: str) -> str:
    """The text with each mark replaced by what it asks for.

    Raises:
        KeyError: a mark asks for something that is not made here.
    """
    return _MARK.sub(lambda mark: _make(mark[1]), markdown)


def _make(what: str) -> str:
    registry = discover()
    schema = suite_schema(registry)
    makers = {
        "suite": lambda: _suite(schema),
        "components": lambda: _components(schema, registry),
        "cli": _commands,
        "files": _files,
    }
    makers |= {kind: lambda: _clauses(what) for kind in KINDS}
    makers |= {name: lambda: _example(what) for name in HOOKS}
    makers |= {f"stranger_{path.stem}": partial(_code, path) for path in STRANGERS.glob("*.py")}
    return makers[what]()


def _files() -> str:
    """The first sentence of each module of the core, by folder."""
    core = ROOT / "msda_bench"
    lines = ["| file | what it is for |", "|---|---|"]
    for path in sorted(core.rglob("*.py"), key=lambda path: (path.parent, path.name)):
        if said := ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))):
            first = " ".join(said.partition("\n\n")[0].split())
            lines.append(f"| `{path.relative_to(core)}` | {_plain(first)} |")
    return "\n".join(lines)


def _commands() -> str:
    return "\n\n".join(_command(parser, does) for parser, does in _parsers(make_parser()))


def _parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Every command, and every action of a command, with what it does."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            helps = {choice.dest: choice.help for choice in action._choices_actions}  # noqa: SLF001
            for name, command in action.choices.items():
                yield command, " ".join((command.description or helps[name]).split()).removesuffix(".")
                yield from _parsers(command)


def _command(parser: argparse.ArgumentParser, does: str) -> str:
    level = "#" * len(parser.prog.split())
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    lines = textwrap.wrap(usage, 80, subsequent_indent="    ", break_on_hyphens=False)
    text = f"{level} {parser.prog}\n\n{_plain(does[:1].upper() + does[1:])}.\n\n```text\n" + "\n".join(lines) + "\n```"
    rows = [f"| {_words(action)} | {_plain((action.help or '') % vars(action))} |" for action in _options(parser)]
    return "\n".join([text, "", "| argument | meaning |", "|---|---|", *rows]) if rows else text


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    hidden = argparse._HelpAction | argparse._SubParsersAction  # noqa: SLF001
    return [action for action in parser._actions if not isinstance(action, hidden)]  # noqa: SLF001


def _words(action: argparse.Action) -> str:
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    name = str(action.metavar or choices or action.dest).replace("|", "\\|")
    if not action.option_strings:
        return f"`{name}`"
    value = "" if action.nargs == 0 else f" {name}"
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)


def _code(path: Path) -> str:
    return f"```python\n{path.read_text(encoding='utf-8')}```"


def _suite(schema: Mapping[str, Any]) -> str:
    experiment, include = schema["anyOf"]
    definitions = schema["$defs"]
    parts = [("A suite of one experiment", experiment), ("A suite that joins others", include)]
    named = {name: part for name, part in definitions.items() if "." not in name and name not in KINDS}
    parts += [(f"`{_PARTS.get(name, name.lower())}`", part) for name, part in sorted(named.items())]
    return "\n\n".join(f"### {title}\n\n{_keys(part)}" for title, part in parts)


def _components(schema: Mapping[str, Any], registry: Registry) -> str:
    texts = []
    for kind in KINDS:
        texts.append(f"### {kind.capitalize()}s" if kind != "discrepancy" else "### Discrepancies")
        for name, part in schema["$defs"].items():
            if name.startswith(f"{kind}."):
                texts.append(f"#### `{part['title']}`\n\n{_plain(part['description'])}")
                texts += [_keys(part)] if part.get("properties") else []
                texts += _to_cite(registry, part["title"]) if kind == "dataset" else []
    return "\n\n".join(texts)


def _to_cite(registry: Registry, dataset: str) -> list[str]:
    """The end of the dataset's docstring, unless its parameters are there."""
    last = (inspect.getdoc(registry.entry("dataset", dataset).cls) or "").split("\n\n")[-1]
    return [] if last.startswith("Parameters:") else [f"To cite: {_plain(' '.join(last.split()))}"]


def _keys(part: Mapping[str, Any]) -> str:
    rows = ["| key | value | default |", "|---|---|---|"]
    for key, value in part.get("properties", {}).items():
        default = "required" if key in part.get("required", ()) else f"`{_yaml(value.get('default'))}`"
        rows.append(f"| `{key}` | {_type(value)} | {default} |")
    return "\n".join(rows)


def _type(value: Mapping[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_type(one) for one in value["anyOf"] if one.get("type") != "null"))
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        if name in KINDS:
            return f"{'an' if name == 'aggregator' else 'a'} {name}: `NAME` or `{{NAME: {{parameters}}}}`"
        return f"see `{_PARTS.get(name, name.lower())}`"
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    return f"a list, each {_type(value['items'])}" if "items" in value else _scalar(value)


def _scalar(value: Mapping[str, Any]) -> str:
    words = {
        "array": "a list",
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "`true` or `false`",
    }
    kind = value.get("type")
    bounds = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = ", ".join(f"{sign} {value[key]:g}" for key, sign in bounds.items() if key in value)
    word = words.get(str(kind), "a mapping")
    return f"{word} {limits}".strip() if kind in words else word


def _yaml(default: Any) -> str:
    if default is None:
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, dict):
        return "{" + ", ".join(f"{key}: {_yaml(value)}" for key, value in default.items()) + "}"
    return '""' if default == "" else str(default)


def _clauses(kind: str) -> str:
    base = CONTRACTS[kind]
    rows = ["| clause of the contract | what it asks |", "|---|---|"]
    for check in checks(kind):
        first = " ".join((getattr(base, check).__doc__ or "").split("\n\n")[0].split())
        rows.append(f"| {check.removeprefix('test_').replace('_', ' ')} | {_plain(first)} |")
    return "\n".join(rows)


def _example(hook: str) -> str:
    """The code of the hook's docstring, as a module."""
    steps = doctest.DocTestParser().get_examples(inspect.getdoc(getattr(hookspecs, hook)) or "")
    code = ""
    for step in steps:
        apart = "\n\n" if code and step.source.startswith(("@", "class")) else ""
        code += apart + step.source
    return f"```python\n{code}```"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
