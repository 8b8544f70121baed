"""All random draws of a run's training, such as the examples of each batch: an epoch at once, on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from msda_bench.api import Group
from msda_bench.engine.prepared import TrainingData
from msda_bench.engine.runs import Run
from msda_bench.engine.settings import stream_key
from msda_bench.functional import random_bits, split_key


class Sampler:
    """Draws every group's batch at random with replacement, an epoch at once, on the device.

    Each group has a stream of its own, of `keys` (groups, 2) int32, so its batches do not depend on which other groups
    are drawn. With `whole` its examples are taken in their order, over and over, rather than drawn.
    """

    def __init__(
        self,
        data: TrainingData,
        groups: Sequence[Group],
        batch: int,
        steps: int,
        keys: Tensor,
        *,
        whole: bool = False,
    ) -> None:
        device = data.y.device
        members = [torch.cat([data.rows[domain] for domain in group]) for group in groups]
        sizes = torch.tensor([len(rows) for rows in members])
        self._rows = torch.cat(members).to(device)
        self._size = sizes.view(-1, 1).to(device)
        starts = sizes.cumsum(0) - sizes
        self._start = starts.view(-1, 1).to(device)
        index = torch.arange(steps * batch, dtype=torch.int32, device=device)
        self._index = index.view(steps, 1, batch)
        self._keys = keys.to(device)
        self._whole = whole

    def epoch(self, number: int) -> tuple[Tensor, Tensor]:
        """Rows of the training data, and their places within their groups: each (steps, groups, batch) int64."""
        if self._whole:
            in_order = torch.arange(self._index.shape[-1], device=self._rows.device)
            places = (in_order % self._size).expand(len(self._index), -1, -1)
        else:
            keys = _split(self._keys, number)
            bits = random_bits(keys.unsqueeze(1), self._index).long() & 0xFFFFFFFF
            # The high half of a 32 x 32 bit product is uniform on 0..size-1, to within size / 2^32.
            places = (bits * self._size) >> 32
        return self._rows[places + self._start], places


def _split(key: Tensor, number: int) -> Tensor:
    """An independent key (..., 2) for a number."""
    # Filled, not copied: a copy from the host would make it wait.
    return split_key(key, torch.full((), number, dtype=torch.int32, device=key.device))


def _sampler(run: Run, groups: Sequence[Group], examples: int) -> Sampler:
    """The batches of some groups, of so many examples each."""
    keys = torch.stack([stream_key(run.cell, "batches", *group) for group in groups])
    in_order = run.cell.training.batch == "all"
    return Sampler(run.data, groups, examples, run.steps, keys, whole=in_order)


class Draws:
    """A run's batches and keys, from its own streams; `keyed` names the modules that get a key in every phase."""

    def __init__(self, run: Run, keyed: Sequence[str]) -> None:
        cell = run.cell
        device = run.data.y.device
        self._cell = cell
        self._steps = run.steps
        self._samplers = [_sampler(run, run.groups, run.batch * run.batches)]
        if run.components.draws_target:
            self._samplers.append(_sampler(run, ((cell.target,),), run.batch))
        self._passes = stream_key(cell, "passes").to(device)
        self._images = stream_key(cell, "augment").to(device)
        # Separate streams: a critic that draws does not change the network's draws, nor a second phase the first's. The
        # first phase's streams carry no number, as in older results.
        of_critic = sum(name.split(".")[0] == "critic" for name in keyed)
        self._phases: list[list[tuple[Tensor, int]]] = []
        for phase in range(max(len(stage.phases) for stage in run.scheme.stages)):
            number = (phase,) if phase else ()
            scheme_and_network = stream_key(cell, "steps", *number).to(device)
            critic = stream_key(cell, "critic steps", *number).to(device)
            of_network = 1 + len(keyed) - of_critic
            self._phases.append([(scheme_and_network, of_network), (critic, of_critic)])
        self._stages = len(run.scheme.stages)

    def rows(self, epoch: int) -> Tensor:
        """(steps, 2, n) int64: rows of the training data and their places within each group.

        First `Run.batches` batches of each labelled group, then one of the target.
        """
        rows = []
        places = []
        for sampler in self._samplers:
            drawn, within = sampler.epoch(epoch)
            rows.append(drawn.flatten(1))
            places.append(within.flatten(1))
        both = torch.cat(rows, dim=1), torch.cat(places, dim=1)
        return torch.stack(both, dim=1)

    def passes(self, epoch: int, stage: int) -> Tensor:
        """(2,) int32: the key of an epoch's pass over the target in a stage."""
        return _split(self._passes, epoch * self._stages + stage)

    def source_pass(self, stage: int) -> Tensor:
        """(2,) int32: the key of the pass over the sources with which a stage starts."""
        return stream_key(self._cell, "source passes", stage).to(self._passes.device)

    def augment(self, epoch: int) -> Tensor:
        """(steps, 2) int32: the key of each step for `Augments.augment`, which all its phases share."""
        return self._step_keys(self._images, 1, epoch).squeeze(1)

    def keys(self, epoch: int) -> Tensor:
        """(steps, phases, 1 + modules, 2) int32: in each phase a key for the scheme and one for each keyed module."""
        return torch.stack([self._keys(streams, epoch) for streams in self._phases], dim=1)

    def _keys(self, streams: Sequence[tuple[Tensor, int]], epoch: int) -> Tensor:
        keys = [self._step_keys(stream, places, epoch) for stream, places in streams]
        return torch.cat(keys, dim=1)

    def _step_keys(self, stream: Tensor, places: int, epoch: int) -> Tensor:
        """(steps, places, 2) int32: the keys of an epoch's steps from one stream."""
        count = self._steps * places
        first = epoch * count
        index = torch.arange(first, first + count, dtype=torch.int32, device=stream.device)
        return split_key(stream, index).view(self._steps, places, 2)
