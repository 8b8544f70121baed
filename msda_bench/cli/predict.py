"""`msda-bench predict SUITE NEW`: trains one method on all labelled rows, and answers the rows of a new file."""

from __future__ import annotations

import argparse
import os
import shlex
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msda_bench.atomic import named, written
from msda_bench.cli.lines import say, warn, warn_of
from msda_bench.errors import LONGEST_LINE, BenchError, printable

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.api import DomainData, NewRows, NewRowsReader
    from msda_bench.plugins import Registry
    from msda_bench.running.final import FittedMethod
    from msda_bench.suite.cell import Cell
    from msda_bench.suite.described import OwnMethods
    from msda_bench.suite.expand import Expansion
    from msda_bench.suite.facts import Facts
    from msda_bench.suite.load import Suite
    from msda_bench.suite.plan import Experiment, Method


@dataclass(frozen=True)
class Wish:
    """What is to be trained, and how.

    Attributes:
        suite: a suite by name, or a file.
        method: one of its methods.
        results: the parent of the suite's result folder, from which selected settings are read.
        seed: of all draws; None for the suite's first.
        device: auto, cpu or cuda.
        fetch: whether missing data may be downloaded.
        trust_files: whether the code of Python files that the suite names may run.
        added: estimators of this Python session.
    """

    suite: Path
    method: str
    results: Path = Path("results")
    seed: int | None = None
    device: str = "auto"
    fetch: bool = False
    trust_files: bool = False
    added: OwnMethods | None = None


def fit(
    suite: str | Path,
    method: str,
    target: str | Path | pd.DataFrame | Mapping[str, Any] | None = None,
    *,
    results: str | Path = "results",
    seed: int | None = None,
    device: str = "auto",
    fetch: bool = False,
    trust_files: bool = False,
    methods: Mapping[str, Any] | None = None,
) -> FittedMethod:
    """Trains a method of a suite on every labelled row of its data, as a model that predicts new files.

    Args:
        suite: a file, such as `mine.yaml`, or a suite that comes with msda-bench.
        method: the name of one of its methods; not of one that learns from the target's labels.
        target: the unlabelled rows of the domain to adapt to: a file or folder, a data frame or a mapping of arrays. A
            method that looks at no target needs none.
        results: parent of the suite's result folder: where the suite selects settings, the method gets those that were
            selected most often, over targets and seeds.
        seed: of all draws; None for the suite's first.
        device: auto, cpu or cuda.
        fetch: whether missing data may be downloaded.
        trust_files: whether the code of Python files that the suite names as estimators may run.
        methods: your own estimators by name, as for `msda_bench.run`.

    Returns:
        The model: `predict`, `predict_proba` and `answers` take new files. `joblib.dump` stores it.

    Raises:
        TypeError, ValueError: an argument has another type, or is out of range.
        BenchError: the suite, the method, a plugin, the data or the target cannot be used, or training diverged.
    """
    import pandas as pd

    from msda_bench.results.door import argument
    from msda_bench.running.final import as_path, few_lines, read_new, refuse_several, targets_in
    from msda_bench.suite.described import own_methods
    from msda_bench.suite.spec import MAX_SEED

    if (seed := argument("seed", seed, int | None)) is not None and not 0 <= seed <= MAX_SEED:
        raise ValueError(f"seed: must be a whole number from 0 to 2**31 - 1, not {seed}")
    in_memory = isinstance(target, pd.DataFrame) or (isinstance(target, Mapping) and bool(target))
    rows_of = target if in_memory else argument("target", target, str | Path | None)
    wish = Wish(
        suite=Path(argument("suite", suite, str | Path)),
        method=argument("method", method, str),
        results=Path(argument("results", results, str | Path)),
        seed=seed,
        device=argument("device", device, Literal["auto", "cpu", "cuda"]),
        fetch=argument("fetch", fetch, bool),
        trust_files=argument("trust_files", trust_files, bool),
        added=own_methods(methods) if isinstance(methods, Mapping) else argument("methods", methods, None),
    )
    trainer = _Trainer(wish)
    if rows_of is None:
        if trainer.sees_target:
            raise BenchError(f"{method}: adapts to the new domain; give its rows as `target`, without labels")
        return trainer.fit(None, None)
    with as_path(rows_of) as path:
        rows = read_new(trainer.reader, path)
    if not trainer.sees_target:
        return trainer.fit(None, None)
    targets = targets_in(rows, path)
    refuse_several(method, targets, path)
    for line in (*trainer.doubts_about(rows), *few_lines(method, targets)):
        warnings.warn(printable(line), stacklevel=2)
    return trainer.fit(next(iter(targets)), rows.data)


