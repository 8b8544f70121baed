"""Amazon's reviews as bags of words, and the svmlight files that hold them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from msda_bench.api import Array, DataError, Dataset, DomainData, File, Files, InputSpec, Size, Task, Url, component

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


_DIGITS = 9
"""The number of digits that always fits an int32."""
_PAIR = re.compile(rb"\d{1,9}:\d{1,9}")
_SPACE, _COLON, _END, _PLUS, _MINUS, _ZERO, _NINE = b" :\n+-09"


def read_svmlight(path: Path, columns: int) -> tuple[csr_matrix, Array]:
    """Counts and labels of a file.

    Args:
        path: the file; indices are 0-based and rise along a line.
        columns: the width d.

    Returns:
        CSR (n, d) float32 with sorted int32 indices, and (n,) int64 labels, each -1 or 1.

    Raises:
        DataError: the file has other contents; reports the line.
    """
    from scipy.sparse import csr_matrix

    content = path.read_bytes().replace(b" \n", b"\n")  # a line without words may end with a space after its label
    if not content.endswith(b"\n"):
        raise DataError(f"{path}: empty or truncated: it does not end with a complete line; fetch it again")
    lines = _lines(np.frombuffer(content, np.uint8))
    if lines is None or _wrong(lines, columns):
        raise DataError(f"{path}:{_explain(content, columns)}; fetch the file again")
    shape = (len(lines.labels), columns)
    return csr_matrix((lines.counts.astype(np.float32), lines.indices, lines.starts), shape=shape), lines.labels


@dataclass(frozen=True, eq=False)
class _Lines:
    """Labels (n,), starts (n + 1,) of the lines' entries, and all indices and counts."""

    labels: Array
    starts: Array
    indices: Array
    counts: Array


def _lines(text: Array) -> _Lines | None:
    """Parses the text with whole-array operations; None if it is not in the format."""
    is_sign = (text == _PLUS) | (text == _MINUS)
    is_digit = (text >= _ZERO) & (text <= _NINE)
    ends = np.flatnonzero(~is_sign & ~is_digit)  # each number ends at a space, a colon or a line's end
    starts = np.concatenate([[0], ends[:-1] + 1])
    signed = is_sign[starts]
    kinds = text[ends]
    first = np.concatenate([[True], kinds[:-1] == _END])  # first in its line, so a label
    digits = ends - starts - signed
    if (
        is_sign.sum() != signed.sum()
        or (signed & ~first).any()
        or digits.min() < 1
        or digits.max() > _DIGITS
        or (digits[first] != 1).any()
        or not np.isin(kinds, (_SPACE, _COLON, _END)).all()
        or ((kinds[:-1] == _SPACE) != (kinds[1:] == _COLON)).any()
        or kinds[0] == _COLON
    ):
        return None
    numbers = _numbers(text, ends, digits)
    labels = np.where(text[starts[first]] == _MINUS, -numbers[first], numbers[first]).astype(np.int64)
    pairs = np.diff(np.append(np.flatnonzero(first), len(ends))) // 2
    rest = numbers[~first]
    return _Lines(labels, np.concatenate([[0], np.cumsum(pairs)]), rest[0::2], rest[1::2])


def _numbers(text: Array, ends: Array, digits: Array) -> Array:
    """The numbers, int32, that end before `ends` and have these numbers of digits."""
    values = np.zeros(len(ends), np.int32)
    live = np.arange(len(ends))
    for place in range(int(digits.max())):
        live = live[digits[live] > place]
        values[live] += (text[ends[live] - 1 - place].astype(np.int32) - _ZERO) * 10**place
    return values


def _wrong(lines: _Lines, columns: int) -> bool:
    """Whether a label or an index is out of bounds."""
    falls = np.diff(lines.indices, prepend=-1) <= 0
    falls[lines.starts[:-1][np.diff(lines.starts) > 0]] = False  # a line's first index has no predecessor
    return bool(falls.any() or (lines.indices >= columns).any() or (abs(lines.labels) != 1).any())


def _explain(content: bytes, columns: int) -> str:
    """Reads line by line, slowly, to find the first mistake and its place."""
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        mistake = _mistake(line, columns)
        if mistake:
            return f"{number}: {mistake}"
    raise AssertionError("the two readers disagree")


