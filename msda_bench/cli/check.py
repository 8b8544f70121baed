"""`msda-bench check NAME...`: checks installed components against their kinds' contracts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from msda_bench.cli.lines import say, warn_of
from msda_bench.errors import PluginError

if TYPE_CHECKING:
    from msda_bench.api import Component
    from msda_bench.plugins import Entry
    from msda_bench.testing import Finding


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="+",
        help="a component as listed by `msda-bench plugins`, or a distribution for all of its components",
    )
    parser.add_argument("--kind", metavar="KIND", help="its kind, if this name occurs in several kinds")
    parser.add_argument("--params", metavar="YAML", default="{}", help="its parameters, such as '{gamma: 2.0}'")
    parser.add_argument("--strict", action="store_true", help="count skipped clauses as failures")


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.plugins import discover
    from msda_bench.plugins.registry import same_project
    from msda_bench.suite.choice import make

    registry = discover()
    warn_of(registry.problems)
    entries = list(dict.fromkeys(entry for name in args.names for entry in registry.find_all(name, args.kind)))
    params = _params(args.params)
    if params and len(entries) > 1:
        raise PluginError(f"--params is for one component; {len(entries)} are named here")
    made = [make(registry, entry.kind, entry.name, params).component for entry in entries]
    failed = sum([_fails(*one, strict=args.strict) for one in zip(entries, made, strict=True)])
    unusable = sum(same_project(broken.distribution, name) for broken in registry.broken for name in args.names)
    if len(entries) > 1 or unusable:
        rest = f"; parts that cannot be used: {unusable}" if unusable else ""
        say(f"{len(entries) - failed} of {len(entries)} components pass{rest}")
    return int(failed + unusable > 0)


def _fails(entry: Entry, component: Component, *, strict: bool) -> bool:
    """Prints the findings on one component one by one, and returns whether it fails."""
    from msda_bench.testing import examine

    say(f"{entry.kind} {entry.name}, version {component.version}, of {entry.origin}")
    first: dict[str, str] = {}
    outcomes = []
    for finding in examine(component):
        outcomes.append(finding.outcome)
        _say_finding(finding, first)
    counts = ", ".join(f"{outcomes.count(one)} {one}" for one in ("kept", "skipped", "broken") if one in outcomes)
    verb = "breaks" if "broken" in outcomes else "keeps"
    missed = strict and "skipped" in outcomes
    strictly = "; --strict counts skipped clauses as failures" if missed else ""
    say(f"{entry.kind} {entry.name} {verb} its contract: {counts}{strictly}")
    return "broken" in outcomes or missed


def _params(text: str) -> dict[str, Any]:
    from msda_bench.suite.reader import parse_document

    document = parse_document(text.encode(), "--params")
    if document.mistakes:
        raise PluginError(*document.lines())
    if not isinstance(document.value, dict):
        raise PluginError(f"--params: must be a mapping of parameters, such as '{{gamma: 2.0}}', not {text!r}")
    return document.value


def _say_finding(finding: Finding, first: dict[str, str]) -> None:
    """Prints a finding; of a reason in `first`, only the clause that first reported it."""
    before = first.setdefault(finding.reason, finding.clause) if finding.reason else finding.clause
    again = "" if before == finding.clause else f" (as: {before})"
    say(f"  {finding.outcome:7}  {finding.clause}{again}")
    if finding.reason and not again:
        say(f"           {finding.reason}")
