"""Features that a dataset's `fit` may learn: counts of words and word groups, and standardised columns."""

from __future__ import annotations

import functools
import html
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from msda_bench.functional.texts import characters, unspaced_parts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def standardiser(
    train: Mapping[str, Array], by: Literal["domain", "pooled"], *, channels: bool = False
) -> Callable[[str, Array], Array]:
    """Learns to standardise inputs, as a dataset's `fit` may return it.

    Each column gets mean 0 and variance 1 over the training inputs of its own domain, or of all domains. A constant
    column becomes 0.

    Args:
        train: the training inputs (n, ...) of each domain.
        by: "domain" for each domain's own mean and variance, "pooled" for those of all domains.
        channels: whether inputs are signals (n, channels, time), whose channels have one mean and one variance each
            over rows and time; NaN stands for a missing number, does not count, and stays.

    Returns:
        A picklable function of a domain's name and its inputs (n, ...) that returns float32 of equal shape. With
        "domain" it raises `KeyError` for a domain without training inputs.
    """
    pooled = by == "pooled"
    parts = {"": np.concatenate(list(train.values()))} if pooled else train
    scale = _of_signals if channels else _of_columns
    scales = {domain: scale(x) for domain, x in parts.items() if len(x)}
    return functools.partial(_standardised, scales=scales, pooled=pooled)


def _standardised(
    domain: str,
    x: Array,
    *,
    scales: Mapping[str, tuple[Array, Array]],
    pooled: bool,
) -> Array:
    mean, deviation = scales["" if pooled else domain]
    return ((x - mean) / deviation).astype(np.float32)


def _of_columns(x: Array) -> tuple[Array, Array]:
    """The mean and the deviation of each column."""
    wide = x.astype(np.float64)
    # Rounding can make the deviation of a constant column slightly larger than 0.
    constant = wide.min(0) == wide.max(0)
    mean = np.where(constant, wide[0], wide.mean(0))
    deviation = np.where(constant, 1, wide.std(0))
    return mean, deviation


def _of_signals(x: Array) -> tuple[Array, Array]:
    """The mean and the deviation of each channel, (channels, 1)."""
    mean, variance = known_moments(by_channel(x))
    return mean[:, None], divisor(variance, mean)[:, None]


_ROUNDING = 1e-12
"""Numbers that deviate by less than this share of their mean are equal but for rounding."""


def by_channel(x: Array) -> Array:
    """Examples (n, channels, ...) as (n * positions, channels) float64."""
    wide = x.astype(np.float64)
    channels = x.shape[1]
    by_row = np.moveaxis(wide.reshape(len(x), channels, -1), 1, 2)
    return cast("Array", by_row.reshape(-1, channels))


def known_moments(columns: Array) -> tuple[Array, Array]:
    """The mean and the variance of each column, float64, over its finite numbers; 0 for a column without any."""
    known = np.isfinite(columns)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, columns, 0).sum(0) / count
    squares = np.where(known, columns - mean, 0) ** 2
    return mean, squares.sum(0) / count


def divisor(variance: Array, mean: Array) -> Array:
    """The standard deviation of each column; 1 if it is constant."""
    deviation = np.sqrt(variance)
    return np.where(deviation > _ROUNDING * abs(mean), deviation, 1)


def lost_in_float32(x: Array) -> Array:
    """Which of the numbers that make up an example float32 blurs, since they differ little beside their size.

    Args:
        x: (n, ...) numbers; of some types, such as float16, float32 holds all.

    Returns:
        (...) bool: whether rounding moves one by more than a thousandth of their range.
    """
    if np.can_cast(x.dtype, np.float32) or not len(x):
        return np.zeros(x.shape[1:], bool)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = abs(x - x.astype(np.float32)).max(0)
    low = x.min(0).astype(np.float64)
    high = x.max(0).astype(np.float64)
    # What differs by less than float64 rounds by is a constant that was computed in several ways.
    differs = high - low > 64 * np.finfo(np.float64).eps * np.maximum(abs(low), abs(high))
    return np.asarray(differs & np.isfinite(moved) & (1000 * moved > high - low))


_TOKEN = re.compile(
    r"""
    https?://[^\s!,)]+                      # a whole address
    | <3                                    # a heart
    | [:;=8x][-o^']?[)(\]\[dp/\\|@*3](?!\w) # a face: :) ;-) =d :'(
    | [^\W_]+(?:['-][^\W_]+)*               # a word or number, including don't and well-made
    | [!?]
    """,
    re.VERBOSE,
)


def tokens(text: str) -> list[str]:
    """Lower-case words, emoticons, and single exclamation and question marks, in order.

    Resolves character references such as `&amp;` and straightens curly apostrophes, so that a negation has a single
    spelling.
    """
    return _TOKEN.findall(html.unescape(text).lower().replace("\u2019", "'"))


