"""The training core: cells in, records out.

`Trainer.train` is the only entry point; nothing else depends on how cells are trained.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from msda_bench.api import DivergedError, Files, Predictor
from msda_bench.engine.evaluate import evaluate, evaluate_diverged, evaluate_given
from msda_bench.engine.fit import fit
from msda_bench.engine.fitted import fit_predictor
from msda_bench.engine.machine import provenance
from msda_bench.engine.model import Components
from msda_bench.engine.outcome import class_notes
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.settings import deterministic, products
from msda_bench.engine.single import Single
from msda_bench.engine.stacked import Stacked
from msda_bench.engine.stacking import RunWithComponents, Sizing, padded, same_shapes, stack_groups, unstackable_reason
from msda_bench.plugins import Registry
from msda_bench.plugins.process_state import restored
from msda_bench.plugins.torch_state import neutral
from msda_bench.store.record import Record
from msda_bench.suite.run_spec import RunSpec


class Trainer:
    """Trains cells on one device; keeps the data of the last split between calls.

    Args:
        registry: the installed components.
        files: how datasets reach their files.
        device: "cpu", "cuda" or "cuda:N".
        stack: how many cells may train as one tensor program, rounded down to a power of two; None for as many as
            the memory of a GPU holds, and one where a stack is slower: on the CPU, whose caches it leaves, and of
            networks that convolve.
    """

    def __init__(
        self,
        registry: Registry,
        files: Files,
        device: str,
        stack: int | None = None,
    ) -> None:
        self._registry = registry
        self._device = torch.device(device)
        self._files = files
        self._preparer = Preparer(files, self._device)
        self._sizing = Sizing(self._device, stack)

    def train(self, cells: Sequence[RunSpec]) -> Iterator[Record]:
        """The records of the cells, each ok or diverged, in the order in which they are trained.

        On the CPU that is the order of the cells. Training is lazy: a cell is trained when its record is requested.
        Process settings that a component changes, such as the default dtype, are restored after each cell; the
        provenance names them.

        Raises:
            BenchError: a component or the data cannot be used; one line reports which and why.
        """
        records = self._records(cells)
        while True:
            changed: list[str] = []
            try:
                with neutral(), restored() as changed:
                    record = next(records, None)
            except BaseException as error:
                if changed:
                    error.add_note(f"before, a component changed {' and '.join(changed)}; it was put back")
                raise
            if record is None:
                return
            yield replace(record, provenance={**record.provenance, "put_back": changed}) if changed else record

    def _records(self, cells: Sequence[RunSpec]) -> Iterator[Record]:
        members = [(cell, Components.of(cell, self._registry)) for cell in cells]
        if not self._sizing.stacks:
            for member in members:
                yield from self._together([member], None)
            return
        for group in stack_groups(members):
            yield from self._in_stacks(group)

    def _in_stacks(self, group: Sequence[RunWithComponents]) -> Iterator[Record]:
        components = group[0][1]
        size = 1
        reason = unstackable_reason(components)
        if reason is None:
            size, reason = self._sizing.size(components, lambda: self._probe(group[0]))
        waiting = [group[start : start + size] for start in range(0, len(group), size)]
        while waiting:
            chunk = waiting.pop(0)
            records = None
            try:
                records = self._together(chunk, reason)
            except torch.OutOfMemoryError:
                if len(chunk) == 1:
                    raise
            if records is not None:
                yield from records
                continue
            # Outside the handler, whose traceback would keep the lost attempt's tensors alive.
            if self._device.type == "cuda":
                torch.cuda.empty_cache()
            reason = f"{len(chunk)} runs at once did not fit in memory"
            middle = len(chunk) // 2
            waiting[:0] = [chunk[:middle], chunk[middle:]]

    def _probe(self, member: RunWithComponents) -> None:
        """Trains two steps and one of each stage of one run as a stack, and evaluates it."""
        run = self._run(member)
        run = run.of_steps(max(2, len(run.scheme.stages)))
        with deterministic(self._device), products(run.cell.training.precision, self._device):
            program = Stacked([run], self._device)
            evaluate([run], program, fit([run], program))

    def _run(self, member: RunWithComponents) -> Run:
        cell, components = member
        prepared = self._preparer.prepare(components.dataset, cell, components.backbone)
        prepared.check_validators(components.validators, cell)
        return Run(cell, components, prepared, self._files)

    def _together(self, chunk: Sequence[RunWithComponents], note: str | None) -> list[Record]:
        start = time.perf_counter()
        runs = [self._run(member) for member in chunk]
        loading = (time.perf_counter() - start) / len(runs)
        return [record for alike in same_shapes(runs) for record in self._train(alike, loading, note)]

    def _train(self, runs: Sequence[Run], loading: float, note: str | None) -> list[Record]:
        start = time.perf_counter()
        full = padded(runs)
        with deterministic(self._device), products(runs[0].cell.training.precision, self._device):
            if isinstance(runs[0].components.scheme, Predictor):
                records, ready, done = self._predictor(runs[0])
            else:
                records, ready, done = self._program(full)
        spent = {
            "prepare": ready - start,
            "train": done - ready,
            "evaluate": time.perf_counter() - done,
        }
        shares = {name: seconds / len(runs) for name, seconds in spent.items()}
        shares["prepare"] += loading
        results = zip(runs, records, strict=False)  # the padding's results go
        return [self._with_provenance(*result, shares, len(full), note) for result in results]

    def _program(self, runs: Sequence[Run]) -> tuple[list[Record], float, float]:
        """The records of runs that take steps, and when training began and ended."""
        program = Single(runs[0], self._device) if len(runs) == 1 else Stacked(runs, self._device)
        ready = time.perf_counter()
        results = fit(runs, program)
        done = time.perf_counter()
        return evaluate(runs, program, results), ready, done

    def _predictor(self, run: Run) -> tuple[list[Record], float, float]:
        """The record of a run that is fitted or given, and when the fit began and ended."""
        ready = done = time.perf_counter()
        try:
            model, result = fit_predictor(run)
            if model.scheme.uses_predictions:
                return [evaluate_given(run, model, result)], ready, ready
            done = time.perf_counter()
            return evaluate([run], model, [result]), ready, done
        except DivergedError as why:
            return [evaluate_diverged(run, str(why))], ready, done

    def _with_provenance(
        self,
        run: Run,
        record: Record,
        seconds: dict[str, float],
        stack: int,
        note: str | None,
    ) -> Record:
        """The record with its timing and provenance."""
        where = provenance(self._device, run.cell, self._registry, stack)
        stages = run.components.scheme.stages
        rights = [{"name": stage.name, "share": stage.share, "sees": list(stage.sees)} for stage in stages]
        more: dict[str, object] = {"stack_note": note, **record.provenance}
        more["stages"] = rights if len(rights) > 1 else None
        more["class_notes"] = class_notes(run.prepared) or None
        known = {name: value for name, value in more.items() if value is not None}
        timing = {name: round(spent, 4) for name, spent in seconds.items()}
        return replace(
            record,
            timing=timing | record.timing,
            provenance=where | known,
        )
