"""Building blocks for components: differentiable tensor functions such as sharpmax, and features of inputs."""

from msda_bench.functional.gradient import reverse_gradient
from msda_bench.functional.ngrams import fit_ngrams, frequent_columns, ngram_counts, select_columns, tokens
from msda_bench.functional.random import keep_mask, normal, random_bits, split_key, uniform
from msda_bench.functional.rows import SparseRows
from msda_bench.functional.sharpmax import sharpmax
from msda_bench.functional.standardise import standardiser
from msda_bench.functional.views import drop_entries

__all__ = [
    "SparseRows",
    "drop_entries",
    "fit_ngrams",
    "frequent_columns",
    "keep_mask",
    "ngram_counts",
    "normal",
    "random_bits",
    "reverse_gradient",
    "select_columns",
    "sharpmax",
    "split_key",
    "standardiser",
    "tokens",
    "uniform",
]
