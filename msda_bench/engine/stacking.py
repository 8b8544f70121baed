"""Finds cells that can be trained as one tensor program, and chooses how many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import torch
from torch import nn

from msda_bench.api import BenchError, Scheme, SchemeBase
from msda_bench.engine.model import Components
from msda_bench.engine.runs import Run
from msda_bench.errors import describe
from msda_bench.functional import SparseRows
from msda_bench.suite.run_spec import RunSpec, canonical_json

RunWithComponents: TypeAlias = tuple[RunSpec, Components]
"""A cell with its components."""


def unstackable_reason(components: Components) -> str | None:
    """Why a cell with these components must train alone; None if it can be stacked."""
    barred = []
    for component in (components.backbone, components.scheme, components.discrepancy, components.aggregator):
        if component is not None and not component.stackable:
            barred.append(f"{component.kind} {component.name!r}")
    if not barred:
        return None
    return f"{' and '.join(barred)} cannot be stacked (stackable = False)"


def convolves(components: Components) -> bool:
    """Whether the network convolves: `torch.vmap` groups the convolutions of a stack, which are slower on a GPU."""
    with torch.random.fork_rng(devices=[]):
        network = components.backbone.build(components.dataset.task, components.input)
    return any(isinstance(layer, nn.modules.conv._ConvNd) for layer in network.features.modules())  # noqa: SLF001 - as in `Trunk`


def numbers(cell: RunSpec, components: Components) -> dict[str, dict[str, float]]:
    """Numbers that may differ between the runs of a stack besides seeds and domains, by owner and name."""
    by_owner = {"cell": {"mu": float(cell.mu)}}
    for owner, component in (("aggregator", components.aggregator), ("scheme", components.scheme)):
        names = component.stacked if component is not None else ()
        by_owner[owner] = {name: float(getattr(component, name)) for name in names}
    return by_owner


def signature(cell: RunSpec, components: Components) -> str:
    """A text that is equal for cells that differ only in seed, target, sources and `numbers`."""
    plain = cell.to_json()
    for owner, values in numbers(cell, components).items():
        if not values:  # there may be no aggregator
            continue
        fields = plain if owner == "cell" else plain[owner]["params"]
        for name in values:
            fields.pop(name, None)  # may be absent at its default
    for name in ("seed", "target"):
        del plain[name]
    return canonical_json({**plain, "sources": len(cell.sources)})


def stack_groups(members: Sequence[RunWithComponents]) -> list[list[RunWithComponents]]:
    """The cells by signature, and within each by split, whose data are prepared once."""

    def split_of(member: RunWithComponents) -> tuple[str, int]:
        cell, _ = member
        return cell.target, cell.seed

    by_signature: dict[str, list[RunWithComponents]] = {}
    for member in members:
        by_signature.setdefault(signature(*member), []).append(member)
    return [sorted(group, key=split_of) for group in by_signature.values()]


def same_shapes(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs grouped by shapes, which a stack must share and which depend on the data."""
    if len(runs) == 1:
        return [list(runs)]
    by_shape: dict[object, list[Run]] = {}
    for run in runs:
        x = run.data.x
        width = (x.width,) if isinstance(x, SparseRows) else tuple(x.shape[1:])
        of_training = run.steps, run.batch, run.batches, len(run.groups)
        shape = of_training, type(x), width, _carried_sizes(run)
        by_shape.setdefault(shape, []).append(run)
    return list(by_shape.values())


def _carried_sizes(run: Run) -> tuple[object, ...]:
    """The sizes that determine the shapes of a run's carried tensors and of its pass over the target."""
    scheme = run.components.scheme
    carries = any(overrides(scheme, hook) for hook in ("carry", "at_stage", "at_epoch"))
    if not carries and not scheme.target_statistics:
        return ()
    return run.sizes, len(run.target_rows)


def overrides(scheme: SchemeBase, hook: str) -> bool:
    """Whether a scheme overrides a hook."""
    return getattr(type(scheme), hook) is not getattr(Scheme, hook)


MOST = 64
"""Runs in a stack at most: a lost process loses the stack's work."""
_SHARE = 0.8
"""Share of the free memory to use; allocators leave gaps."""

_T = TypeVar("_T")


class CudaMemory:
    """A GPU's memory, in bytes."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def free(self) -> int:
        """The bytes that are free in the driver, or held unused by torch's allocator."""
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(self._device)[0])

    def peak(self, action: Callable[[], object]) -> int:
        """The most that the action's tensors take the second time, when libraries have what they take once."""
        action()
        torch.cuda.reset_peak_memory_stats(self._device)
        before = torch.cuda.memory_allocated(self._device)
        action()
        return torch.cuda.max_memory_allocated(self._device) - before


class Sizing:
    """Decides how many runs train in one stack.

    Args:
        device: the device on which they train.
        stack: how many at most; None for as many as the memory of a GPU holds, of networks that convolve and on the
            CPU one.
        memory: the device's; None for a GPU's own.
    """

    def __init__(
        self,
        device: torch.device,
        stack: int | None,
        memory: CudaMemory | None = None,
    ) -> None:
        on_gpu = device.type == "cuda"
        self._stack = 1 if stack is None and not on_gpu else stack
        self._memory = memory
        if memory is None and on_gpu:
            self._memory = CudaMemory(device)

    @property
    def stacks(self) -> bool:
        """Whether runs are stacked at all."""
        return self._stack != 1

    def size(self, components: Components, steps: Callable[[], object]) -> tuple[int, str | None]:
        """How many runs to stack, a power of two; and if it is one because they cannot be stacked, the reason.

        `steps` trains one of them briefly, in a stack of one, to see whether it works and how much memory it takes.
        """
        if self._stack is None and convolves(components):
            return 1, None
        held = MOST
        try:
            if self._memory is None:
                steps()
            else:
                peak = max(1, self._memory.peak(steps))
                held = int(_SHARE * self._memory.free() / peak)
        except (BenchError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - torch.vmap refuses with exceptions of many kinds
            return 1, f"torch.vmap refuses it: {describe(error, 200)}"
        asked = MOST if self._stack is None else self._stack
        most = max(1, min(asked, held))
        return 1 << (most.bit_length() - 1), None


def padded(items: Sequence[_T]) -> list[_T]:
    """The items, with the last repeated until they are a power of two.

    Few sizes, because a GPU's numbers may differ in their last bits from size to size.
    """
    size = 1 << (len(items) - 1).bit_length()
    return [*items, *[items[-1]] * (size - len(items))]
