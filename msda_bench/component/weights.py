"""Loads a network's weights safely from a third-party file."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from msda_bench.errors import DataError, message_of

_MOST = 3
"""The maximum number of wrong names that a message shows."""
_BOOKKEEPING = "num_batches_tracked"
"""Buffers that no computation here uses, and that files of old versions of torch do not have."""


def load_weights(
    module: nn.Module, path: Path, *, without: str | None = None, renamed: tuple[str, str] = ("", "")
) -> None:
    """Gives a module the weights of a file that `torch.save` wrote, by name; no code in the file is run.

    Args:
        module: all of its parameters and buffers must be in the file, in the same shapes; they take the file's values,
            in float32 on the CPU, and may be on the device "meta" until then.
        path: a checked file.
        without: the name of a layer, or its start, that the file may contain and the module does not have.
        renamed: a regular expression and its replacement in the file's names.

    Raises:
        DataError: the file is damaged, contains something else than weights, or the weights of another network.
    """
    weights = _read(path)
    for name in [*weights]:
        value = weights.pop(name)
        if without is None or not name.startswith(f"{without}."):
            weights[re.sub(*renamed, name) if renamed[0] else name] = value
    wanted = module.state_dict()
    counts = [name for name in wanted if name.endswith(_BOOKKEEPING)]
    weights.update({name: weights.get(name, torch.zeros(())).long() for name in counts})
    if wrong := "; ".join(_differences(wanted, weights)):
        raise DataError(f"{path}: not the weights of this network: {wrong}; name the network of these weights")
    # After the shapes were compared: a small file can hold a view of one number that is as large as memory.
    weights.update({name: value.float().contiguous() for name, value in weights.items() if value.is_floating_point()})
    module.load_state_dict(weights, assign=True)


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file() or not path.stat().st_size:
        raise DataError(f"{path}: {'empty (0 bytes)' if path.is_file() else 'not a file'}; name a file of weights")
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise DataError(
            f"{path}: holds no weights, or code as well, which is never run; save a network's `state_dict()` alone"
        ) from None
    except Exception as error:  # noqa: BLE001 - torch's readers may raise anything on damaged bytes
        raise DataError(
            f"{path}: cannot be read as weights: {message_of(error).partition('. ')[0]}; replace it"
        ) from None
    if isinstance(content, dict) and all(isinstance(name, str) and _is_plain(content[name]) for name in content):
        return content
    names = f" with {_some(map(str, content))}" if isinstance(content, dict) else ""
    raise DataError(
        f"{path}: holds a {type(content).__name__}{names}, not weights by name; save a `state_dict()` alone"
    )


def _is_plain(value: object) -> bool:
    """Whether it is a tensor with a number for each place; other kinds would fail in training."""
    if not isinstance(value, Tensor):
        return False
    return value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized


def _differences(wanted: dict[str, Tensor], given: dict[str, Tensor]) -> Iterator[str]:
    missing = [name for name in wanted if name not in given]
    more = [name for name in given if name not in wanted]
    shapes = [
        f"{name} {tuple(given[name].shape)}, not {tuple(value.shape)}"
        for name, value in wanted.items()
        if name in given and given[name].shape != value.shape
    ]
    kinds = [
        f"{name} {given[name].dtype}"
        for name, value in wanted.items()
        if name in given and given[name].is_floating_point() != value.is_floating_point()
    ]
    faults = {"missing": missing, "not in the network": more, "of another shape": shapes, "of another kind": kinds}
    for what, names in faults.items():
        if names:
            yield f"{len(names)} {what} ({_some(names)})"


def _some(names: Iterable[str]) -> str:
    first, *rest = [*names][: _MOST + 1] or [""]
    return ", ".join([first, *rest[: _MOST - 1]]) + (", ..." if len(rest) >= _MOST else "")
