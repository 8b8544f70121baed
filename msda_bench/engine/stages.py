"""The stages of a run's training: the steps of each, and the data it may see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from msda_bench.api import Phase, PluginError, Scheme, Stage
from msda_bench.engine.runs import Run
from msda_bench.suite.protocol import TrainingConfig


@dataclass(frozen=True)
class Span:
    """The steps of one stage.

    Attributes:
        stage: the stage.
        number: its place among the stages.
        first: its first step, counted over the run.
        last: the step after its last.
        groups: the number of labelled groups that it sees: all or none.
        columns: which of a step's examples it sees; the target's come after the labelled ones.
    """

    stage: Stage
    number: int
    first: int
    last: int
    groups: int
    columns: slice


@dataclass(frozen=True)
class Leg:
    """Steps with the same optimisers and one course of the learning rate: of one stage or several.

    Attributes:
        training: the protocol, with what the first of its stages has of its own.
        phases: of all its stages.
        first: its first step, counted over the run.
        last: the step after its last.
    """

    training: TrainingConfig
    phases: list[Phase]
    first: int
    last: int


class Spans:
    """Cuts a run, of a stack any one, into its stages, in order.

    Raises:
        PluginError: the scheme's stages contradict each other, or are more than there are steps.
    """

    def __init__(self, run: Run) -> None:
        self._steps = run.steps
        scheme, total = run.scheme, run.all_steps
        stages = _checked(scheme, total)
        shares = [0.0, *accumulate(stage.share for stage in stages)]
        bounds = [round(share / shares[-1] * total) for share in shares]
        for place in range(1, len(stages)):  # each stage has at least one step
            bounds[place] = min(max(bounds[place], bounds[place - 1] + 1), total - len(stages) + place)
        groups, labelled = len(run.groups), len(run.groups) * run.batch * run.batches
        self._spans = []
        for number, (stage, (first, last)) in enumerate(zip(stages, pairwise(bounds), strict=True)):
            columns = slice(0, None if "target" in stage.sees else labelled)
            rights = (groups, columns) if "sources" in stage.sees else (0, slice(labelled, None))
            self._spans.append(Span(stage, number, first, last, *rights))

    def legs(self, training: TrainingConfig) -> dict[int, Leg]:
        """The legs by their first steps: a stage that the protocol names begins one."""
        begins = [0, *(span.number for span in self._spans[1:] if span.stage.name in training.stages)]
        legs: dict[int, Leg] = {}
        for begin, end in pairwise([*begins, len(self._spans)]):
            spans = self._spans[begin:end]
            phases = [phase for span in spans for phase in span.stage.phases]
            own = training.of_stage(spans[0].stage.name)
            legs[spans[0].first] = Leg(own, phases, spans[0].first, spans[-1].last)
        return legs

    def of_epoch(self, epoch: int) -> Iterator[tuple[Span, range]]:
        """The stages that have steps in an epoch, with these steps, counted within the epoch."""
        start = epoch * self._steps
        for span in self._spans:
            first, last = max(span.first - start, 0), min(span.last - start, self._steps)
            if first < last:
                yield span, range(first, last)


def _checked(scheme: Scheme, total: int) -> tuple[Stage, ...]:
    stages = scheme.stages
    names = [stage.name for stage in stages]
    trains = {(phase.name, phase.trains) for stage in stages for phase in stage.phases}
    who = f"scheme {scheme.name!r}"
    if not stages or len(set(names)) < len(names):
        raise PluginError(f"{who} needs stages of different names; it names {names}")
    if len({name for name, _ in trains}) < len(trains):
        raise PluginError(f"{who} has two phases of one name that train different parts; give them two names")
    if total < len(stages):
        raise PluginError(f"{who} has {len(stages)} stages, more than the {total} training steps; train for longer")
    return stages
