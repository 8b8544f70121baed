"""The same module again, with initial weights of its own."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

from msda_bench.errors import PluginError

_M = TypeVar("_M", bound=nn.Module)


def fresh_copy(module: _M) -> _M:
    """A copy that shares nothing with `module`; its weights are drawn anew from torch's global generator.

    Every module inside that holds parameters draws them in its own `reset_parameters`, as torch's layers do; fixed
    values in buffers are kept.

    Raises:
        PluginError: a module inside holds parameters but has no `reset_parameters`.
    """
    copied = copy.deepcopy(module)
    for name, part in copied.named_modules():
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
        elif any(True for _ in part.parameters(recurse=False)):
            where = f" at {name!r}" if name else ""
            raise PluginError(
                f"module {type(part).__name__}{where} holds parameters but has no reset_parameters(), so that no copy "
                "with initial weights of its own can be made; give it one, as torch.nn.Linear has"
            )
    return copied