def command(args: argparse.Namespace) -> int:
    """Writes the answers for a new file."""
    from msda_bench.results.files import refuse_result_folders

    _refuse_existing(args.out)
    refuse_result_folders(args.out, what="--out")
    wish = Wish(args.suite, args.method, args.results, args.seed, args.device, args.fetch, args.trust_files)
    trainer = _Trainer(wish, quiet=args.quiet)

    import numpy as np

    from msda_bench.running.final import answers_frame, few_lines, read_new, rows_at, targets_in

    rows = read_new(trainer.reader, args.new)
    targets = targets_in(rows, args.new)
    one_model = not trainer.sees_target
    warn_of([*trainer.doubts_about(rows), *([] if one_model else few_lines(args.method, targets))])
    outputs = np.empty(0)
    for name, places in {args.new.name: np.arange(len(rows.data.y))}.items() if one_model else targets.items():
        mine = rows_at(rows.data, places)
        model = trainer.fit(None, None) if one_model else trainer.fit(name, mine)
        made = model.outputs(mine)
        outputs = outputs if len(outputs) else np.empty((len(rows.data.y), made.shape[1]))
        outputs[places] = made
        warn_of(trainer.doubts(name, made))
    frame = answers_frame(rows, trainer.reader.classes, outputs)
    with named(args.out, "cannot be written"), written(args.out, lambda: _refuse_existing(args.out)) as stream:
        stream.write(frame.to_csv(index=False, lineterminator="\n").encode())
    say(f"wrote {args.out}: {len(frame)} answers of {args.method}")
    return 0


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise BenchError(f"{path}: already there; name another file with --out, or move this one")


class _Trainer:
    """One method of a suite, ready to be trained.

    Attributes:
        reader: what reads new files for it.
        sees_target: whether the method, or what makes rows numbers, looks at the target's rows.

    Raises:
        BenchError: the suite, the method or the data cannot be used.
    """

    def __init__(self, wish: Wish, *, quiet: bool = False) -> None:
        from msda_bench.cli.train import ask_trust, find_device
        from msda_bench.plugins import discover
        from msda_bench.running.data import ensure_data
        from msda_bench.suite.expand import expand
        from msda_bench.suite.load import load_suite

        self._registry = discover()
        warn_of(self._registry.problems)
        suite = load_suite(wish.suite, self._registry, None, wish.added)
        expansion = expand(suite, self._registry)
        facts, table, method = _find(wish, suite, expansion)
        self._wish, self._quiet = wish, quiet
        self._device = find_device(wish.device)
        cell = _cell_of(wish, expansion, table, method, report=self._report)
        ask_trust(wish.suite, [cell], trusted=wish.trust_files)
        self._cell = replace(
            cell,
            target="",
            sources=_labelled(facts),
            seed=table.seeds[0] if wish.seed is None else wish.seed,
            validators=(),
            metrics=None,
            keep=(),
        )
        _refuse(wish.method, self._cell, facts)
        ensure_data([self._cell], self._registry, self._report, fetch=wish.fetch or suite.fetch, device=self._device)
        self.reader = self._reader(facts)
        self.sees_target = _sees_target(self._cell, self._registry) or self.reader.sees_target
        self._labels: Any = None

    def fit(self, target: str | None, rows: DomainData | None) -> FittedMethod:
        """The method, trained on all labelled rows and on the unlabelled ones of a target.

        Raises:
            BenchError: training diverged, or a component breaks its contract.
        """
        from msda_bench.blame import blaming, packages_of
        from msda_bench.data import LocalFiles
        from msda_bench.engine.final import train_final
        from msda_bench.results.words import counted
        from msda_bench.running.final import FittedMethod

        name = "new" if target is None else target
        cell = replace(self._cell, target=f"{name} (new)" if name in self._cell.sources else name)
        packages = packages_of(ref.distribution for ref in cell.refs)
        with blaming(packages, self._wish.method, (MemoryError,)):
            files = LocalFiles(dataset=cell.dataset.name)
            trained = train_final(cell, self._registry, files, rows, self._device)
        self._labels = trained.labels
        to = "" if rows is None else f", for {counted(len(rows.y), 'row')} of {target}"
        of = f"{counted(trained.rows, 'row')} of {counted(len(cell.sources), 'domain')}"
        self._report(f"{self._wish.method}: trained on {of}{to}")
        return FittedMethod(self._wish.method, target, trained.weights, self.reader, trained.model, self._device)

    def doubts_about(self, rows: NewRows) -> tuple[str, ...]:
        """The lines on new rows that concern the method."""
        from msda_bench.running.final import doubts_about

        return doubts_about(rows, self._cell)

    def doubts(self, target: str, outputs: Any) -> list[str]:
        """How the answers for a target differ widely from the labels that were learned from; none on a few rows."""
        from msda_bench.results.answered import doubts_of
        from msda_bench.running.final import FEW

        if len(outputs) < FEW:
            return []
        return doubts_of(target, self._wish.method, outputs, self._labels, self.reader.classes)

    def _report(self, line: str) -> None:
        if not self._quiet:
            warn(printable(line, LONGEST_LINE))

    def _reader(self, facts: Facts) -> NewRowsReader:
        from msda_bench.data import LocalFiles

        data = facts.data
        with facts.file.dataset.entry.blamed("cannot be read"):
            reader = data.new_rows_reader(LocalFiles(dataset=data.name))
        if reader is None:
            known = "a table, arrays or images of your own"
            raise BenchError(f"{self._wish.suite}: dataset {data.name} reads no new files; predict is for {known}")
        return reader


