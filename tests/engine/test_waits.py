"""No training step makes the host wait for its device, counted without a GPU.

The programs train on torch's "meta" device, whose tensors hold no numbers: what is read of them, or copied to the host,
or decides a shape, stands out, below autograd and vmap and in the backward pass.
"""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.synthetic import AmazonLike, DigitsLike
from benchmarks.workload import make_registry
from msda_bench.api import Predictor, component
from msda_bench.data import LocalFiles
from msda_bench.engine.loop import Loop
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.single import Single
from msda_bench.engine.stacked import Stacked
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from msda_bench.suite.protocol import TrainingConfig
from msda_bench.suite.run_spec import ComponentSpec
from tests.engine.conftest import OPTIMIZERS, OwnStep, ref, swapped
from tests.engine.watch import Watch

BETWEEN_STEPS = {
    "return self._log": "an epoch ends: its risks, gaps and weights go to the host",
    "program.state[name] = value.detach().to(program.y.device)": "a stage starts",
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
FIELD = Path(__file__).parents[2] / "suites" / "field.yaml"
BESIDE = {
    "size": ("DARN", "aggregator", {}),
    "wadn": ("DARN", "aggregator", {}),
    "spectral_l2": ("DARN", "discrepancy", {"iterations": 5}),
    "aad": ("SHOT", "scheme", {}),
    "joint": ("TAR", "scheme", {}),
    "adabn": ("MFSAN", "scheme", {}),
    "pass_through": ("MFSAN", "scheme", {}),
}
"""What the field's suite leaves out, in place of a part of one of its methods."""
SHORTER = {"repeats": 1, "critic_steps": 1, "iterations": 1}
"""Fewer repetitions, to save time."""
NETWORKS = {
    "vectors": ("mlp", {"hidden": [8], "dropout": 0.5}),
    "images": ("convnet", {"channels": [4], "hidden": []}),
}
COMPONENTS = {"scheme", "discrepancy", "aggregator"}


def field_cells(registry):
    """A cell of each method of the field, and of what its suite leaves out, by name."""
    found = expand(load_suite(FIELD, registry), registry)
    cells = {planned.method: found.cells[planned.key] for planned in reversed(found.plan.cells)}
    for name, (method, kind, params) in BESIDE.items():
        cells[f"{method}-{name}"] = replace(cells[method], **{kind: ref(kind, name, params)})
    return dict(sorted(cells.items()))


def small(cell, inputs, **options):
    """The cell on a few made examples with a small network, and shorter; with options of the protocol."""
    made = AmazonLike(train=40, examples=60) if inputs == "vectors" else DigitsLike(train=40, examples=60)
    *sources, target = made.domains
    return replace(
        cell,
        dataset=ComponentSpec("dataset", made.name, made.version, "benchmarks", made.params()),
        fingerprint="none",
        sources=tuple(sources),
        target=target,
        backbone=ref("backbone", *NETWORKS[inputs]),
        scheme=_shorter(cell.scheme),
        discrepancy=_shorter(cell.discrepancy),
        training=TrainingConfig.model_validate(dict(cell.training) | {"epochs": 1, "batch": 8} | options),
    )


def _shorter(part):
    return part and replace(part, params={name: SHORTER.get(name, value) for name, value in part.params.items()})


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
    assert used == {entry.name for entry in entries if not issubclass(entry.cls, Predictor)}  # it takes no steps


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
