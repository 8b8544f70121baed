"""The criterion EnsV: how often a candidate predicts what the ensemble of all candidates predicts.

Hu, Luo, Liang, Foo. Towards reliable model selection for unsupervised domain adaptation: an empirical study and a
certified baseline. NeurIPS, 2024. The authors' ensemble predicts the class of the highest mean probability; here it is
the class of most candidates, since one byte an example keeps classes alone.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msda_bench.errors import StoreError
from msda_bench.results.recorded import kept_file
from msda_bench.store import Store


@functools.cache  # a key's predictions never change
def agreement(candidates: tuple[tuple[Path, str] | None, ...]) -> tuple[float, ...]:
    """The share of the target's examples for which each candidate predicts what most do, of equally many the lowest.

    Args:
        candidates: folder and key of the runs of one method, target and seed, which are ok; None for one of no folder.

    Raises:
        StoreError: one is of no folder, has no file of `target_predictions`, or it is damaged.
    """
    places = [place for place in candidates if place is not None]
    if len(places) < len(candidates):
        raise StoreError("ensv compares predictions in a result folder, and these runs are of none")
    if not places:
        return ()
    predicted = np.stack([_answers(Store(folder, repair=False), key) for folder, key in places])
    votes = np.zeros((predicted.shape[1], int(predicted.max()) + 1), np.int32)
    for classes in predicted:
        votes[np.arange(len(classes)), classes] += 1
    return tuple((predicted == votes.argmax(1)).mean(1).tolist())


def _answers(store: Store, key: str) -> NDArray[np.unsignedinteger]:
    arrays = kept_file(store, key, "target_predictions")
    if arrays is None:
        what = "ensv compares kept predictions, and this run has none; add keep: [target_predictions] to the suite"
        raise StoreError(f"{store.path(key)}: {what} and run it with another --out")
    predicted: NDArray[np.unsignedinteger] = arrays["predicted"]
    return predicted
