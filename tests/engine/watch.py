"""The operations in training steps for which a host would wait for its device."""

import linecache
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READS = frozenset({"_local_scalar_dense", "equal", "is_nonzero"})
"""A number goes to the host: `.item()`, `float(x)`, `if x.any()`."""
SIZES = frozenset(
    {"nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "bincount", "argwhere"}
)
"""The shape of the result depends on numbers, so the host reads it before it goes on."""
CHECKED = frozenset({"_linalg_svd", "_linalg_eigh", "linalg_eig", "linalg_lstsq", "_linalg_check_errors"})
"""On a GPU torch reads whether the solver converged."""
DEVICE = "meta"
COPIES = frozenset({"_to_copy", "copy_", "_copy_from"})
TORCH = str(Path(torch.__file__).parent)


class Wait(NamedTuple):
    """An operation that makes the host wait, and the line of ours, or of a stranger, that asked for it."""

    operation: str
    where: str

    def __str__(self):
        return f"{self.operation} at {self.where}"


class Watch(TorchDispatchMode):
    """Lists operations below autograd and `torch.vmap` that make the host wait for the device "meta".

    That device holds no numbers: one that is read is 1, and what is copied to the host is zeros.

    Attributes:
        waits: those that make the host wait.
    """

    def __init__(self):
        super().__init__()
        self.waits = Counter()
        self._made = _Made(self.waits)

    def __enter__(self):
        self._made.__enter__()
        return super().__enter__()

    def __exit__(self, *raised):
        super().__exit__(*raised)
        self._made.__exit__(*raised)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given, name = dict(kwargs or {}), func.overloadpacket.__name__
        tensors = [leaf for leaf in tree_leaves((args, given)) if isinstance(leaf, Tensor)]
        reason = _reason(name, tensors, args, given)
        if reason:
            self.waits[Wait(reason, _where())] += 1
        if reason and name in READS:
            return torch.ones((), dtype=tensors[0].dtype).item() if name == "_local_scalar_dense" else True
        if reason and name == "_to_copy" and _place(given.get("device") or "cpu") != DEVICE:
            return torch.zeros(tensors[0].shape, dtype=given.get("dtype") or tensors[0].dtype)
        return func(*args, **given)


def _reason(name, tensors, args, given):
    """Why an operation makes the host wait; nothing if it does not."""
    here = [_place(tensor.device) == DEVICE for tensor in tensors]
    if name in COPIES:
        places = {*here, *([_place(given["device"]) == DEVICE] if given.get("device") is not None else ())}
        return name if len(places) > 1 else ""
    if any(here) and name in READS | SIZES | CHECKED:
        return name
    if name.startswith("index") and any(here) and _by_mask(args):
        return f"{name} by a mask"
    host = [tensor for tensor, its in zip(tensors, here, strict=True) if not its and tensor.dim()]
    return f"{name} of tensors of two devices" if any(here) and host else ""


def _place(device):
    return torch.device(device).type


def _by_mask(args):
    """Whether it is indexed by booleans, whose number decides the shape; one number is put without counting them."""
    indices, value = (*args[1:], None, None)[:2]
    masks = [one for one in tree_leaves(indices) if isinstance(one, Tensor) and one.dtype in {torch.bool, torch.uint8}]
    return masks and not (isinstance(value, Tensor) and value.numel() == 1)


class _Made(TorchFunctionMode):
    """Lists tensors that are made on the device of numbers of the host, which a simulated device makes unseen."""

    def __init__(self, waits):
        super().__init__()
        self._waits = waits

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = dict(kwargs or {})
        of_host = func in {torch.tensor, torch.as_tensor, torch.asarray} and not isinstance(args[0], Tensor)
        if of_host and given.get("device") is not None and _place(given["device"]) == DEVICE:
            self._waits[Wait(func.__name__, _where())] += 1
        return func(*args, **given)


def _where():
    """The innermost line that is not torch's, nor this file's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((TORCH, __file__, "<")):
        frame = frame.f_back
    if frame is None:
        return "an unknown line"
    path, line = frame.f_code.co_filename, frame.f_lineno
    return f"{Path(path).name}:{line}: {linecache.getline(path, line).strip()}"