def _find(wish: Wish, suite: Suite, expansion: Expansion) -> tuple[Facts, Experiment, Method]:
    """The method, and the experiment that has it."""
    from msda_bench.suite.mistakes import hint

    every = zip(suite.experiments, expansion.plan.experiments, strict=True)
    pairs = [(facts, table) for facts, table in every if facts.without is None]
    found = [(*pair, method) for pair in pairs for method in pair[1].methods if method.name == wish.method]
    if not found:
        known = dict.fromkeys(method.name for _, table in pairs for method in table.methods)
        raise BenchError(f"{wish.suite}: no method {wish.method!r}{hint(wish.method, known)}")
    if len(found) > 1:
        names = ", ".join(table.name for _, table, _ in found)
        raise BenchError(f"{wish.suite}: {wish.method} is in {names}; give the file of one of these suites")
    return found[0]


def _labelled(facts: Facts) -> tuple[str, ...]:
    """The domains that have labels, of those that the suite uses as sources."""
    wanted = facts.domains if facts.file.sources is None else facts.file.sources
    without = facts.data.unlabelled_domains
    return tuple(name for name in facts.domains if name in wanted and name not in without)


def _cell_of(wish: Wish, expansion: Expansion, table: Experiment, method: Method, *, report: Any) -> Cell:
    """A run of the method, with the settings that the suite gives or has selected."""
    number = None if method.search is None else _selected(wish, expansion, table, method, report=report)
    planned = next(
        cell
        for cell in expansion.plan.cells
        if (cell.experiment, cell.method, cell.candidate) == (table.name, method.name, number)
    )
    return expansion.cells[planned.key]


def _selected(wish: Wish, expansion: Expansion, table: Experiment, method: Method, *, report: Any) -> int:
    """The candidate that was selected most often, over targets and seeds; of several the first.

    Raises:
        BenchError: no results select one.
    """
    from msda_bench.results.frame import read_runs
    from msda_bench.results.runs import results_of
    from msda_bench.results.select import Candidates
    from msda_bench.store import Store
    from msda_bench.suite.cell import canonical_json

    search = method.search
    assert search is not None  # noqa: S101 - asked before
    if len(search.candidates) == 1:
        return 0
    folder = wish.results / expansion.plan.suite
    store, remedy = Store.find(folder), f"`{shlex.join(['msda-bench', 'run', str(wish.suite)])}`"
    if store is None:
        what = f"the suite selects the settings of {method.name} by its results, and {folder} has none"
        raise BenchError(f"{what}; run {remedy} first, or name their parent with --results")
    runs = read_runs(store, expansion.plan)
    scored = next(one for one in results_of(runs).plan.experiments if one.name == table.name)
    choices = list(Candidates(runs).choices(scored, method))
    votes = Counter(choice.number for choice in choices if choice.number is not None)
    if not votes:
        raise BenchError(f"{folder}: has no run that selects settings of {method.name} by {search.by}; run {remedy}")
    if lacking := len(choices) - votes.total():
        warn_of([f"{folder}: {lacking} of {len(choices)} runs of {method.name} have not selected settings yet"])
    number = max(votes, key=lambda number: (votes[number], -number))
    values = ", ".join(f"{path} {canonical_json(value)}" for path, value in search.candidates[number].items())
    report(f"{method.name}: {values}; selected in {votes[number]} of {len(choices)} ({choices[0].by})")
    return number


def _refuse(name: str, cell: Cell, facts: Facts) -> None:
    """Refuses what cannot predict a new domain, or should not.

    Raises:
        BenchError: one line says why.
    """
    from msda_bench.api import GivenScheme

    scheme = facts.file.methods[name].scheme.component
    if scheme.needs_target_labels or cell.labelled_target:
        raise BenchError(f"{name}: learns from labels of the target, which new rows do not have; name another method")
    if isinstance(scheme, GivenScheme):
        raise BenchError(f"{name}: is another model's predictions, which new rows do not have; name another method")
    for key in ("corrupt", "label_shift"):
        if getattr(facts.data, key) is not None:
            raise BenchError(f"{name}: the suite changes labels (`{key}`), which no model to use should learn from")


def _sees_target(cell: Cell, registry: Registry) -> bool:
    """Whether a method looks at the unlabelled rows of the target."""
    from msda_bench.engine.model import Components

    components = Components.of(cell, registry)
    adapts = cell.standardise is not None or cell.prior_correction is not None
    return adapts or components.draws_target or components.scheme.target_statistics
