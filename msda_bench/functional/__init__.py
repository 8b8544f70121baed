"""Building blocks for components: differentiable tensor functions such as sharpmax, and features of inputs."""

from msda_bench.functional.features import (
    fit_ngrams,
    frequent_columns,
    ngram_counts,
    select_columns,
    standardiser,
    tokens,
)
from msda_bench.functional.random import keep_mask, normal, random_bits, split_key, uniform
from msda_bench.functional.rows import SparseRows, drop_entries, reverse_gradient
from msda_bench.functional.sharpmax import sharpmax
from msda_bench.functional.texts import MISSING_TEXTS, alike, plain_texts

__all__ = [
    "MISSING_TEXTS",
    "SparseRows",
    "alike",
    "drop_entries",
    "fit_ngrams",
    "frequent_columns",
    "keep_mask",
    "ngram_counts",
    "normal",
    "plain_texts",
    "random_bits",
    "reverse_gradient",
    "select_columns",
    "sharpmax",
    "split_key",
    "standardiser",
    "tokens",
    "uniform",
]
