"""Building blocks for components: differentiable tensor functions such as sharpmax, and features of inputs.

Those of tensors are imported when they are first used.
"""

from typing import TYPE_CHECKING

from msda_bench.deferred import deferred
from msda_bench.functional.estimators import LEAST, dense_rows, log_shares, on_one_thread, seeded_globals
from msda_bench.functional.features import (
    characters_of,
    fit_ngrams,
    frequent_columns,
    lost_in_float32,
    ngram_counts,
    select_columns,
    standardiser,
    tokens,
)
from msda_bench.functional.telling import Told, codes_of, order_told, share_told, told_by, told_by_neighbours
from msda_bench.functional.texts import MISSING_TEXTS, alike, plain_texts, unspaced

if TYPE_CHECKING:
    from msda_bench.functional.random import keep_mask, normal, random_bits, split_key, uniform
    from msda_bench.functional.rows import SparseRows, drop_entries, reverse_gradient
    from msda_bench.functional.simplex import sharpmax
else:
    __getattr__ = deferred(
        __name__,
        {
            "msda_bench.functional.random": "keep_mask normal random_bits split_key uniform",
            "msda_bench.functional.rows": "SparseRows drop_entries reverse_gradient",
            "msda_bench.functional.simplex": "sharpmax",
        },
    )

__all__ = [
    "LEAST",
    "MISSING_TEXTS",
    "SparseRows",
    "Told",
    "alike",
    "characters_of",
    "codes_of",
    "dense_rows",
    "drop_entries",
    "fit_ngrams",
    "frequent_columns",
    "keep_mask",
    "log_shares",
    "lost_in_float32",
    "ngram_counts",
    "normal",
    "on_one_thread",
    "order_told",
    "plain_texts",
    "random_bits",
    "reverse_gradient",
    "seeded_globals",
    "select_columns",
    "share_told",
    "sharpmax",
    "split_key",
    "standardiser",
    "tokens",
    "told_by",
    "told_by_neighbours",
    "uniform",
    "unspaced",
]
