"""The training loop, of one run or of a stack of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from msda_bench.api import Batch, Phase, PluginError, Scheme, Step
from msda_bench.engine.average import Average
from msda_bench.engine.draws import Draws
from msda_bench.engine.model import Keyed
from msda_bench.engine.optim import PhaseOptimizers, Trainable
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.schedule import lr_shares
from msda_bench.engine.tensors import Examples, take


class Program(Protocol):
    """The tensors of one run, or of a stack of R runs, whose tensors then all have a leading dimension of R.

    Attributes:
        lead: () for one run, (R,) for a stack.
        keyed: how many modules of a run are given a key in every phase of a step, such as dropout.
        x: training examples of all runs.
        y: their labels.
        row_offsets: (*lead,) int64: where each run's examples begin in `x`.
    """

    lead: tuple[int, ...]
    keyed: Keyed
    x: Examples
    y: Tensor
    row_offsets: Tensor

    @property
    def trainable(self) -> Mapping[str, Trainable]:
        """What can be trained, by part."""
        ...

    @property
    def averaged(self) -> Sequence[Tensor]:
        """All weights, and the buffers that hold numbers, such as batch-norm's statistics."""
        ...

    def step(self, scheme: Scheme, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """One phase's objectives; `keys` (*lead, keyed, 2) are those of the keyed modules."""
        ...

    def apply(self, examples: Sequence[Examples]) -> list[Seen]:
        """Features and outputs of each run's examples, in evaluation mode."""
        ...


class Loop:
    """The steps of a program.

    Args:
        runs: one, or as many as the program stacks; all with the same scheme but for numbers, and the same shapes.
        program: their tensors.
    """

    def __init__(self, runs: Sequence[Run], program: Program) -> None:
        first, device = runs[0], program.y.device
        self._steps, self._all_steps = first.steps, first.all_steps
        self.epochs = -(-self._all_steps // self._steps)
        self._scheme = first.components.scheme
        self._program = program
        self._draws = [Draws(run, program.keyed) for run in runs]
        self._phases = self._scheme.phases
        training = first.cell.training
        self._optimizers = PhaseOptimizers(training, program.trainable, self._phases, *program.lead)
        self._lr_shares = lr_shares(training, self._all_steps)
        averaged = program.averaged if training.average else ()
        self._average = Average(training, averaged, self._steps, self._all_steps) if training.average else None
        self._state = self._joined([_initial_state(run) for run in runs])
        self._k, self._drawn = len(first.groups), first.batch * first.batches
        self._log = torch.zeros(self._steps, *program.lead, 3, self._k, device=device)

    def epoch(self, number: int) -> Tensor:
        """One epoch, without a host sync until its end.

        Returns:
            Risks, gaps and weights, (steps, *lead, 3, k) float64 on the host.
        """
        rows = self._joined([draws.rows(number) for draws in self._draws], dim=1)
        rows = rows + self._program.row_offsets[..., None]
        keys = self._joined([draws.keys(number) for draws in self._draws], dim=1)
        before = number * self._steps
        done = before + torch.arange(self._steps, device=rows.device)
        progress = (done / self._all_steps).view(-1, *(1 for _ in self._program.lead)).expand(-1, *self._program.lead)
        labelled = rows[..., : self._k * self._drawn].reshape(*rows.shape[:-1], self._k, self._drawn)
        count = self.steps_until(number + 1) - before
        for step in range(count):
            if self._lr_shares is not None:
                self._optimizers.scale(self._lr_shares[before + step])
            x, y = take(self._program.x, rows[step]), self._program.y[labelled[step]]
            self._step(step, x, y, keys[step], progress[step])
            if self._average is not None:
                self._average.after(before + step)
        return self._log[:count].to("cpu", torch.float64)

    def steps_until(self, epochs: int) -> int:
        """Steps of so many epochs; the last one may be shorter."""
        return min(epochs * self._steps, self._all_steps)

    def finish(self) -> None:
        """Puts what is to be tested in the place of the last step's weights, where the protocol asks for that."""
        if self._average is not None:
            self._average.put()

    def _joined(self, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
        return torch.stack(list(tensors), dim) if self._program.lead else tensors[0]

    def _step(self, step: int, x: Examples, y: Tensor, keys: Tensor, progress: Tensor) -> None:
        state = self._state
        for phase, drawn in zip(self._phases, keys.unbind(-3), strict=True):
            batch = Batch(x, y, drawn[..., 0, :], progress)
            taken = self._program.step(self._scheme, batch, drawn[..., 1:, :], state, phase)
            self._check(taken)
            self._optimizers.zero_grad()
            # Runs share no parameter, so the gradient of the sum holds each run's own.
            taken.objective.sum().backward()  # type: ignore[no-untyped-call]
            self._optimizers.step(phase)
            state = taken.state.detach()
            told = [part.detach() for part in (taken.risks, taken.gaps, taken.weights)]
            torch.stack(told, dim=-2, out=self._log[step])
        self._state = state

    def _check(self, taken: Step) -> None:
        lead, k = len(self._program.lead), self._k
        shapes = [tuple(part.shape)[lead:] for part in (taken.objective, taken.risks, taken.gaps, taken.weights)]
        if shapes != [(), (k,), (k,), (k,)]:
            raise PluginError(
                f"scheme {self._scheme.name!r} gave objective, risks, gaps and weights of shapes {shapes}; with {k} "
                f"groups the contract asks for {[(), (k,), (k,), (k,)]}"
            )


def _initial_state(run: Run) -> Tensor:
    device, aggregator = run.data.y.device, run.components.aggregator
    sizes = torch.tensor([float(sum(group)) for group in run.sizes])
    return (aggregator.start(sizes) if aggregator else torch.zeros(0)).to(device)
