"""Copies of modules with newly drawn initial weights."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TypeVar

from torch import nn

from msda_bench.errors import PluginError

_M = TypeVar("_M", bound=nn.Module)


def fresh_copy(module: _M) -> _M:
    """A copy that shares nothing with `module`, with new initial weights from torch's global generator.

    Every submodule that holds parameters must draw them in `reset_parameters`, as torch's layers do; it resets buffers,
    too. A submodule whose attribute `pretrained` is true is copied as it is, parameters, buffers and all inside it.

    Raises:
        PluginError: a submodule holds parameters but has no `reset_parameters`.
    """
    copied = copy.deepcopy(module)
    for name, part in _drawn(copied):
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
        elif any(True for _ in part.parameters(recurse=False)):
            where = f" at {name!r}" if name else ""
            raise PluginError(
                f"module {type(part).__name__}{where} holds parameters but has no reset_parameters(), so its copy "
                "cannot draw new initial weights; add the method, as in torch.nn.Linear"
            )
    return copied


def _drawn(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The submodules by name, but those inside a pretrained one, and this one."""
    if getattr(module, "pretrained", False):
        return
    yield prefix, module
    for name, child in module.named_children():
        yield from _drawn(child, f"{prefix}.{name}" if prefix else name)
