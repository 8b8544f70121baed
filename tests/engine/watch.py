"""The operations in training steps for which a host would wait for its device."""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

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

    def __str__(self) -> str:
        return f"{self.operation} at {self.where}"


class Watch(TorchDispatchMode):
    """Lists operations below autograd and `torch.vmap` that make the host wait for the device "meta".

    That device holds no numbers: one that is read is 1, and what is copied to the host is zeros.

    Attributes:
        waits: those that make the host wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[Wait] = Counter()
        self._made = _Made(self.waits)

    def __enter__(self) -> Self:
        self._made.__enter__()
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self._made.__exit__(*raised)

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        name = func.overloadpacket.__name__
        tensors = list(_tensors((args, tuple(given.values()))))
        reason = self._reason(name, tensors, args, given)
        if reason:
            self.waits[Wait(reason, _where())] += 1
        return self._answer(name, tensors, given) if reason and self._no_numbers(name, given) else func(*args, **given)

    def _reason(self, name: str, tensors: Sequence[Tensor], args: tuple[Any, ...], given: dict[str, Any]) -> str:
        """Why an operation makes the host wait; nothing if it does not."""
        here = [tensor.device.type == DEVICE for tensor in tensors]
        if name in COPIES:
            asked = given.get("device")
            places = {*here, torch.device(asked).type == DEVICE} if asked is not None else set(here)
            return name if len(places) > 1 and not _waits_for_nothing(name, args, given) else ""
        if any(here) and name in READS | SIZES | CHECKED:
            return name
        if name.startswith("index") and any(here) and _by_mask(args):
            return f"{name} by a mask"
        host = [tensor for tensor, its in zip(tensors, here, strict=True) if not its and tensor.dim()]
        return f"{name} of tensors of two devices" if any(here) and host else ""

    def _no_numbers(self, name: str, given: dict[str, Any]) -> bool:
        to_host = name == "_to_copy" and torch.device(given.get("device") or "cpu").type != DEVICE
        return name in READS or to_host

    def _answer(self, name: str, tensors: Sequence[Tensor], given: dict[str, Any]) -> Any:
        (first, *_) = tensors
        if name in READS:
            return torch.ones((), dtype=first.dtype).item() if name == "_local_scalar_dense" else True
        return torch.zeros(first.shape, dtype=given.get("dtype") or first.dtype)


def _tensors(given: Any) -> Iterator[Tensor]:
    """The tensors in what an operation takes or gives, which are nested in lists and tuples alone."""
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _tensors(one)


def _waits_for_nothing(name: str, args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Whether a copy between devices is one that the host need not wait for: from pinned memory."""
    source = args[1] if name == "copy_" else args[0]
    return bool(given.get("non_blocking")) and source.device.type == "cpu" and source.is_pinned()


def _by_mask(args: tuple[Any, ...]) -> bool:
    """Whether it is indexed by booleans, whose number decides the shape; one number is put without counting them."""
    indices, value = (*args[1:], None, None)[:2]
    masks = isinstance(indices, list | tuple) and any(
        isinstance(one, Tensor) and one.dtype in {torch.bool, torch.uint8} for one in indices
    )
    return masks and not (isinstance(value, Tensor) and value.numel() == 1)


class _Made(TorchFunctionMode):
    """Lists tensors that are made on the device of numbers of the host, which a simulated device makes unseen."""

    def __init__(self, waits: Counter[Wait]) -> None:
        super().__init__()
        self._waits = waits

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func in {torch.tensor, torch.as_tensor, torch.asarray} and not isinstance(args[0], Tensor):
            asked = given.get("device")
            if asked is not None and torch.device(asked).type == DEVICE:
                self._waits[Wait(func.__name__, _where())] += 1
        return func(*args, **given)


def _where() -> str:
    """The innermost line that is not torch's, nor this file's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((TORCH, __file__, "<")):
        frame = frame.f_back
    if frame is None:
        return "an unknown line"
    path, line = frame.f_code.co_filename, frame.f_lineno
    return f"{Path(path).name}:{line}: {linecache.getline(path, line).strip()}"
