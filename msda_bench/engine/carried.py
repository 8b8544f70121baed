"""Values that runs carry from step to step besides their weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from msda_bench.api import Batch, Carried, Phase, PluginError, Sizes, SourcePass, TargetPass
from msda_bench.engine.draws import Draws
from msda_bench.engine.model import fixed_statistics
from msda_bench.engine.runs import Run
from msda_bench.engine.stacked import Program
from msda_bench.engine.stacking import overrides
from msda_bench.engine.stages import Span
from msda_bench.engine.tensors import take


class Carrier:
    """Calls the hooks by which a scheme carries values from step to step, if it has them.

    Runs whose scheme carries anything have the same sizes; the program's `carried` holds the values.
    """

    def __init__(self, runs: Sequence[Run], program: Program, draws: Sequence[Draws]) -> None:
        first = runs[0]
        self._runs, self._program, self._draws, self._scheme = runs, program, draws, first.scheme
        target, outputs = len(first.target_rows), first.prepared.task.outputs
        self._sizes = Sizes(tuple(map(sum, first.sizes)), target, program.feature_dim, outputs)
        hooks = "carry", "at_stage", "after_step", "at_epoch"
        self._carries, self._begins, self._follows, self._looks = (overrides(self._scheme, hook) for hook in hooks)

    @torch.no_grad()
    def start(self, span: Span) -> None:
        """Sets the values carried at the start of a stage; earlier ones are dropped."""
        self._program.carried = {}
        if self._carries:
            values = self._program.call(lambda scheme, parts: dict(scheme.carry(parts, self._sizes, span.stage)))
            device = self._program.y.device
            # Copies, because a scheme may give the weights themselves, which change in place.
            self._program.carried = {name: value.detach().to(device).clone() for name, value in values.items()}
        if self._begins and "sources" in span.stage.sees:
            self._call("at_stage", self._source_pass(span.number), span)

    @torch.no_grad()
    def look(self, span: Span, epoch: int, progress: Tensor) -> None:
        """Starts an epoch: passes over the target if the stage may see it and the scheme asks for it."""
        if not self._looks or "target" not in span.stage.sees:
            return
        self._call("at_epoch", self._target_pass(epoch, span.number, progress), span)

    @torch.no_grad()
    def follow(self, batch: Batch, phase: Phase) -> None:
        """Calls the scheme's hook after an update of the weights."""
        if self._follows:
            now = batch._replace(carried=self._program.carried)
            with fixed_statistics(self._program.modules):
                values = self._program.call(
                    lambda scheme, parts, given: dict(scheme.after_step(parts, given, phase)), now
                )
            self.renew(self.owned(values))

    def renew(self, values: Carried) -> None:
        """Replaces carried values by new ones, which `owned` gave."""
        if values:
            self._program.carried = {**self._program.carried, **values}

    def owned(self, values: Carried) -> Carried:
        """New values without gradients; weights and views of them are copied, since they change in place.

        Raises:
            PluginError: a value has an unknown name, or its shape or dtype changed.
        """
        if not values:
            return {}
        former = self._program.carried
        for name, value in values.items():
            had = _shown(former[name]) if name in former else "nothing"
            if _shown(value) != had:
                raise PluginError(
                    f"scheme {self._scheme.name!r} gave {_shown(value)} to carry as {name!r}, where `carry` gave {had}"
                )
        weights = {_memory(value) for value in self._program.modules.parameters()}
        weights |= {_memory(value) for part in self._program.trainable.values() for value in part.parameters}
        detached = {name: value.detach() for name, value in values.items()}
        return {name: value.clone() if _memory(value) in weights else value for name, value in detached.items()}

    def _call(self, hook: str, seen: SourcePass | TargetPass, span: Span) -> None:
        program = self._program
        program.modules.eval()
        values = program.call(
            lambda scheme, parts, *given: dict(getattr(scheme, hook)(parts, *given, span.stage)), seen, program.carried
        )
        program.modules.train()
        self.renew(self.owned(values))

    def _source_pass(self, stage: int) -> SourcePass:
        rows = [run.labelled_rows for run in self._runs]
        y = [run.data.y[lying] for run, lying in zip(self._runs, rows, strict=True)]
        sizes = torch.tensor(self._sizes.groups, device=rows[0].device)
        # Without the sum a GPU would have to tell it, and the host to wait.
        group = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes, output_size=len(y[0]))
        groups = [group] * len(rows)
        return SourcePass(*self._passed(rows, y, groups, [draws.source_pass(stage) for draws in self._draws]))

    def _target_pass(self, epoch: int, stage: int, progress: Tensor) -> TargetPass:
        rows, keys = [run.target_rows for run in self._runs], [draws.passes(epoch, stage) for draws in self._draws]
        features, outputs, key = self._passed(rows, keys)
        return TargetPass(features, outputs, key, progress)

    def _passed(self, rows: Sequence[Tensor], *more: Sequence[Tensor]) -> list[Tensor]:
        """Features and outputs of each run's rows, and what each run has more, stacked if the runs are."""
        seen = self._program.apply([take(run.data.x, lying) for run, lying in zip(self._runs, rows, strict=True)])
        columns = [part.features for part in seen], [part.outputs for part in seen], *more
        return [torch.stack(list(column)) if self._program.lead else column[0] for column in columns]


def _memory(value: Tensor) -> int:
    """Where the memory that a tensor views begins."""
    return value.untyped_storage().data_ptr()


def _shown(value: object) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
