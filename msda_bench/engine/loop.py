"""The training loop, of one run or of a stack of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from msda_bench.api import Batch, Phase, PluginError, Step
from msda_bench.engine import graph
from msda_bench.engine.draws import Draws
from msda_bench.engine.graph import Replayed, StepFunction, can_replay
from msda_bench.engine.optim import PhaseOptimizers
from msda_bench.engine.runs import Run
from msda_bench.engine.stacked import Program
from msda_bench.engine.stages import OptimizerSegment, Stages, StageSteps
from msda_bench.engine.state import StateHooks
from msda_bench.engine.tensors import Numbers, batch_of, dense, where_rows
from msda_bench.plugin_errors import line_of
from msda_bench.suite.protocol import Averaged, Schedule, TrainingConfig


class Loop:
    """The steps of a program of one run, or of a stack: all with the same scheme up to numbers, and the same shapes."""

    def __init__(self, runs: Sequence[Run], program: Program) -> None:
        first = runs[0]
        device = program.y.device
        training = first.cell.training
        self._program = program
        self._scheme = first.scheme
        self._steps = first.steps
        self._all_steps = first.all_steps
        self.epochs = -(-self._all_steps // self._steps)
        self._draws = [Draws(run, program.keyed) for run in runs]
        self._stages = Stages(first)
        self._segments = self._stages.segments(training)
        decays_offsets = self._scheme.offsets_weights and training.optimizer.params["weight_decay"]
        self._offset = program.named if decays_offsets else {}
        self._begin(self._segments[0])
        self._average: Average | None = None
        if training.average:
            since = max(self._segments)
            self._average = Average(
                training.average,
                program.averaged,
                self._steps,
                self._all_steps,
                since,
            )
        self._hooks = StateHooks(runs, program, self._draws)
        self._replays = can_replay(first, device)
        # A graph can hold neither examples on the host nor what `augment` may draw there.
        self._takes_rows = not self._replays or (isinstance(program.x, Tensor) and not program.augment.changes)
        self._step_function: StepFunction
        self._aggregator_state = self._joined([_initial_state(run) for run in runs])
        self._k = len(first.groups)
        self._drawn = first.batch * first.batches
        self._log = torch.zeros(self._steps, *program.lead, 3, self._k, device=device)
        self._last = torch.zeros(*program.lead, 3, self._k, device=device)
        self._last[..., 2, :] = 1 / self._k

    def epoch(self, number: int) -> Tensor:
        """One epoch, without a host sync until its end.

        Returns:
            Risks, gaps and weights, (steps, *lead, 3, k) float64 on the host.
        """
        drawn = self._joined([draws.rows(number) for draws in self._draws], dim=1)
        rows, places = drawn.unbind(-2)
        rows = rows + self._program.row_offsets[..., None]
        example_rows = where_rows(self._program.x, rows)
        keys = self._joined([draws.keys(number) for draws in self._draws], dim=1)
        augment = self._joined([draws.augment(number) for draws in self._draws], dim=1)
        before = number * self._steps
        lead = self._program.lead
        for stage, steps in self._stages.of_epoch(number):
            progress = self._progress(stage, number)
            if before + steps.start == stage.first:
                self._start(stage)
            self._hooks.at_epoch(stage, number, progress[steps.start])
            cut = slice(steps.start, steps.stop)
            mine = (cut, ..., stage.columns)
            labelled = rows[mine][..., : stage.groups * self._drawn]
            y = self._program.y[labelled].reshape(len(steps), *lead, stage.groups, self._drawn)
            parts = example_rows[mine], y, keys[cut], progress[cut], places[mine], augment[cut]
            for first, block in self._blocks(steps, parts):
                if self._lr_shares is not None:
                    self._optimizers.scale(self._lr_shares[before + first - self._segment.first])
                self._run_block(first, block)
                if self._average is not None:
                    self._average.after(before + first)
        return self._log[: self._all_steps - before].to("cpu", torch.float64)  # the last epoch may be shorter

    def finish(self) -> None:
        """Frees the graphs, and replaces the weights of the last step by averages if the protocol asks for these."""
        del self._step_function  # frees what graphs hold
        if self._average is not None:
            self._average.put()

    def _start(self, stage: StageSteps) -> None:
        """Starts a stage, with new optimisers if it has its own."""
        self._hooks.start(stage)
        steps = partial(self._steps_of, stage)
        self._step_function = Replayed(steps, self._log.device) if self._replays else steps
        if stage.first in self._segments and stage.first > 0:
            self._begin(self._segments[stage.first])

    def _begin(self, segment: OptimizerSegment) -> None:
        """New optimisers for the coming steps, and their learning rates."""
        self._segment = segment
        self._optimizers = PhaseOptimizers(
            segment.training, self._program.trainable, segment.phases, *self._program.lead
        )
        self._lr_shares = lr_shares(segment.training, segment.last - segment.first)

    def _joined(self, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
        return torch.stack(list(tensors), dim) if self._program.lead else tensors[0]

    def _progress(self, stage: StageSteps, epoch: int) -> Tensor:
        """(steps, *lead) float32: the share of the stage that is done at each step of the epoch."""
        lead = self._program.lead
        steps = torch.arange(self._steps, device=self._log.device)
        done = epoch * self._steps - stage.first + steps
        share = done / (stage.last - stage.first)
        return share.view(-1, *(1 for _ in lead)).expand(-1, *lead)

    def _blocks(self, steps: range, parts: Sequence[Tensor]) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
        """The first step of each block, and the block's part of the tensors.

        A block is one step, unless nothing happens on the host between steps.
        """
        alone = self._lr_shares is not None or self._average is not None or not self._takes_rows
        length = 1 if alone or not self._replays else graph.AT_ONCE
        blocks = zip(*(torch.split(part, length) for part in parts), strict=True)
        return zip(steps[::length], blocks, strict=True)

    def _run_block(self, first: int, block: Sequence[Tensor]) -> None:
        """Takes a block of steps, and writes their risks, gaps and weights to the log; see `_steps_of`."""
        program = self._program
        examples, *more, augment = block
        if not self._takes_rows:
            x = program.augment(batch_of(program.x, examples[0]), augment[0])
            examples = dense(x).unsqueeze(0)
        known = self._aggregator_state, self._last, *program.state.values()
        log, self._aggregator_state, *state = self._step_function([examples, *more, augment, *known])
        program.state = dict(zip(program.state, state, strict=True))
        self._log[first : first + len(log)] = log
        self._last = log[-1]

    def _steps_of(self, stage: StageSteps, given: Sequence[Tensor]) -> list[Tensor]:
        """Some steps of a stage, all their phases.

        Args:
            stage: the stage.
            given: for each step the rows of its examples, or these, its labels, keys for all phases, progress,
                places and the key for `augment`; then the aggregator's state, the last step's results, and the state of
                the run.

        Returns:
            Risks, gaps and weights, (steps, *lead, 3, k), then the aggregator's state and that of the run.
        """
        program = self._program
        aggregator_state, last, *state = given[6:]
        program.state = dict(zip(program.state, state, strict=True))
        noted = []
        for one in zip(*(part.unbind() for part in given[:6]), strict=True):
            aggregator_state, last = self._step(stage, one, aggregator_state, last)
            noted.append(last)
        return [torch.stack(noted), aggregator_state, *program.state.values()]

    def _step(
        self,
        stage: StageSteps,
        given: Sequence[Tensor],
        aggregator_state: Tensor,
        last: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """One step, all its phases; the aggregator's state after it, and its risks, gaps and weights (*lead, 3, k)."""
        program = self._program
        examples, labels, keys, progress, places, augment = given
        x: Numbers = examples
        if self._takes_rows:
            x = program.augment(batch_of(program.x, examples), augment)
        for phase, drawn in zip(stage.stage.phases, keys.unbind(-3), strict=False):
            batch = Batch(x, labels, drawn[..., 0, :], progress, places, program.state)
            taken = self._updated(batch, drawn[..., 1:, :], aggregator_state, phase)
            self._hooks.replace(taken.carried)
            if taken.state.numel():
                aggregator_state = taken.state.detach()
            self._hooks.after_step(batch, phase)
            last = _noted(last, taken)
        return aggregator_state, last

    def _updated(
        self,
        batch: Batch,
        keys: Tensor,
        aggregator_state: Tensor,
        phase: Phase,
    ) -> Step:
        """The results of a phase, after which the weights are updated."""
        taken = self._program.step(batch, keys, aggregator_state, phase)
        self._check(taken)
        self._optimizers.zero_grad()
        # Runs share no parameter, so the gradient of the sum holds each run's own.
        taken.objective.sum().backward(inputs=self._optimizers.inputs(phase))  # type: ignore[no-untyped-call]
        if taken.carried:  # the update would change carried weights
            taken = taken._replace(carried=self._hooks.owned(taken.carried))
        offsets: dict[int, Tensor] = {}
        if self._offset:
            added = {**batch.carried, **taken.carried}
            offsets = {id(value): added[name] for name, value in self._offset.items() if name in added}
        self._optimizers.step(phase, offsets)
        return taken

    def _check(self, taken: Step) -> None:
        if not isinstance(taken, Step):
            raise PluginError(f"{self._who()} gave a {type(taken).__name__}; the contract asks for a Step")
        for name, part in zip(Step._fields, taken[:4], strict=False):
            if not isinstance(part, Tensor):
                raise PluginError(f"{self._who()} gave {name} as {type(part).__name__}; the contract asks for a tensor")
        if not taken.objective.requires_grad:
            raise PluginError(
                f"{self._who()} gave an objective without gradient, so nothing would be trained; do not detach it"
            )
        lead = len(self._program.lead)
        k = self._k
        objective, *noted = [part.shape[lead:] for part in taken[:4]]
        if objective == () and all(shape in {(k,), (0,)} for shape in noted):
            return
        given = [tuple(shape) for shape in (objective, *noted)]
        raise PluginError(
            f"scheme {self._scheme.name!r} gave objective, risks, gaps and weights of shapes {given}; with {k} groups "
            f"the contract asks for {[(), (k,), (k,), (k,)]}"
        )

    def _who(self) -> str:
        return f"scheme {self._scheme.name!r} ({line_of(type(self._scheme).step)})"


