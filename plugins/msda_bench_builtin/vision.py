"""Imports torchvision, also on a torch without its compiled operators."""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.library import Library

_MISSING = "operator torchvision::nms does not exist"
_OPERATORS = ("nms", "qnms")
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def torchvision(submodule: str = "") -> ModuleType:
    """The package torchvision, or a submodule such as "models"; imported on first use.

    torchvision's wheel from PyPI cannot load its compiled operators with a CPU-only torch, and then cannot be imported.
    We use none of these operators, so the two that it requires are declared without code.

    Raises:
        ImportError, RuntimeError: it cannot be imported for another reason.
    """
    name = f"torchvision.{submodule}".rstrip(".")
    try:
        return importlib.import_module(name)
    except RuntimeError as error:
        if _MISSING not in str(error):
            raise
    for half in [module for module in sys.modules if module.partition(".")[0] == "torchvision"]:
        del sys.modules[half]  # left behind by the failed import
    _declare()
    return importlib.import_module(name)


@functools.cache
def _declare() -> Library:
    """Declares the operators while the result lives, hence the cache."""
    from torch.library import Library

    library = Library("torchvision", "DEF")  # type: ignore[no-untyped-call]  # torch has no types there
    for operator in _OPERATORS:
        library.define(f"{operator}{_SIGNATURE}")  # type: ignore[no-untyped-call]
    return library
