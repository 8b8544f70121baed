"""Watches what all runs of a process share, which a component must leave alone."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

_INITIAL = "initial weights may be drawn from torch's global random generator alone, which is seeded for each run"


@contextlib.contextmanager
def leaves_alone(who: str, draws: str, *, torch_generator: bool = True) -> Iterator[None]:
    """Fails when the block changes a global random generator, the default dtype, the threads or the gradient mode.

    What was changed is put back, so that one fault is reported once.

    Args:
        who: the component, for the message.
        draws: how a component of its kind draws random numbers, for the message.
        torch_generator: whether torch's global generator is watched too.
    """
    before = _shared()
    try:
        yield
    finally:
        after = _shared()
        _restore(before)
    if not torch_generator:
        after["torch's global random generator"] = before["torch's global random generator"]
    changed = [what for what, value in before.items() if not _same(value, after[what])]
    advice = draws if torch_generator else _INITIAL
    how = f" ({advice})" if any("generator" in what for what in changed) else ""
    assert not changed, (
        f"{who} changed {' and '.join(changed)}, which every run of the process shares; the contract asks to leave it "
        f"alone{how}"
    )


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Puts back whatever the block changes of what all runs of a process share, without a word."""
    before = _shared()
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch's global generator for the block, as the engine does when it builds modules."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _shared() -> dict[str, Any]:
    return {
        "torch's global random generator": torch.get_rng_state(),
        "numpy's global random generator": np.random.get_state(),  # noqa: NPY002 - it is the one to watch
        "Python's global random generator": random.getstate(),
        "torch's default dtype": torch.get_default_dtype(),
        "torch's number of threads": torch.get_num_threads(),
        "torch's gradient mode": torch.is_grad_enabled(),
    }


def _restore(shared: dict[str, Any]) -> None:
    torch.set_rng_state(shared["torch's global random generator"])
    np.random.set_state(shared["numpy's global random generator"])  # noqa: NPY002 - as above
    random.setstate(shared["Python's global random generator"])
    torch.set_default_dtype(shared["torch's default dtype"])
    torch.set_num_threads(shared["torch's number of threads"])
    torch.set_grad_enabled(shared["torch's gradient mode"])


def _same(before: Any, after: Any) -> bool:
    # repr of an array is shortened, so numpy's state is compared by its bytes.
    if isinstance(before, torch.Tensor):
        return torch.equal(before, after)
    if isinstance(before, tuple) and any(isinstance(item, np.ndarray) for item in before):
        return all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    return bool(before == after)
