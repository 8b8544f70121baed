"""Watches what all runs of a process share, which a component must leave alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from msda_bench.plugins.process_state import put_back

_GENERATOR = "torch's global random generator"


@contextlib.contextmanager
def leaves_alone(who: str, *, torch_generator: bool = True) -> Iterator[None]:
    """Fails when the block changes what all runs share, such as a global random generator or the default dtype.

    What was changed is put back, so that one fault is reported once.

    Args:
        who: the component, for the message.
        torch_generator: whether torch's global generator is watched too.
    """
    with put_back() as changed:
        yield
    faults = [what for what in changed if torch_generator or what != _GENERATOR]
    assert not faults, (
        f"{who} changed {' and '.join(faults)}, which every run of the process shares; the contract asks to leave it "
        "alone (draw random numbers with msda_bench.functional.uniform from the step's key)"
    )


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch's global generator for the block, as the engine does when it builds modules."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
