"""Texts as bags of words, over the words and word groups of a run's training texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
from pydantic import Field

from msda_bench.api import Array, Count, Dataset, Inputs, component
from msda_bench.functional import frequent_columns, ngram_counts, select_columns

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_PARTS = ("data", "indices", "indptr")


@component
class BagOfWords(Dataset):
    """Texts, given as counts of all words and word groups that occur in any of them.

    `fit` keeps the columns that are most frequent in the training texts, so that test texts do not influence the
    vocabulary.

    Parameters:
        words: columns of the bag of words: the words and word groups in the most training texts.
        ngrams: longest group of words.
        min_count: the minimum number of training texts with a column.
        binary: whether a column shows only that a word occurs, rather than how often.
    """

    words: Count = 5000
    ngrams: Annotated[int, Field(ge=1, le=5)] = 2
    min_count: Count = 2
    binary: bool = True

    def fit(self, train: Mapping[str, Inputs]) -> Callable[[str, Inputs], Inputs]:
        """Learns the vocabulary; returns a map to CSR float32 (n, words), columns by falling frequency."""
        matrices = list(train.values())
        columns = frequent_columns(matrices, self.words, self.min_count)

        def bag(_: str, counts: Inputs) -> Inputs:
            chosen = select_columns(cast("csr_matrix", counts), columns, self.words)
            if self.binary:
                chosen.data[:] = 1
            return chosen

        return bag


def packed_counts(texts: Mapping[str, Sequence[str]], longest: int) -> dict[str, Array]:
    """Arrays that keep the counts of each domain's texts, over one set of columns in alphabetical order."""
    counts, vocabulary = ngram_counts([text for some in texts.values() for text in some], longest)
    arrays: dict[str, Array] = {"columns": np.array(len(vocabulary))}
    start = 0
    for domain, some in texts.items():
        part = counts[start : start + len(some)]
        start += len(some)
        arrays |= {f"{domain}_{name}": getattr(part, name) for name in _PARTS}
    return arrays


def unpacked_counts(arrays: Mapping[str, Array], domain: str) -> csr_matrix:
    """The counts of a domain, CSR (n, columns) float32, from `packed_counts`."""
    from scipy.sparse import csr_matrix

    parts = tuple(arrays[f"{domain}_{name}"] for name in _PARTS)
    shape = (len(parts[2]) - 1, int(arrays["columns"]))
    return csr_matrix(parts, shape=shape)
