"""The files that a suite keeps of a trained run in addition to its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from msda_bench.engine.runs import Run, Seen
from msda_bench.store.files import pack


def kept_arrays(run: Run, test: Seen, weights: Callable[[], Mapping[str, Tensor]]) -> dict[str, bytes]:
    """The files that the run's cell asks for, by name: predictions, features (both of the test) and weights."""
    found: dict[str, bytes] = {}
    labels = _plain(run.prepared.test.y)
    for name in run.cell.keep:
        if name == "predictions":
            outputs = _plain(test.outputs)
            right = outputs.argmax(-1) if run.prepared.task.kind == "classification" else outputs[:, 0]
            found[name] = pack({"label": labels, "predicted": right, "outputs": outputs})
        elif name == "features":
            found[name] = pack({"label": labels, "features": _plain(test.features)})
        else:
            found[name] = pack({each: _plain(tensor) for each, tensor in weights().items()})
    return found


def _plain(tensor: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array