def fit_ngrams(
    train: Mapping[str, Iterable[str]], columns: int, *, longest: int = 1, least: int = 1, binary: bool = False
) -> Callable[[str, Iterable[str]], csr_matrix]:
    """Learns a vocabulary from the training texts of all domains, as a dataset's `fit` may return it.

    Args:
        train: the texts of each domain, such as object arrays of str.
        columns: width of the bag of words. Columns are the groups of tokens that occur in the most texts, with ties
            in alphabetical order. If there are fewer groups, the last columns are empty.
        longest: tokens in the longest group, see `tokens`.
        least: number of texts in which a column must occur.
        binary: whether a column is 1 if its group occurs, rather than a count.

    Returns:
        A picklable function from a domain's name, which does not matter, and n texts to a CSR matrix (n, columns),
        float32 with sorted indices.
    """
    every = list(itertools.chain.from_iterable(train.values()))
    counts, vocabulary = ngram_counts(every, longest)
    kept = frequent_columns([counts], columns, least)
    place = {vocabulary[column]: number for number, column in enumerate(kept.tolist())}
    return functools.partial(_bags, place=place, longest=longest, width=columns, binary=binary)


def _bags(
    _: str, texts: Iterable[str], *, place: Mapping[str, int], longest: int, width: int, binary: bool
) -> csr_matrix:
    counts = _matrix([_runs(tokens(text), longest) for text in texts], place, width)
    if binary:
        counts.data[:] = 1
    return counts


def characters_of(text: str) -> list[str]:
    """Tokens of a text in a script that puts no blanks between words, such as Chinese, Japanese or Thai, in order.

    Each letter of such a script, with its marks, is a token; the rest of the text is split as by `tokens`.
    """
    found: list[str] = []
    for part, is_alone in unspaced_parts(text):
        found += characters(part) if is_alone else tokens(part)
    return found


def ngram_counts(
    texts: Sequence[str],
    longest: int,
    vocabulary: Sequence[str] | None = None,
    *,
    units: Literal["words", "characters"] = "words",
) -> tuple[csr_matrix, list[str]]:
    """Counts each run of 1 to `longest` tokens in each text, or those of a vocabulary alone.

    Args:
        texts: n texts.
        longest: tokens in the longest run.
        vocabulary: the runs that are counted; None for all that occur.
        units: "words" for `tokens`, "characters" for `characters_of`.

    Returns:
        CSR (n, v) float32 with sorted indices, and the v runs, with tokens joined by spaces: in the order of the
        vocabulary, or else in alphabetical order.
    """
    split = characters_of if units == "characters" else tokens
    runs = [_runs(split(text), longest) for text in texts]
    known = sorted(set().union(*runs)) if vocabulary is None else list(vocabulary)
    column = {run: number for number, run in enumerate(known)}
    return _matrix(runs, column, len(known)), known


def _matrix(runs: Sequence[Sequence[str]], column: Mapping[str, int], width: int) -> csr_matrix:
    """Counts of the runs that have a column."""
    from scipy.sparse import csr_matrix

    indices: list[int] = []
    starts = [0]
    for text in runs:
        indices += [column[run] for run in text if run in column]
        starts.append(len(indices))
    ones = np.ones(len(indices), np.float32)
    places = np.array(indices, np.int32), np.array(starts, np.int32)
    counts = csr_matrix((ones, *places), shape=(len(runs), width))
    counts.sum_duplicates()
    return counts


def frequent_columns(counts: Sequence[csr_matrix], most: int, least: int) -> Array:
    """The columns that are non-zero in the most rows, the most frequent first, with ties in column order.

    Args:
        counts: matrices of equal width.
        most: largest number of columns to keep.
        least: number of rows in which a column must be non-zero.

    Returns:
        Column indices, int64, at most `most`.
    """
    rows = np.zeros(counts[0].shape[1], np.int64)
    for part in counts:
        rows += np.bincount(part.indices[part.data > 0], minlength=part.shape[1])
    order = np.argsort(-rows, kind="stable")[:most]
    return order[rows[order] >= least]


def select_columns(counts: csr_matrix, columns: Array, width: int) -> csr_matrix:
    """The given columns, in the given order, followed by empty columns up to `width`."""
    chosen = counts[:, columns]
    chosen.resize(counts.shape[0], width)
    chosen.sort_indices()
    return chosen


def _runs(words: list[str], longest: int) -> list[str]:
    runs = list(words)
    for length in range(2, longest + 1):
        starts = range(len(words) - length + 1)
        runs += [" ".join(words[start : start + length]) for start in starts]
    return runs