def _mistake(line: bytes, columns: int) -> str | None:
    label, *pairs = line.split(b" ")
    if label not in {b"1", b"+1", b"-1"}:
        return f"label {_shown(label)} is neither 1 nor -1"
    last = -1
    for pair in pairs:
        if not _PAIR.fullmatch(pair):
            return f"{_shown(pair)} is not `index:count` in whole numbers"
        index = int(pair.split(b":")[0])
        if index >= columns:
            return f"index {index} is not below {columns}"
        if index <= last:
            return f"index {index} does not rise after {last}"
        last = index
    return None


def _shown(token: bytes) -> str:
    return repr(token[:30].decode("ascii", "replace"))


_COLUMNS = 5000
_COMMIT = "74eec5e0ae06bd6614bce048abba492c16a633e3"
_ADDRESS = f"https://raw.githubusercontent.com/GRAAL-Research/domain_adversarial_neural_network/{_COMMIT}/data/"
_FILES = {
    "books_train.svmlight": ("317f9a2ec34b81de770b63a84d8c5cc2dc16bd0be6e079d2ff5b5bad5213ea19", 1134070),
    "books_test.svmlight": ("fe4605c7dcf0e0a9410fd2a32f247caaf9abb352cc6e4c3e0f400853163ad9c4", 2426071),
    "dvd_train.svmlight": ("95f602aa08bf6b55758f7b0b18df3882fe30acb11987ee60b6b4bb3c44cba733", 1133356),
    "dvd_test.svmlight": ("4fe1b1a15010f78d8d0c49fe362d35fd4677463a45f1ac02a9f410ae1e638060", 2039832),
    "electronics_train.svmlight": ("7d0061f03ff3827e4f8036b051b5e5828fddc0cd115aa5b212cd28d624dc14e4", 872265),
    "electronics_test.svmlight": ("641783bc941839c3a111d3488a1b7e3bd820a61ec14a129e7429b47703aa961d", 2461224),
    "kitchen_train.svmlight": ("a70b5ebfe1413e0e16280360905f5c3b64389c435cd20c0165dc9d7f293b31b5", 771076),
    "kitchen_test.svmlight": ("e1502b97a824eb12314be4447394fa736fecb781c0724e6529cd6733ac7ff6d8", 2280620),
}


@component
class Amazon(Dataset):
    """Sentiment of Amazon reviews of books, DVDs, electronics and kitchenware, as 5000 word and word-pair counts.

    The paper's first benchmark (section 5.1): 27,677 reviews (6465, 5586, 7681, 7945), 1 if the reviewer liked the
    product. The public copy's train and test parts are joined, as in the paper, which draws the training examples of
    every run at random.

    Blitzer, Dredze, Pereira. Biographies, Bollywood, Boom-boxes and Blenders: Domain Adaptation for Sentiment
    Classification. ACL 2007. Processed by Chen, Xu, Weinberger, Sha. Marginalized Denoising Autoencoders for Domain
    Adaptation. ICML 2012.
    """

    name = "amazon"
    version = 1
    licence = "BSD-2-Clause for the processed copy's repository; the reviews' own terms are not stated"
    modality = "text"
    source = "Blitzer et al. 2007, as processed for Ganin et al. 2016 (GRAAL-Research on GitHub)"

    train: Size = 2000

    @property
    def domains(self) -> tuple[str, ...]:
        """The kinds of product."""
        return ("books", "dvd", "electronics", "kitchen")

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """Reviews of each kind."""
        return {"books": 6465, "dvd": 5586, "electronics": 7681, "kitchen": 7945}

    @property
    def task(self) -> Task:
        """Negative (0) or positive (1)."""
        return Task("classification", 2)

    @property
    def input(self) -> InputSpec:
        """Counts of the 5000 most frequent words and word pairs."""
        return InputSpec((_COLUMNS,), sparse=True)

    @property
    def files(self) -> tuple[File, ...]:
        """Two svmlight files for each domain."""
        return tuple(
            File(f"amazon/{name}", digest, size, Url((_ADDRESS + name,))) for name, (digest, size) in _FILES.items()
        )

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's train file, then its test file: CSR float32 counts.

        Raises:
            DataError: a file is missing or damaged.
        """
        from scipy.sparse import csr_matrix, vstack

        names = (f"{domain}_train.svmlight", f"{domain}_test.svmlight")
        paths = [files.path(file) for file in self.files if PurePosixPath(file.path).name in names]
        parts = [read_svmlight(path, _COLUMNS) for path in paths]
        counts = csr_matrix(vstack([counts for counts, _ in parts], format="csr"))
        return DomainData(counts, (np.concatenate([labels for _, labels in parts]) + 1) // 2)
