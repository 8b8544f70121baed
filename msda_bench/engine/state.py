"""The state of runs: values that they carry from step to step besides their weights, and the hooks that change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from msda_bench.api import Batch, Carried, Parts, Phase, PluginError, Sizes, SourcePass, TargetPass
from msda_bench.engine.draws import Draws
from msda_bench.engine.model import fixed_statistics
from msda_bench.engine.runs import Run
from msda_bench.engine.stacked import Program
from msda_bench.engine.stacking import overrides
from msda_bench.engine.stages import StageSteps
from msda_bench.engine.tensors import take


class StateHooks:
    """Calls a scheme's hooks `carry`, `at_stage`, `at_epoch` and `after_step`, if it overrides them.

    Runs whose scheme has a state have the same sizes; the program's `state` holds the values.
    """

    def __init__(self, runs: Sequence[Run], program: Program, draws: Sequence[Draws]) -> None:
        first = runs[0]
        self._runs = runs
        self._program = program
        self._draws = draws
        self._scheme = first.scheme
        self._sizes = Sizes(
            groups=tuple(map(sum, first.sizes)),
            target=len(first.target_rows),
            features=program.feature_dim,
            outputs=first.prepared.task.outputs,
        )
        hooks = ("carry", "at_stage", "at_epoch", "after_step")
        self._hooks = {hook for hook in hooks if overrides(self._scheme, hook)}

    @torch.no_grad()
    def start(self, stage: StageSteps) -> None:
        """Sets the state at the start of a stage; earlier values are dropped."""
        program = self._program
        program.state = {}
        if "carry" in self._hooks:
            values = program.call(lambda scheme, parts: dict(scheme.carry(parts, self._sizes, stage.stage)))
            for name, value in values.items():
                # Copies, because a scheme may give the weights themselves, which change in place.
                program.state[name] = value.detach().to(program.y.device).clone()
        if "at_stage" in self._hooks and "sources" in stage.stage.sees:
            self._call("at_stage", self._source_pass(stage.number), stage)

    @torch.no_grad()
    def at_epoch(self, stage: StageSteps, epoch: int, progress: Tensor) -> None:
        """Starts an epoch: passes over the target if the stage may see it and the scheme asks for it."""
        if "at_epoch" in self._hooks and "target" in stage.stage.sees:
            self._call("at_epoch", self._target_pass(epoch, stage.number, progress), stage)

    @torch.no_grad()
    def after_step(self, batch: Batch, phase: Phase) -> None:
        """Calls the scheme's hook after an update of the weights."""
        if "after_step" not in self._hooks:
            return
        program = self._program
        now = batch._replace(carried=program.state)
        with fixed_statistics(program.modules):
            values = program.call(lambda scheme, parts, given: dict(scheme.after_step(parts, given, phase)), now)
        self.replace(self.owned(values))

    def replace(self, values: Carried) -> None:
        """Replaces values of the state by new ones, which `owned` gave."""
        if values:
            self._program.state = {**self._program.state, **values}

    def owned(self, values: Carried) -> Carried:
        """New values without gradients; weights and views of them are copied, since they change in place.

        Raises:
            PluginError: a value has an unknown name, or its shape or dtype changed.
        """
        if not values:
            return {}
        former = self._program.state
        for name, value in values.items():
            had = _described(former[name]) if name in former else "nothing"
            has = _described(value)
            if has != had:
                what = f"gave {has} to carry as {name!r}, where `carry` gave {had}"
                raise PluginError(f"scheme {self._scheme.name!r} {what}")
        weights = {_memory(value) for value in self._program.modules.parameters()}
        for part in self._program.trainable.values():
            weights.update(map(_memory, part.parameters))
        owned = {}
        for name, value in values.items():
            detached = value.detach()
            owned[name] = detached.clone() if _memory(detached) in weights else detached
        return owned

    def _call(self, hook: str, seen: SourcePass | TargetPass, stage: StageSteps) -> None:
        def ask(scheme: Any, parts: Parts, *given: Any) -> dict[str, Tensor]:
            return dict(getattr(scheme, hook)(parts, *given, stage.stage))

        program = self._program
        program.modules.eval()
        values = program.call(ask, seen, program.state)
        program.modules.train()
        self.replace(self.owned(values))

    def _source_pass(self, stage: int) -> SourcePass:
        rows = [run.labelled_rows for run in self._runs]
        y = [run.data.y[mine] for run, mine in zip(self._runs, rows, strict=True)]
        sizes = torch.tensor(self._sizes.groups, device=rows[0].device)
        numbers = torch.arange(len(sizes), device=sizes.device)
        # Without the sum a GPU would have to report it, and the host to wait.
        group = numbers.repeat_interleave(sizes, output_size=len(y[0]))
        keys = [draws.source_pass(stage) for draws in self._draws]
        return SourcePass(*self._passed(rows, y, [group] * len(rows), keys))

    def _target_pass(self, epoch: int, stage: int, progress: Tensor) -> TargetPass:
        rows = [run.target_rows for run in self._runs]
        keys = [draws.passes(epoch, stage) for draws in self._draws]
        features, outputs, key = self._passed(rows, keys)
        return TargetPass(features, outputs, key, progress)

    def _passed(self, rows: Sequence[Tensor], *more: Sequence[Tensor]) -> list[Tensor]:
        """Features and outputs of each run's rows, then the other values of each run; stacked if the runs are."""
        examples = [take(run.data.x, mine) for run, mine in zip(self._runs, rows, strict=True)]
        seen = self._program.apply(examples)
        features = [part.features for part in seen]
        outputs = [part.outputs for part in seen]
        columns = [features, outputs, *map(list, more)]
        return [torch.stack(column) if self._program.lead else column[0] for column in columns]


def _memory(value: Tensor) -> int:
    """Where the memory that a tensor views begins."""
    return value.untyped_storage().data_ptr()


def _described(value: object) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
