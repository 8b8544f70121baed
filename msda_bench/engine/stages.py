"""The stages of a run's training: the steps of each, and the data it may see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from msda_bench.api import Phase, PluginError, Scheme, Stage
from msda_bench.engine.runs import Run
from msda_bench.suite.protocol import TrainingConfig


@dataclass(frozen=True)
class StageSteps:
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
class OptimizerSegment:
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


class Stages:
    """Cuts a run, or any run of a stack, into its stages, in order.

    Raises:
        PluginError: the scheme's stages contradict each other, or are more than there are steps.
    """

    def __init__(self, run: Run) -> None:
        self._steps = run.steps
        stages = _checked(run.scheme, run.all_steps)
        bounds = _bounds(stages, run.all_steps)
        groups = len(run.groups)
        labelled = groups * run.batch * run.batches
        self._stages = []
        for number, stage in enumerate(stages):
            sees_sources = "sources" in stage.sees
            sees_target = "target" in stage.sees
            columns = slice(0 if sees_sources else labelled, None if sees_target else labelled)
            self._stages.append(
                StageSteps(
                    stage,
                    number,
                    first=bounds[number],
                    last=bounds[number + 1],
                    groups=groups if sees_sources else 0,
                    columns=columns,
                )
            )

    def segments(self, training: TrainingConfig) -> dict[int, OptimizerSegment]:
        """The segments by their first steps: a stage that the protocol names begins one."""
        named = [stage.number for stage in self._stages[1:] if stage.stage.name in training.stages]
        segments: dict[int, OptimizerSegment] = {}
        for begin, end in pairwise([0, *named, len(self._stages)]):
            stages = self._stages[begin:end]
            first = stages[0]
            phases = [phase for stage in stages for phase in stage.stage.phases]
            own = training.of_stage(first.stage.name)
            segments[first.first] = OptimizerSegment(own, phases, first.first, stages[-1].last)
        return segments

    def of_epoch(self, epoch: int) -> Iterator[tuple[StageSteps, range]]:
        """The stages that have steps in an epoch, with these steps, counted within the epoch."""
        start = epoch * self._steps
        for stage in self._stages:
            first = max(stage.first - start, 0)
            last = min(stage.last - start, self._steps)
            if first < last:
                yield stage, range(first, last)


def _bounds(stages: tuple[Stage, ...], total: int) -> list[int]:
    """The first step of each stage, by their shares, and the step after the last; each has at least one step."""
    shares = [0.0, *accumulate(stage.share for stage in stages)]
    bounds = [round(share / shares[-1] * total) for share in shares]
    for place in range(1, len(stages)):
        first = bounds[place - 1] + 1
        last = total - len(stages) + place
        bounds[place] = min(max(bounds[place], first), last)
    return bounds


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
