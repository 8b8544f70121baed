"""Training steps on a device that torch simulates: python -m benchmarks.simulated [--device cuda].

Tensors of a simulated device have shapes, dtypes and a place, but no numbers. So what would fail on a GPU for a tensor
in the wrong place shows without one. A simulated CUDA device needs a CUDA build of torch; elsewhere the script says so.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Literal
from unittest.mock import patch

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from benchmarks.steps import field_cells, inputs_of, small
from benchmarks.workload import NoFiles, make_registry
from msda_bench.api import Files
from msda_bench.engine import machine, single, stacked
from msda_bench.engine.loop import Loop
from msda_bench.engine.model import Components, Model, build_model
from msda_bench.engine.prepare import Prepared, Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.single import Single
from msda_bench.engine.stacked import Stacked
from msda_bench.engine.tensors import dense
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell

NOT_BUILT = (
    "this torch is built without CUDA, so it simulates no CUDA device; install a CUDA build of torch, which needs no "
    "GPU, or give --device cpu"
)
STACK = 2


def outcome(registry: Registry, cell: Cell, device: str, stack: int) -> str:
    """Whether the forward passes and the steps of a cell pass on the simulated device, or how they fail."""
    cells = [replace(cell, seed=seed) for seed in range(max(stack, 1))]
    real = [_run(registry, one) for one in cells]
    forward = 0
    try:
        with _simulation():
            runs = [replace(run, prepared=_there(run.prepared, device)) for run in real]
            place = torch.device(device)
            program: Any = Stacked(runs, place) if stack else Single(runs[0], place)
            step = program.step

            def noted(*given: Any) -> Any:
                nonlocal forward
                found = step(*given)
                forward += 1
                return found

            program.step = noted
            Loop(runs, program).epoch(0)
    except Exception as error:  # noqa: BLE001 - how it fails is what the script shows
        line = next(iter(str(error).splitlines()), "")
        return f"{'forward passes, step' if forward else 'forward'} fails: {type(error).__name__}: {line[:100]}"
    return "passes"


@contextlib.contextmanager
def _simulation() -> Iterator[None]:
    """Tensors without numbers; only the initial weights are drawn with numbers, which then go."""

    def built(cell: Cell, components: Components, k: int, files: Files, place: torch.device) -> Model:
        with unset_fake_temporarily():
            model = build_model(cell, components, k, files, torch.device("cpu"))
        model.modules._apply(lambda given: torch.empty_like(given, device=place))  # noqa: SLF001 - what `to` does
        return model

    # A simulated CPU is to take a GPU's path, not that of compiled loops, which need numbers.
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        patch.object(machine, "can_compile", lambda: False),
        patch.object(single, "build_model", built),
        patch.object(stacked, "build_model", built),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
        yield


def _run(registry: Registry, cell: Cell) -> Run:
    components = Components.of(cell, registry)
    prepared = Preparer(NoFiles(), torch.device("cpu")).prepare(components.dataset, cell)
    return Run(cell, components, prepared).of_steps(2)


def _there(prepared: Prepared, device: str) -> Prepared:
    """What training sees, without numbers, on the device."""

    def moved(given: Tensor) -> Tensor:
        return torch.empty(given.shape, dtype=given.dtype, device=device)

    seen = prepared.training
    training = replace(
        seen, x=moved(dense(seen.x)), y=moved(seen.y), rows={name: moved(rows) for name, rows in seen.rows.items()}
    )
    return replace(prepared, training=training, _target_labels=moved(prepared._target_labels))  # noqa: SLF001


def lines(device: Literal["cpu", "cuda"], methods: Sequence[str] = ()) -> list[str]:
    """A line for each method and path, and their count; prints them as they come."""
    if device == "cuda" and not torch.backends.cuda.is_built():
        print(NOT_BUILT)
        return [NOT_BUILT]
    registry, found = make_registry(), []
    for name, cell in field_cells(registry).items():
        for inputs, stack in product(inputs_of(), (0, STACK)):
            if not methods or name in methods:
                said = outcome(registry, small(registry, cell, inputs), device, stack)
                found.append(f"{name:18}{inputs:9}{'stacked' if stack else 'alone':9}{said}")
                print(found[-1], flush=True)
    passed = sum(line.endswith("passes") for line in found)
    found.append(f"{passed} of {len(found)} pass on a simulated device of type {device}")
    print(found[-1])
    return found


def main() -> None:
    """Reads the options and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("methods", nargs="*", help="methods of the field's suite; all if none is named")
    given = parser.parse_args()
    with contextlib.suppress(BrokenPipeError):
        lines(given.device, given.methods)


if __name__ == "__main__":
    main()