def _noted(last: Tensor, taken: Step) -> Tensor:
    """(*lead, 3, k) risks, gaps and weights; values that the step left out stay as they were."""
    noted = []
    for place, part in enumerate((taken.risks, taken.gaps, taken.weights)):
        noted.append(part.detach() if part.shape[-1] else last[..., place, :])
    return torch.stack(noted, dim=-2)


def _initial_state(run: Run) -> Tensor:
    """The aggregator's state before the first step."""
    device = run.data.y.device
    aggregator = run.components.aggregator
    if aggregator is None:
        return torch.zeros(0, device=device)
    sizes = torch.tensor([float(sum(group)) for group in run.sizes])
    return aggregator.start(sizes).to(device)


def lr_shares(training: TrainingConfig, steps: int) -> list[float] | None:
    """The share of the learning rate in each of a run's steps; None if the rate never changes.

    In the w steps of warm-up the share is (i + 1) / (w + 1) at step i, from 0; the schedule runs over the rest.
    """
    if training.schedule.name == "none" and not training.warmup:
        return None
    warm = round(training.warmup * steps) if training.warmup < 1 else int(training.warmup)
    warm = min(steps, warm)
    rising = [(step + 1) / (warm + 1) for step in range(warm)]
    rest = steps - warm
    scheduled = [_scheduled(training.schedule, step / rest) for step in range(rest)]
    return rising + scheduled


