"""The commands that list, show, copy and validate suites."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml  # type: ignore[import-untyped, unused-ignore]

from msda_bench.atomic import write_new
from msda_bench.cli.lines import say, say_block, warn_of
from msda_bench.errors import BenchError, SuiteError
from msda_bench.results.words import spans
from msda_bench.suite.files import files_of, home, names, offered_names, purpose, shipped

if TYPE_CHECKING:
    from msda_bench.plugins import Registry
    from msda_bench.suite.described import OwnMethods
    from msda_bench.suite.expand import Expansion
    from msda_bench.suite.load import Suite
    from msda_bench.suite.plan import Experiment, Plan


_MOST_TARGETS = 20


def listing() -> int:
    """Lists the suites from their files alone: loading the components that they name takes seconds."""
    from importlib.metadata import distributions

    here = {distribution.name for distribution in distributions()}
    for name in sorted(offered_names(), key=lambda name: (name != "quickstart", "/" in name, name)):
        files = [yaml.safe_load(path.read_bytes()) for path in files_of(shipped(name))]
        parts = [file for file in files if "include" not in file]
        data: dict[str, None] = {}
        needs: dict[str, None] = {}
        counts = []
        for part in parts:
            dataset, seeds = part["dataset"], part["seeds"]
            data |= dict.fromkeys([dataset] if isinstance(dataset, str) else dataset)
            needs |= dict.fromkeys(part.get("requires", ()))
            counts.append(seeds if isinstance(seeds, int) else len(seeds))
        methods = max(len(part["methods"]) for part in parts)
        contents = [", ".join(data), f"{methods} methods, {max(counts)} seeds"]
        contents += [f"needs {one}" for one in needs if one not in here]
        say_block(f"{name}: {'; '.join(contents)}", [purpose(shipped(name))])
    return 0


def show(*, name: str) -> int:
    """Prints a suite and the files that it includes."""
    suite = _named(name)
    for part in files_of(suite):
        if part != suite:
            say("")
            say(f"# {part.relative_to(home()).as_posix()}")
        for line in part.read_text(encoding="utf-8").splitlines():
            say(line)
    return 0


def copy(*, name: str, out: Path) -> int:
    """Writes a suite and the files that it includes into a folder."""
    suite = _named(name)
    copies = {path: out / path.relative_to(suite.parent) for path in files_of(suite)}
    remedy = "already there; name another folder with --out, or move these files"
    if there := [str(copy) for copy in copies.values() if os.path.lexists(copy)]:
        raise BenchError(f"{', '.join(there)}: {remedy}")
    made: list[Path] = []
    for path, copy in copies.items():
        try:
            is_new = write_new(copy, path.read_bytes())
        except OSError as error:
            for written in (*made, copy):  # so that the same command can be given again
                written.unlink(missing_ok=True)
            raise BenchError(f"{copy}: cannot be written: {error.strerror}") from error
        if not is_new:
            raise BenchError(f"{copy}: {remedy}")  # written by another process in the meantime
        made.append(copy)
        say(f"wrote {copy}")
    say(f"next: {shlex.join(['msda-bench', 'run', str(copies[suite])])}")
    return 0


def _named(name: str) -> Path:
    from msda_bench.suite.issues import hint

    if name not in names():
        raise SuiteError(f"{name}: no suite of that name comes with msda-bench{hint(name, offered_names())}")
    return shipped(name)


def load(
    suite: Path, methods: Path | None = None, estimators: OwnMethods | None = None
) -> tuple[Registry, Suite, Expansion]:
    """Loads and expands a suite, after warnings of plugins that cannot be used; the rest as `load_suite`."""
    from msda_bench.plugins import discover
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import load_suite

    registry = discover()
    warn_of(registry.problems)
    loaded = load_suite(suite, registry, methods, estimators)
    return registry, loaded, expand(loaded, registry)


def validate(*, suite: Path) -> int:
    """Checks a suite and shows its tables and cells, without training anything."""
    from msda_bench.running.data import check_sizes
    from msda_bench.running.forecast import forecast

    registry, loaded, expansion = load(suite)
    check_sizes(expansion.cells.values(), registry)
    warn_of(expansion.warnings)
    plan = expansion.plan
    for table, experiment in zip(plan.experiments, loaded.experiments, strict=True):
        select = experiment.file.select
        drawn = select is not None and select.how == "shared"
        _say_experiment(table, plan, experiment.data.describe(), candidates=drawn)
    different = len(expansion.cells)
    tuned = any(experiment.tuning for experiment in plan.experiments)
    shared = f", {different} of them different" if different != len(plan.cells) and not tuned else ""
    if line := forecast(suite, expansion, {cell.key: expansion.cells[cell.key] for cell in plan.most}, None):
        say(line)
    tables, most = _count(len(plan.experiments), "experiment"), "at most " if tuned else ""
    say(f"suite {plan.suite} is valid: {tables}, {most}{_count(len(plan.most), 'run')}{shared}")
    return 0


def _say_experiment(experiment: Experiment, plan: Plan, data: Sequence[str], *, candidates: bool) -> None:
    from msda_bench.suite.run_spec import canonical_json

    cells = [cell for cell in plan.cells if cell.experiment == experiment.name]
    targets = ", ".join(experiment.targets[:_MOST_TARGETS])
    if len(experiment.targets) > _MOST_TARGETS:
        targets += f", ... ({len(experiment.targets)} in all)"
    what = f"{experiment.name}: {experiment.dataset} ({experiment.task}), targets {targets}"
    count = _count(len(cells), "run")
    if (tuning := experiment.tuning) is not None:
        tuned = sum(cell.seed in tuning.seeds for cell in cells)
        most = len(replace(plan, experiments=(experiment,), cells=tuple(cells)).most) - tuned
        count = f"{_count(tuned, 'run')} on tuning seeds {spans(tuning.seeds)}"
        count += f", then at most {most} with the settings chosen there ({', '.join(tuning.tracks)})"
    say(f"{what}; seeds {spans(experiment.seeds)}; {count}")
    for line in data:
        say(f"  {line}")
    width = max(len(method.name) for method in experiment.methods)
    for method in experiment.methods:
        say(f"  {method.name:{width}}  {method.recipe}{' (reference)' if method.reference else ''}")
        if method.search is None or not candidates:
            continue
        for number, values in enumerate(method.search.candidates):
            settings = ", ".join(f"{path} {canonical_json(value)}" for path, value in values.items())
            say(f"  {'':{width}}    {number}: {settings}")
    say("")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
