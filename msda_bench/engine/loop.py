"""The training loop, of one run or of a stack of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from msda_bench.api import Batch, Phase, PluginError, Step
from msda_bench.engine import graph
from msda_bench.engine.carried import Carrier
from msda_bench.engine.draws import Draws
from msda_bench.engine.graph import Replayed, Take, can_replay
from msda_bench.engine.optim import PhaseOptimizers
from msda_bench.engine.runs import Run
from msda_bench.engine.stacked import Program
from msda_bench.engine.stages import Leg, Span, Spans
from msda_bench.engine.tensors import batch_of, dense, where_rows
from msda_bench.plugin_errors import line_of
from msda_bench.suite.protocol import Averaged, TrainingConfig


class Loop:
    """The steps of a program of one run, or of a stack: all with the same scheme up to numbers, and the same shapes."""

    def __init__(self, runs: Sequence[Run], program: Program) -> None:
        first, device = runs[0], program.y.device
        training = first.cell.training
        self._steps, self._all_steps = first.steps, first.all_steps
        self.epochs = -(-self._all_steps // self._steps)
        self._scheme = first.scheme
        self._program = program
        self._draws = [Draws(run, program.keyed) for run in runs]
        self._spans = Spans(first)
        decays_offsets = self._scheme.offsets_weights and training.optimizer.params["weight_decay"]
        self._offset = program.named if decays_offsets else {}
        self._legs = self._spans.legs(training)
        self._begin(self._legs[0])
        kind = training.average
        since = max(self._legs)
        self._average = Average(kind, program.averaged, self._steps, self._all_steps, since) if kind else None
        self._carrier = Carrier(runs, program, self._draws)
        self._replays = can_replay(first, device)
        # A graph holds no examples of the host, nor what an `augment` may draw there.
        self._takes_rows = not self._replays or (isinstance(program.x, Tensor) and not program.augment.changes)
        self._take: Take
        self._state = self._joined([_initial_state(run) for run in runs])
        self._k, self._drawn = len(first.groups), first.batch * first.batches
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
        lying = where_rows(self._program.x, rows)
        keys = self._joined([draws.keys(number) for draws in self._draws], dim=1)
        augment = self._joined([draws.augment(number) for draws in self._draws], dim=1)
        before = number * self._steps
        for span, steps in self._spans.of_epoch(number):
            progress = self._progress(span, number)
            if before + steps.start == span.first:
                self._carrier.start(span)
                take = partial(self._steps_of, span)
                self._take = Replayed(take, self._log.device) if self._replays else take
                if span.first in self._legs and span.first > 0:
                    self._begin(self._legs[span.first])
            self._carrier.look(span, number, progress[steps.start])
            cut = slice(steps.start, steps.stop)
            mine = (cut, ..., span.columns)
            y = self._program.y[rows[mine][..., : span.groups * self._drawn]]
            y = y.reshape(len(steps), *self._program.lead, span.groups, self._drawn)
            parts = lying[mine], y, keys[cut], progress[cut], places[mine], augment[cut]
            length = self._block()
            blocks = zip(*(torch.split(part, length) for part in parts), strict=True)
            for first, given in zip(steps[::length], blocks, strict=True):
                if self._lr_shares is not None:
                    self._optimizers.scale(self._lr_shares[before + first - self._leg.first])
                self._go_on(first, given)
                if self._average is not None:
                    self._average.after(before + first)
        return self._log[: self._all_steps - before].to("cpu", torch.float64)  # the last epoch may be shorter

    def _begin(self, leg: Leg) -> None:
        """New optimisers for the coming steps, and their learning rates."""
        self._leg = leg
        self._optimizers = PhaseOptimizers(leg.training, self._program.trainable, leg.phases, *self._program.lead)
        self._lr_shares = lr_shares(leg.training, leg.last - leg.first)

    def finish(self) -> None:
        """Replaces the last step's weights by those to be tested, if the protocol asks for that."""
        del self._take  # frees what graphs hold
        if self._average is not None:
            self._average.put()

    def _joined(self, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
        return torch.stack(list(tensors), dim) if self._program.lead else tensors[0]

    def _progress(self, span: Span, epoch: int) -> Tensor:
        """(steps, *lead) float32: the share of the stage that is done at each step of the epoch."""
        done = epoch * self._steps - span.first + torch.arange(self._steps, device=self._log.device)
        share = (done / (span.last - span.first)).view(-1, *(1 for _ in self._program.lead))
        return share.expand(-1, *self._program.lead)

    def _block(self) -> int:
        """How many steps are taken at once: one, unless nothing happens on the host between them."""
        alone = self._lr_shares is not None or self._average is not None or not self._takes_rows
        return graph.AT_ONCE if self._replays and not alone else 1

    def _go_on(self, first: int, given: Sequence[Tensor]) -> None:
        """Takes a block of steps, and writes their risks, gaps and weights to the log; see `_steps_of`."""
        program, (lying, *more, augment) = self._program, given
        if not self._takes_rows:
            lying = dense(program.augment(batch_of(program.x, lying[0]), augment[0])).unsqueeze(0)
        known = self._state, self._last, *program.carried.values()
        log, self._state, *carried = self._take([lying, *more, augment, *known])
        program.carried = dict(zip(program.carried, carried, strict=True))
        self._log[first : first + len(log)], self._last = log, log[-1]

    def _steps_of(self, span: Span, given: Sequence[Tensor]) -> list[Tensor]:
        """Some steps of a stage, all their phases.

        Args:
            span: the stage.
            given: of each step where its examples lie, or these, its labels, keys for all phases, progress, places and
                the key for `augment`; then the aggregator's state, the last step's results, and the carried values.

        Returns:
            Risks, gaps and weights, (steps, *lead, 3, k), then the state and the carried values.
        """
        program, (state, last, *carried) = self._program, given[6:]
        program.carried = dict(zip(program.carried, carried, strict=True))
        noted = []
        for one in zip(*(part.unbind() for part in given[:6]), strict=True):
            state, last = self._step(span, one, state, last)
            noted.append(last)
        return [torch.stack(noted), state, *program.carried.values()]

    def _step(self, span: Span, given: Sequence[Tensor], state: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """One step, all its phases; the state after it, and its risks, gaps and weights (*lead, 3, k)."""
        program = self._program
        lie, labels, keys, done, places, augment = given
        x = program.augment(batch_of(program.x, lie), augment) if self._takes_rows else lie
        for phase, drawn in zip(span.stage.phases, keys.unbind(-3), strict=False):
            batch = Batch(x, labels, drawn[..., 0, :], done, places, program.carried)
            taken = self._updated(batch, drawn[..., 1:, :], state, phase)
            self._carrier.renew(taken.carried)
            state = taken.state.detach() if taken.state.numel() else state
            self._carrier.follow(batch, phase)
            last = _noted(last, taken)
        return state, last

    def _updated(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """The results of a phase, after which the weights are updated."""
        taken = self._differentiated(batch, keys, state, phase)
        taken = taken._replace(carried=self._carrier.owned(taken.carried))  # the update would change carried weights
        added = {**batch.carried, **taken.carried}
        offsets = {id(value): added[name] for name, value in self._offset.items() if name in added}
        self._optimizers.step(phase, offsets)
        return taken

    def _differentiated(self, batch: Batch, keys: Tensor, state: Tensor, phase: Phase) -> Step:
        """The results of a phase, whose gradients are then with the weights."""
        taken = self._program.step(batch, keys, state, phase)
        self._check(taken)
        self._optimizers.zero_grad()
        # Runs share no parameter, so the gradient of the sum holds each run's own.
        taken.objective.sum().backward(inputs=self._optimizers.inputs(phase))  # type: ignore[no-untyped-call]
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
        lead, k = len(self._program.lead), self._k
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
    """(*lead, 3, k) risks, gaps and weights; what the step left out keeps its last value."""
    parts = enumerate((taken.risks, taken.gaps, taken.weights))
    noted = [part.detach() if part.shape[-1] else last[..., place, :].clone() for place, part in parts]
    return torch.stack(noted, dim=-2)


def _initial_state(run: Run) -> Tensor:
    device, aggregator = run.data.y.device, run.components.aggregator
    sizes = torch.tensor([float(sum(group)) for group in run.sizes])
    return (aggregator.start(sizes) if aggregator else torch.zeros(0)).to(device)


def lr_shares(training: TrainingConfig, steps: int) -> list[float] | None:
    """The share of the learning rate in each of a run's steps; None if it is always the whole.

    In the w steps of warm-up the share is (i + 1) / (w + 1) at step i, from 0; the schedule runs over the rest.
    """
    if training.schedule.name == "none" and not training.warmup:
        return None
    warm = min(steps, round(training.warmup * steps) if training.warmup < 1 else int(training.warmup))
    given = training.schedule.params
    schedules: dict[str, Callable[[float], float]] = {  # of progress, which is 0 in the first step and approaches 1
        "none": lambda _: 1.0,
        "cosine": lambda progress: given["to"] + (1 - given["to"]) * (1 + math.cos(math.pi * progress)) / 2,
        "polynomial": lambda progress: float((1 + given["a"] * progress) ** -given["b"]),
    }
    share = schedules[training.schedule.name]
    rising = [(step + 1) / (warm + 1) for step in range(warm)]
    return rising + [share(step / (steps - warm)) for step in range(steps - warm)]


class Average:
    """Averages tensors over steps: each of the last epoch's worth as much, or by an exponential moving average.

    The tensors are weights, and buffers such as batch-norm's statistics; `since` is the first step that may count.
    """

    def __init__(self, kind: Averaged, tensors: Sequence[Tensor], steps: int, all_steps: int, since: int) -> None:
        self._decay = kind.ema
        self._tensors = [tensor.detach() for tensor in tensors]
        self._first = max(since, all_steps - steps) if self._decay is None else since
        self._means: list[Tensor] = []
        self._seen = 0

    @torch.no_grad()
    def after(self, step: int) -> None:
        """Takes in the tensors after a step, counted from 0 over the whole run."""
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
