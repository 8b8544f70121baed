"""Values that runs carry from step to step besides their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from msda_bench.api import Batch, Carried, Phase, PluginError, Scheme, Sizes, TargetPass
from msda_bench.engine.draws import Draws
from msda_bench.engine.model import fixed_statistics
from msda_bench.engine.program import Program
from msda_bench.engine.runs import Run
from msda_bench.engine.stages import Span
from msda_bench.engine.tensors import take


class Carrier:
    """Calls the hooks by which a scheme carries values from step to step, if it has them.

    Args:
        runs: of the program, all with the same sizes if their scheme carries anything.
        program: their tensors; its `carried` holds the values.
        draws: one for each run.
    """

    def __init__(self, runs: Sequence[Run], program: Program, draws: Sequence[Draws]) -> None:
        first = runs[0]
        self._runs, self._program, self._draws, self._scheme = runs, program, draws, first.components.scheme
        target, outputs = len(first.target_rows), first.prepared.task.outputs
        self._sizes = Sizes(tuple(map(sum, first.sizes)), target, program.feature_dim, outputs)
        self._carries, self._follows, self._looks = (
            overrides(self._scheme, hook) for hook in ("carry", "after_step", "at_epoch")
        )

    @torch.no_grad()
    def start(self, span: Span) -> None:
        """Sets the values carried at the start of a stage; earlier ones are dropped."""
        self._program.carried = {}
        if self._carries:
            values = self._program.call(lambda scheme, parts: dict(scheme.carry(parts, self._sizes, span.stage)))
            device = self._program.y.device
            # Copies, because a scheme may give the weights themselves, which change in place.
            self._program.carried = {name: value.detach().to(device).clone() for name, value in values.items()}

    @torch.no_grad()
    def look(self, span: Span, epoch: int, progress: Tensor) -> None:
        """Starts an epoch: passes over the target if the stage may see it and the scheme asks for it."""
        if not self._looks or "target" not in span.stage.sees:
            return
        program = self._program
        target = self._target_pass(epoch, span.number, progress)
        program.modules.eval()
        values = program.call(
            lambda scheme, parts, *given: dict(scheme.at_epoch(parts, *given, span.stage)), target, program.carried
        )
        program.modules.train()
        self.renew(values)

    @torch.no_grad()
    def follow(self, batch: Batch, phase: Phase) -> None:
        """Calls the scheme's hook after an update of the weights."""
        if self._follows:
            now = batch._replace(carried=self._program.carried)
            with fixed_statistics(self._program.modules):
                values = self._program.call(
                    lambda scheme, parts, given: dict(scheme.after_step(parts, given, phase)), now
                )
            self.renew(values)

    def renew(self, values: Carried) -> None:
        """Replaces carried values by new ones.

        Raises:
            PluginError: a value has an unknown name, or its shape or dtype changed.
        """
        if not values:
            return
        former = self._program.carried
        for name, value in values.items():
            had = _shown(former[name]) if name in former else "nothing"
            if _shown(value) != had:
                raise PluginError(
                    f"scheme {self._scheme.name!r} gave {_shown(value)} to carry as {name!r}, where `carry` gave {had}"
                )
        self._program.carried = {**former, **self._owned(values)}

    def _target_pass(self, epoch: int, stage: int, progress: Tensor) -> TargetPass:
        stacked = bool(self._program.lead)
        seen = self._program.apply([take(run.data.x, run.target_rows) for run in self._runs])
        keys = [draws.passes(epoch, stage) for draws in self._draws]
        columns = [part.features for part in seen], [part.outputs for part in seen], keys
        features, outputs, key = (torch.stack(column) if stacked else column[0] for column in columns)
        return TargetPass(features, outputs, key, progress)

    def _owned(self, found: Carried) -> Mapping[str, Tensor]:
        """The values without gradients; weights and views of them are copied, since they change in place."""
        weights = {_memory(value) for value in self._program.modules.parameters()}
        weights |= {_memory(value) for part in self._program.trainable.values() for value in part.parameters}
        values = {name: value.detach() for name, value in found.items()}
        return {name: value.clone() if _memory(value) in weights else value for name, value in values.items()}


def overrides(scheme: Scheme, hook: str) -> bool:
    """Whether a scheme overrides a hook."""
    return getattr(type(scheme), hook) is not getattr(Scheme, hook)


def _memory(value: Tensor) -> int:
    """Where the memory that a tensor views begins."""
    return value.untyped_storage().data_ptr()


def _shown(value: object) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
