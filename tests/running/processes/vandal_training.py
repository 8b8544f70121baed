"""The engine with components that change shared process state, and one that observes it."""

import functools
import hashlib
import os
import random
from dataclasses import replace

import numpy as np
import torch
from fake_training import fake_cell

from msda_bench.api import Scheme, Step, Validator, component
from msda_bench.data import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.cell import Ref
from msda_bench.suite.protocol import Optimizer, Protocol, Sgd
from msda_bench.testing.toy import Blobs, OneLayer

TRAINER = "vandal_training:make"

DEEDS = {
    "torch's global random generator": lambda: torch.manual_seed(1),
    "numpy's global random generator": lambda: np.random.seed(1),  # noqa: NPY002 - a vandal
    "Python's global random generator": lambda: random.seed(1),
    "torch's default dtype": lambda: torch.set_default_dtype(torch.float64),
    "torch's default device": lambda: torch.set_default_device("meta"),
    "torch's number of threads": lambda: torch.set_num_threads(3),
    "torch's gradient mode": lambda: torch.set_grad_enabled(False),
    "torch's deterministic mode": lambda: torch.use_deterministic_algorithms(True),
    "torch's float32 matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
    "torch's autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "numpy's error handling": lambda: np.seterr(all="raise"),
    "the environment's variables": lambda: os.environ.update(OMP_NUM_THREADS="7", VANDAL="1"),
    "the working folder": lambda: os.chdir("/"),
}


@component
class VandalValidator(Validator):
    """Changes state that all runs of the process share."""

    name = "vandal"

    deed: str

    def score(self, view):
        DEEDS[self.deed]()
        return 0.0


@component
class VandalScheme(Scheme):
    """Changes shared state in the middle of training."""

    name = "vandal"
    uses_discrepancy = False
    uses_mu = False

    deed: str

    def step(self, parts, batch, state, phase):
        risks = parts.forward(batch).risks
        DEEDS[self.deed]()
        return Step(risks.sum(), risks)


@component
class Witness(Validator):
    """A score that depends on all state that a vandal may change."""

    name = "witness"

    def score(self, view):
        seen = (
            torch.get_rng_state().numpy().tobytes(),
            np.random.get_state()[1],  # noqa: NPY002 - looked at
            random.getstate(),
            torch.get_default_dtype(),
            torch.get_default_device(),
            torch.get_num_threads(),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            torch.is_autocast_enabled("cpu"),
            np.geterr(),
            sorted(name for name in os.environ if name in {"VANDAL", "OMP_NUM_THREADS"}),
            os.environ.get("OMP_NUM_THREADS"),
            os.getcwd(),  # noqa: PTH109 - looked at
        )
        digest = hashlib.sha256(repr(seen).encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


def make(device, stack):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - so that two processes begin alike
    random.seed(5)
    return Trainer(registry(), LocalFiles(), device, stack).train


@functools.cache
def registry():
    classes = (Blobs, OneLayer, VandalValidator, VandalScheme, Witness)
    return Registry([*discover().entries, *(Entry(cls.kind, cls, "tests", "1") for cls in classes)])


def cell(seed, *, validator=None, scheme=None):
    """A cell with the witness, or one whose validator or scheme changes shared state."""
    return replace(
        fake_cell(target="aim", seed=seed),
        dataset=_ref("dataset", "toy_blobs"),
        sources=("one", "two"),
        backbone=_ref("backbone", "toy_one_layer"),
        scheme=_ref("scheme", "vandal", deed=scheme) if scheme else _ref("scheme", "adapt"),
        discrepancy=None if scheme else _ref("discrepancy", "none"),
        aggregator=None if scheme else _ref("aggregator", "uniform"),
        training=Protocol(epochs=1, batch=10, steps=3, optimizer=Optimizer(sgd=Sgd(lr=0.1)), epoch="scheme"),
        validators=(_ref("validator", "vandal", deed=validator) if validator else _ref("validator", "witness"),),
    )


def _ref(kind, name, **params):
    entry = registry().entry(kind, name)
    made = entry.create(params)
    return Ref(kind, name, made.version, entry.distribution, made.params())
