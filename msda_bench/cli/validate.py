"""`msda-bench validate`: checks a suite and shows what it asks for, without training anything."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say
from msda_bench.cli.parser import Commands
from msda_bench.cli.problems import tell_problems, warn_of

if TYPE_CHECKING:
    from msda_bench.suite.plan import Experiment, Plan


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("validate", help="check a suite and show its tables and cells")
    parser.add_argument("suite", type=Path, metavar="SUITE", help="a suite file, such as suites/quickstart.yaml")
    parser.set_defaults(handler=_run)


def _run(args: argparse.Namespace) -> int:
    from msda_bench.plugins import discover
    from msda_bench.suite.expand import expand
    from msda_bench.suite.load import load_suite

    registry = discover()
    tell_problems(registry, fatal=False)
    expansion = expand(load_suite(args.suite, registry), registry)
    warn_of(expansion.warnings)
    for experiment in expansion.plan.experiments:
        say(_summary(experiment, expansion.plan))
        for line in _methods(experiment):
            say(f"  {line}")
        say("")
    say(_total(expansion.plan, len(expansion.cells)))
    return 0


def _summary(experiment: Experiment, plan: Plan) -> str:
    cells = sum(cell.experiment == experiment.name for cell in plan.cells)
    return (
        f"{experiment.name}: {experiment.dataset} ({experiment.task}), "
        f"targets {', '.join(experiment.targets)}; seeds {_seeds(experiment.seeds)}; {_count(cells, 'cell')}"
        f"{_left_out(experiment, plan)}"
    )


def _left_out(experiment: Experiment, plan: Plan) -> str:
    """What leave-one-source-out costs."""
    cells = sum(cell.experiment == experiment.name and cell.left_out is not None for cell in plan.cells)
    return f", {cells} of them to leave one source out" if cells else ""


def _methods(experiment: Experiment) -> list[str]:
    width = max(len(method.name) for method in experiment.methods)
    return [
        f"{method.name:{width}}  {method.recipe}{' (reference)' if method.reference else ''}"
        for method in experiment.methods
    ]


def _total(plan: Plan, runs: int) -> str:
    shared = f", {runs} of them different" if runs != len(plan.cells) else ""
    tables = _count(len(plan.experiments), "experiment")
    return f"suite {plan.suite} is valid: {tables}, {_count(len(plan.cells), 'cell')}{shared}"


def _seeds(seeds: tuple[int, ...]) -> str:
    joined = seeds == tuple(range(seeds[0], seeds[0] + len(seeds))) and len(seeds) > 1
    return f"{seeds[0]}-{seeds[-1]}" if joined else ", ".join(map(str, seeds))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
