"""`msda-bench check NAME`: holds one installed component to its kind's contract."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msda_bench.cli.lines import say
from msda_bench.cli.parser import Commands
from msda_bench.cli.problems import tell_problems
from msda_bench.errors import PluginError

if TYPE_CHECKING:
    from msda_bench.plugins import Entry
    from msda_bench.testing import Finding


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("check", help="hold an installed component to its kind's contract")
    parser.add_argument("name", metavar="NAME", help="a component's name, as `msda-bench plugins` lists it")
    parser.add_argument("--kind", metavar="KIND", help="which one is meant, where several kinds have the name")
    parser.add_argument("--params", metavar="YAML", default="{}", help="its parameters, such as '{gamma: 2.0}'")
    parser.set_defaults(handler=_run)


def _run(args: argparse.Namespace) -> int:
    from msda_bench.plugins import discover
    from msda_bench.suite.choice import make
    from msda_bench.testing import examine

    registry = discover()
    tell_problems(registry, fatal=False)
    entry = registry.find(args.name, args.kind)
    component = make(registry, entry.kind, entry.name, _params(args.params)).component
    say(f"{entry.kind} {entry.name}, version {component.version}, of {entry.origin}")
    findings = []
    for finding in examine(component):
        say(f"  {finding.outcome:7}  {finding.clause}")
        if finding.reason:
            say(f"           {finding.reason}")
        findings.append(finding)
    say(_verdict(entry, findings))
    return int(any(finding.outcome == "broken" for finding in findings))


def _params(text: str) -> dict[str, Any]:
    from msda_bench.suite.reader import parse_document

    document = parse_document(text.encode(), "--params")
    if document.mistakes:
        raise PluginError(*(mistake.line("--params") for mistake in document.mistakes))
    if not isinstance(document.value, dict):
        raise PluginError(f"--params: must be a mapping of parameters, such as '{{gamma: 2.0}}', not {text!r}")
    return document.value


def _verdict(entry: Entry, findings: Iterable[Finding]) -> str:
    outcomes = [finding.outcome for finding in findings]
    counts = ", ".join(f"{outcomes.count(one)} {one}" for one in ("kept", "skipped", "broken") if one in outcomes)
    verb = "breaks" if "broken" in outcomes else "keeps"
    return f"{entry.kind} {entry.name} {verb} its contract: {counts}"
