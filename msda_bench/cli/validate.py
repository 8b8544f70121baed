"""`msda-bench validate`: checks a suite and shows its tables and cells, without training anything."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say, warn_of
from msda_bench.cli.suites import add_suite_argument

if TYPE_CHECKING:
    from msda_bench.suite.plan import Experiment, Plan


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    add_suite_argument(parser)


def command(args: argparse.Namespace) -> int:
    """Carries it out."""
    from msda_bench.component.abilities import description_of
    from msda_bench.plugins import discover
    from msda_bench.running.data import check_sizes
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import load_suite

    registry = discover()
    warn_of(registry.problems)
    suite = load_suite(args.suite, registry)
    expansion = expand(suite, registry)
    check_sizes(expansion.cells.values(), registry)
    warn_of(expansion.warnings)
    plan = expansion.plan
    for experiment, facts in zip(plan.experiments, suite.experiments, strict=True):
        drawn = facts.file.select is not None and facts.file.select.how == "shared"
        _say_experiment(experiment, plan, description_of(facts.data), candidates=drawn)
    different = len(expansion.cells)
    tuned = any(experiment.tuning for experiment in plan.experiments)
    shared = f", {different} of them different" if different != len(plan.cells) and not tuned else ""
    tables, most = _count(len(plan.experiments), "experiment"), "at most " if tuned else ""
    say(f"suite {plan.suite} is valid: {tables}, {most}{_count(len(plan.most), 'cell')}{shared}")
    return 0


def _say_experiment(experiment: Experiment, plan: Plan, data: Sequence[str], *, candidates: bool) -> None:
    from msda_bench.suite.cell import canonical_json

    cells = [cell for cell in plan.cells if cell.experiment == experiment.name]
    what = f"{experiment.name}: {experiment.dataset} ({experiment.task}), targets {', '.join(experiment.targets)}"
    count = _count(len(cells), "cell")
    if (tuning := experiment.tuning) is not None:
        tuned = sum(cell.seed in tuning.seeds for cell in cells)
        most = len(replace(plan, experiments=(experiment,), cells=tuple(cells)).most) - tuned
        count = f"{_count(tuned, 'cell')} on tuning seeds {_seeds(tuning.seeds)}"
        count += f", then at most {most} with the settings chosen there ({', '.join(tuning.tracks)})"
    say(f"{what}; seeds {_seeds(experiment.seeds)}; {count}")
    for line in data:
        say(f"  {line}")
    width = max(len(method.name) for method in experiment.methods)
    for method in experiment.methods:
        say(f"  {method.name:{width}}  {method.recipe}{' (reference)' if method.reference else ''}")
        for number, values in enumerate(method.search.candidates if method.search and candidates else ()):
            settings = ", ".join(f"{path} {canonical_json(value)}" for path, value in values.items())
            say(f"  {'':{width}}    {number}: {settings}")
    say("")


def _seeds(seeds: tuple[int, ...]) -> str:
    joined = seeds == tuple(range(seeds[0], seeds[0] + len(seeds))) and len(seeds) > 1
    return f"{seeds[0]}-{seeds[-1]}" if joined else ", ".join(map(str, seeds))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
