"""torchvision's classification networks without their last linear layer, also on a torch without its operators."""

from __future__ import annotations

import difflib
import functools
import importlib
import sys
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.library import Library
from torch.overrides import TorchFunctionMode

from msda_bench.api import Dropout

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
    library = Library("torchvision", "DEF")  # type: ignore[no-untyped-call]  # torch has no types there
    for operator in _OPERATORS:
        library.define(f"{operator}{_SIGNATURE}")  # type: ignore[no-untyped-call]
    return library


class Headless(NamedTuple):
    """A network without its last layer.

    Attributes:
        module: maps (n, 3, height, width) to (n, width); its parameters are on the device "meta", without values.
        layer: the name of the removed layer.
        width: the removed layer's input width.
    """

    module: nn.Module
    layer: str
    width: int


class _Hollow(TorchFunctionMode):
    """Makes parameters without memory, since drawing values that are then overwritten takes seconds in a large network.

    The device "meta" for everything would be simpler, but RegNet computes its widths with tensors.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        given = dict(kwargs or {})
        return func(*args, **(given | {"device": "meta"} if func is torch.empty else given))


def known(network: str) -> str:
    """The name itself, if torchvision has a classification network with that name; ValueError otherwise."""
    models = torchvision("models")
    return of_known(network, models.list_models(module=models), "torchvision has no network")


def of_known(name: str, names: Iterable[str], fault: str) -> str:
    """The name itself if it is one of them; ValueError with the closest one otherwise."""
    every = sorted(names)
    if name not in every:
        close = difflib.get_close_matches(name, every, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(every)}"
        raise ValueError(f"{fault} {name!r} ({hint})")
    return name


def hollow(network: str) -> Headless:
    """The network without values; ValueError if it has no last linear layer, or several."""
    with _Hollow():
        return _headless(network)


def drawn(network: str) -> nn.Module:
    """The network with random values from torch's global generator."""
    return _headless(network).module


@functools.cache
def width(network: str) -> int:
    """The width of its features."""
    return hollow(network).width


@functools.cache
def fault(network: str, height: int, width: int) -> str | None:
    """Why it does not accept images of this size, or None; found without computing anything."""
    module = hollow(network).module.eval().to("meta")
    try:
        module(torch.empty(2, 3, height, width, device="meta"))
    except (RuntimeError, ValueError, AssertionError) as error:
        return str(error)
    return None


def _headless(network: str) -> Headless:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # GoogLeNet warns of a change in how it draws its weights
        module = torchvision("models").get_model(network, weights=None)
    linear = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    if not linear or hasattr(module, "aux_logits"):
        why = "classifies in several places" if linear else "has no linear layer at its end"
        raise ValueError(f"{network} {why}, so its features cannot be taken; choose another network")
    name, layer = linear[-1]
    module.set_submodule(name, nn.Identity())
    _calm(module)
    return Headless(module, name, layer.in_features)


def _calm(module: nn.Module) -> None:
    """Makes dropout draw from the run's own stream, and keeps the blocks that torchvision drops at random."""
    for name, layer in [*module.named_modules()]:
        if isinstance(layer, nn.Dropout) and layer.p:
            module.set_submodule(name, Dropout(layer.p))
        elif isinstance(layer, (nn.Dropout, torchvision("ops").StochasticDepth)):
            module.set_submodule(name, nn.Identity())
