"""`msda-bench run SUITE --dry-run`: stored runs, hours for the others, and how small a gain could be found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pandas as pd

from msda_bench.results import formats
from msda_bench.results.estimates import POWER
from msda_bench.results.power import Pilot
from msda_bench.results.report import Column, Line, Report, Section, Table
from msda_bench.results.words import counted, name_of
from msda_bench.running.forecast import hours_text, stored_runs
from msda_bench.running.runner import missing_runs
from msda_bench.running.training import Training
from msda_bench.suite.run_spec import RunSpec


def dry_run_report(training: Training) -> Report:
    """How many runs of each method are stored and to train, their hours, and how small a gain the suite finds."""
    store, stages = training.find_store(), training.stages()
    selected = stages.first + stages.rest(store)
    missing = missing_runs(training.expansion, store, selected, training.options.limit)
    planned = Counter((run.experiment, run.method) for run in missing.selected)
    to_train = Counter((run.experiment, run.method) for run in missing.selected if run.key in missing.to_train)
    rows = [(*method, count - to_train[method], to_train[method]) for method, count in planned.items()]
    names = ("experiment", "method", "stored", "to_train")
    columns = tuple(Column(name.replace("_", " "), formats.text, [name]) for name in names)
    table = Table("dry-run", "runs of each method", pd.DataFrame(rows, columns=names), columns)
    counts = f"{missing.stored} runs stored, {len(missing.to_train)} to train"
    if missing.left:
        counts += f", {missing.left} skipped by --limit"
    if stages.waiting:
        counts += f"; {counted(stages.waiting, 'run')} must wait for what is chosen on tuning seeds"
    texts = [f"{training.folder}: {counts}; nothing was changed"]
    texts += _prospects(training, missing.to_train, stored_runs(store))
    lines = tuple(Line("line", text, wrapped=False) for text in texts)
    return Report((Section((table,), lines),), complete=not missing.to_train)


def _prospects(training: Training, to_train: Mapping[str, RunSpec], runs: pd.DataFrame | None) -> Iterator[str]:
    """The hours of the runs to train, and for each experiment the smallest gain that is likely found."""
    if to_train:
        count = counted(len(to_train), "run")
        hours = hours_text(training.expansion, to_train, runs)
        yield f"{count} {hours or 'take an unknown time: no run on their data is stored; --limit 20 trains some'}"
    pilot = None if runs is None else Pilot(runs)
    for experiment in training.expansion.plan.experiments:
        gain = None if pilot is None else pilot.smallest_gain(experiment)
        if gain is not None:
            found = f"{counted(len(experiment.seeds), 'seed')} find a true gain of {gain:.2g} points"
            yield f"{experiment.name}: {found} over {name_of(experiment.baseline)} with probability {POWER:.0%}"
