"""The criterion EnsV: how often a candidate predicts what the ensemble of all candidates predicts.

Hu, Luo, Liang, Foo. Towards reliable model selection for unsupervised domain adaptation: an empirical study and a
certified baseline. NeurIPS, 2024. The authors' ensemble predicts the class of the highest mean probability; here it is
the class of most candidates, since one byte an example keeps classes alone.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msda_bench.errors import StoreError
from msda_bench.results.recorded import kept_file
from msda_bench.store import Store


class _UnkeptError(StoreError):
    """A run without kept predictions."""


def agreement(candidates: Sequence[tuple[Path, str] | None]) -> Sequence[float | None]:
    """The share of the target's examples for which each candidate predicts what most do, of equally many the lowest.

    None for all where one has no kept predictions, since the ensemble of the others is another one.

    Args:
        candidates: folder and key of the runs of one method, target and seed, which are ok; None for one of no folder.

    Raises:
        StoreError: one is of no folder, or its file is damaged.
    """
    places = tuple(place for place in candidates if place is not None)
    if len(places) < len(candidates):
        raise StoreError("ensv compares predictions in a result folder, and these runs are of none")
    try:
        return _agreement(places) if places else ()
    except _UnkeptError:
        return [None] * len(places)


@functools.cache  # a key's predictions never change
def _agreement(places: Sequence[tuple[Path, str]]) -> Sequence[float]:
    predicted = np.stack([_answers(_store(folder), key) for folder, key in places])
    votes = np.zeros((predicted.shape[1], int(predicted.max()) + 1), np.int32)
    for classes in predicted:
        votes[np.arange(len(classes)), classes] += 1
    agreed: Sequence[float] = (predicted == votes.argmax(1)).mean(1).tolist()
    return agreed


@functools.cache
def _store(folder: Path) -> Store:
    return Store(folder, repair=False)


def _answers(store: Store, key: str) -> NDArray[np.unsignedinteger]:
    arrays = kept_file(store, key, "target_predictions")
    if arrays is None:
        raise _UnkeptError(f"{store.path(key)}: has no kept predictions")
    predicted: NDArray[np.unsignedinteger] = arrays["predicted"]
    return predicted
