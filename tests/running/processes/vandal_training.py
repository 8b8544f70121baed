"""The engine with components that change shared process state, and one that observes it."""

import hashlib
import io
import locale
import logging
import os
import random
import signal
import sys
import warnings
from dataclasses import replace

import numpy as np
import torch

from msda_bench.api import Validator, component
from msda_bench.data import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins.process_state import number_state
from tests.engine.conftest import OwnStep, installed, make_cell, swapped


def close(stream):
    getattr(sys, stream).close()


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
    "the warnings' filters": lambda: warnings.simplefilter("error"),
    "the root logger": lambda: logging.basicConfig(level=logging.DEBUG),
    "the signal handlers": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "the locale": lambda: locale.setlocale(locale.LC_NUMERIC, "C.UTF-8"),
    "the umask": lambda: os.umask(0),
    "sys.stdout": lambda: close("stdout"),
    "sys.stderr": lambda: setattr(sys, "stderr", io.TextIOWrapper(sys.stderr.buffer)),
    "sys.stdin": lambda: close("stdin"),
    "file descriptor 1": lambda: os.close(1),
    "file descriptor 2": lambda: os.dup2(0, 2),
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
class VandalScheme(OwnStep):
    """Changes shared state in the middle of training."""

    name = "vandal"

    deed: str

    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        DEEDS[self.deed]()
        return step


@component
class Witness(Validator):
    """A score that depends on all state that changes numbers, and fails where it cannot print or warn."""

    name = "witness"

    def score(self, view):
        for stream in (sys.stdout, sys.stderr):
            print("seen", file=stream, flush=True)
        os.write(1, b"")
        os.write(2, b"")
        assert sys.stdin.read() == ""
        warnings.warn("seen", stacklevel=1)
        seen = [read() for read, _ in number_state().values()]
        shown = repr([value.tolist() if isinstance(value, torch.Tensor) else value for value in seen])
        digest = hashlib.sha256(shown.encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


def make(device, stack):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - so that two processes begin alike
    random.seed(5)
    registry = installed(VandalValidator, VandalScheme, Witness)
    return Trainer(registry, LocalFiles(), device, stack).train


def cell(seed, *, validator=None, scheme=None):
    """A cell with the witness, or one whose validator or scheme changes shared state."""
    plain = replace(make_cell("SRC", seed=seed, epochs=1, steps=3, backbone=("linear", {})), validators=())
    if scheme is not None:
        plain = swapped(plain, VandalScheme, deed=scheme)
    return swapped(plain, Witness) if validator is None else swapped(plain, VandalValidator, deed=validator)