def _scheduled(schedule: Schedule, progress: float) -> float:
    """The share of the learning rate at some progress, which is 0 in the first step and approaches 1."""
    given = schedule.params
    match schedule.name:
        case "cosine":
            to: float = given["to"]
            return to + (1 - to) * (1 + math.cos(math.pi * progress)) / 2
        case "polynomial":
            return float((1 + given["a"] * progress) ** -given["b"])
        case _:
            return 1.0


class Average:
    """Averages tensors over steps: each of the last epoch's worth as much, or by an exponential moving average.

    The tensors are weights, and buffers such as batch-norm's statistics; `since` is the first step that may count.
    """

    def __init__(
        self,
        kind: Averaged,
        tensors: Sequence[Tensor],
        steps: int,
        all_steps: int,
        since: int,
    ) -> None:
        self._decay = kind.ema
        self._tensors = [tensor.detach() for tensor in tensors]
        self._first = max(since, all_steps - steps) if self._decay is None else since
        self._means: list[Tensor] = []
        self._seen = 0

    @torch.no_grad()
    def after(self, step: int) -> None:
        """Adds the tensors after a step, counted from 0 over the whole run, to the averages."""
        if step < self._first:
            return
        self._seen += 1
        if not self._means:
            self._means = [tensor.clone() for tensor in self._tensors]
            return
        weight = 1 / self._seen if self._decay is None else 1 - self._decay
        torch._foreach_lerp_(self._means, self._tensors, weight)

    @torch.no_grad()
    def put(self) -> None:
        """Replaces the tensors by their averages."""
        for tensor, mean in zip(self._tensors, self._means, strict=bool(self._means)):
            tensor.copy_(mean)
