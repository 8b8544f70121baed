"""No training step makes the host wait for its device, counted without a GPU.

The programs train on torch's "meta" device, whose tensors hold no numbers: what is read of them, or copied to the host,
or decides a shape, stands out, below autograd and vmap and in the backward pass.
"""

import contextlib
from dataclasses import replace

import pytest
import torch

from benchmarks.workload import make_registry
from msda_bench.api import StepFreeScheme, component
from msda_bench.data import LocalFiles
from msda_bench.engine.loop import Loop
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.single import Single
from msda_bench.engine.stacked import Stacked
from msda_bench.plugins import Entry, Registry, discover
from tests.engine.conftest import OPTIMIZERS, OwnStep, swapped
from tests.engine.small_steps import field_cells, small
from tests.engine.watch import Watch

BETWEEN_STEPS = {
    "return self._log": "an epoch ends: its risks, gaps and weights go to the host",
    "found = self._program.call(lambda scheme, parts: dict(scheme.carry": "a stage starts",
    "self._program.carried = {name: value.detach().to(device)": "a stage starts",
    "sizes = torch.tensor(self._sizes.groups": "a stage starts with a pass over the sources",
    '"source passes", stage).to(': "a stage starts with a pass over the sources",
}
"""Lines that may wait, once an epoch or a stage."""
IN_STEPS = {"BNM": ("_linalg_svd", "on a GPU torch reads whether its singular value decomposition converged")}
"""Methods that must wait, for what and why; benchmarks/README.md lists them, too."""
OPTIONS = {
    "clip": 1.0,
    "schedule": {"cosine": {"to": 0.0}},
    "warmup": 1,
    "average": {"ema": 0.9},
    "lr_factors": {"critic": 0.5},
}
META = torch.device("meta")
COMPONENTS = {"scheme", "discrepancy", "aggregator"}


@pytest.fixture(scope="module")
def cells():
    return field_cells(make_registry())


@pytest.fixture(scope="module")
def preparer():
    return Preparer(LocalFiles(), META)


def train(watch, preparer, cell, stack, registry):
    """Trains for an epoch of two steps; `watch` has what it saw even where a step fails."""
    runs = []
    for seed in range(max(stack, 1)):
        components = Components.of(cell, registry)
        of_seed = replace(cell, seed=seed)
        runs.append(Run(of_seed, components, preparer.prepare(components.dataset, of_seed)).of_steps(2))
    loop = Loop(runs, Stacked(runs, META) if stack else Single(runs[0], META))
    with watch:
        loop.epoch(0)


def waits(preparer, cell, stack):
    """The waits in epochs of two steps, one epoch per stage."""
    watch = Watch()
    train(watch, preparer, cell, stack, make_registry())
    assert sum(watch.waits.values()) >= 1  # the epoch's end: the watch is awake
    return [wait for wait in watch.waits if not any(line in wait.where for line in BETWEEN_STEPS)]


@pytest.mark.slow
@pytest.mark.parametrize(("inputs", "stack", "options"), [("vectors", 0, {}), ("images", 2, OPTIONS)])
def test_no_training_step_makes_the_host_wait(cells, preparer, inputs, stack, options):
    found = {name: waits(preparer, small(cell, inputs, **options), stack) for name, cell in cells.items()}
    waiting = {name: [str(wait) for wait in listed] for name, listed in found.items() if listed}
    assert waiting.keys() == IN_STEPS.keys(), waiting
    for name, (operation, _) in IN_STEPS.items():
        assert {wait.operation for wait in found[name]} == {operation}


def test_every_component_is_covered(cells):
    used = {ref.name for cell in cells.values() for ref in (cell.scheme, cell.discrepancy, cell.aggregator) if ref}
    entries = [entry for entry in discover().entries if entry.kind in COMPONENTS and entry.distribution == "msda-bench"]
    assert used == {entry.name for entry in entries if not issubclass(entry.cls, StepFreeScheme)}  # it takes no steps


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("stack", [0, 2])
def test_no_optimiser_makes_the_host_wait(cells, preparer, optimizer, stack):
    given = {"optimizer": OPTIMIZERS[optimizer], **OPTIONS}
    assert not waits(preparer, small(cells["DARN"], "vectors", **given), stack)


WAYS = [
    ("_local_scalar_dense", lambda risks: risks.max().item()),
    ("_to_copy", lambda risks: risks.detach().cpu()),
    ("nonzero", lambda risks: risks.nonzero()),
    ("index by a mask", lambda risks: risks[risks > 0]),
    ("_unique2", lambda risks: risks.unique()),
    ("equal", lambda risks: torch.equal(risks, risks + 1)),
    ("tensor", lambda risks: torch.tensor([1.0] * len(risks), device=risks.device)),
    ("_to_copy", lambda risks: torch.ones(len(risks)).to(risks.device)),
]


@component
class Curious(OwnStep):
    name = "curious"

    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        for _, look in WAYS:
            with contextlib.suppress(NotImplementedError, RuntimeError):  # a shape by numbers, of which there are none
                look(step.risks)
        return step


def test_each_host_wait_in_a_plugin_is_reported_with_its_line(cells, preparer):
    registry = Registry([*make_registry().entries, Entry("scheme", Curious, "stranger", "0")])
    watch = Watch()
    train(watch, preparer, swapped(small(cells["SRC"], "vectors"), Curious), 0, registry)
    caught = {wait.where: wait.operation for wait in watch.waits if "lambda risks" in wait.where}
    assert list(caught.values()) == [operation for operation, _ in WAYS]
