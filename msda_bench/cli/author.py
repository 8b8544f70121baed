"""The commands for authors of components: a package to start from, checks, and what is installed."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say, say_table, say_whole, warn_of
from msda_bench.errors import BenchError, PluginError

if TYPE_CHECKING:
    from msda_bench.api import Component
    from msda_bench.plugins import Entry


def new(*, kind: str, name: str, out: Path, fitted: bool) -> int:
    """Writes a complete distribution for an author to start from.

    The name may not be that of an installed distribution, or one that the new code imports; `check` finds equal names.
    """
    from importlib.metadata import PackageNotFoundError, version

    from msda_bench.scaffold import RANKING, Names, render, write

    names = Names.of(kind, name, fitted=fitted)
    code = ast.parse(render(names)[f"src/{names.module}.py"])
    imports = (node for node in ast.walk(code) if isinstance(node, ast.Import | ast.ImportFrom))
    if names.class_name in {alias.name for node in imports for alias in node.names}:
        raise BenchError(f"{names.class_name} is a name that the code imports; choose another")
    with contextlib.suppress(PackageNotFoundError):
        what = f"{names.distribution} {version(names.distribution)} is already installed"
        raise BenchError(f"{what}; choose another name, or uninstall it")
    folder = write(names, out)
    place = folder if folder.is_absolute() else f"./{folder}"  # without ./ pip would search an index
    say(f"{folder}: the {names.kind} {names.component}, ready to install. Next:")
    say(f"  pip install -e {place}")
    say(f"  msda-bench check {names.component}")
    say(f"  msda-bench run {place}/suite.yaml")
    if names.is_ranked:
        say(f"  {RANKING.format(f'{place}/ranked.yaml')}")
    return 0


def check(*, names: Sequence[str], kind: str | None, params: str, strict: bool) -> int:
    """Checks installed components against their kinds' contracts."""
    from msda_bench.plugins import discover
    from msda_bench.plugins.registry import same_project
    from msda_bench.suite.choice import make
    from msda_bench.suite.reader import parse_document

    registry = discover()
    warn_of(registry.problems)
    entries = list(dict.fromkeys(entry for name in names for entry in registry.find_all(name, kind)))
    document = parse_document(params.encode(), "--params")
    if document.issues:
        raise PluginError(*document.lines())
    values = document.value
    if not isinstance(values, dict):
        raise PluginError(f"--params: must be a mapping of parameters, such as '{{gamma: 2.0}}', not {params!r}")
    if values and len(entries) > 1:
        raise PluginError(f"--params is for one component; {len(entries)} are named here")
    made = [make(registry, entry.kind, entry.name, values).component for entry in entries]
    failed = sum([_fails(*one, strict=strict) for one in zip(entries, made, strict=True)])
    unusable = sum(same_project(broken.distribution, name) for broken in registry.broken for name in names)
    if len(entries) > 1 or unusable:
        rest = f"; parts that cannot be used: {unusable}" if unusable else ""
        say(f"{len(entries) - failed} of {len(entries)} components pass{rest}")
    return int(failed + unusable > 0)


def _fails(entry: Entry, component: Component, *, strict: bool) -> bool:
    """Prints the findings on one component one by one, each reason once, and returns whether it fails."""
    from msda_bench.testing import examine

    say(f"{entry.kind} {entry.name}, version {component.version}, of {entry.origin}")
    first: dict[str, str] = {}
    outcomes = []
    for finding in examine(component):
        outcomes.append(finding.outcome)
        before = first.setdefault(finding.reason, finding.clause) if finding.reason else finding.clause
        again = "" if before == finding.clause else f" (as: {before})"
        say(f"  {finding.outcome:7}  {finding.clause}{again}")
        if finding.reason and not again:
            say(f"           {finding.reason}")
    counts = ", ".join(f"{outcomes.count(one)} {one}" for one in ("kept", "skipped", "broken") if one in outcomes)
    verb = "breaks" if "broken" in outcomes else "keeps"
    missed = strict and "skipped" in outcomes
    strictly = "; --strict counts skipped clauses as failures" if missed else ""
    say(f"{entry.kind} {entry.name} {verb} its contract: {counts}{strictly}")
    return "broken" in outcomes or missed


def plugins() -> int:
    """Lists installed components and executors, and their distributions."""
    from msda_bench.plugins import discover
    from msda_bench.running.execute import executors

    registries = discover(), executors()
    entries = [entry for registry in registries for entry in registry.entries]
    say_table(
        ("kind", "name", "version", "distribution", "description"),
        ((one.kind, one.name, str(one.cls.version), one.origin, one.cls.description()) for one in entries),
    )
    warn_of([line for registry in registries for line in registry.changed])
    return 2 * warn_of([line for registry in registries for line in registry.problems], "error")


def schema() -> int:
    """Prints the JSON schema of a suite, by which editors complete and check suites."""
    from msda_bench.plugins import discover
    from msda_bench.suite.load import suite_schema

    say_whole(json.dumps(suite_schema(discover()), indent=2) + "\n")
    return 0
