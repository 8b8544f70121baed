"""Sentence sentiment with human ratings: products, films, editorials and tweets."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Literal, cast

import numpy as np

from msda_bench.api import (
    Array,
    DomainData,
    File,
    Files,
    InputSpec,
    NonNegative,
    Pip,
    Size,
    Task,
    component,
)
from msda_bench_builtin.datasets.unpacked import reading
from msda_bench_builtin.datasets.words import BagOfWords, packed_counts, unpacked_counts

_FILE = File(
    "opinions/vaderSentiment-3.3.2.tar.gz",
    "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
    2466783,
    Pip("vaderSentiment", "3.3.2"),
)
_INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
_MEMBERS = {
    "product": "hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt",
    "film": "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
    "editorial": "hutto_ICWSM_2014/nytEditorialSnippets_GroundTruth.txt",
    "tweets": "hutto_ICWSM_2014/tweets_GroundTruth.txt",
}
_MARGIN = 0.5


@component
class Opinions(BagOfWords):
    """Sentiment of sentences from product reviews, film reviews, editorials and tweets, rated by twenty people each.

    A sentence's label is the mean rating, from -4 to 4, of at least twenty people. Classification skips sentences whose
    mean is nearer to 0 than `margin`, and the label is 1 if the mean is positive; regression keeps all sentences and
    predicts the mean itself.

    Parameters:
        mode: classification or regression.
        margin: least distance of the mean rating from 0, for classification.

    Hutto, Gilbert. VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text. ICWSM 2014.
    """

    name = "opinions"
    version = 1
    licence = "MIT as published, ratings included; the sentences are third parties' (see docs/datasets.md)"
    modality = "text"
    source = "Hutto and Gilbert 2014, from the source distribution vaderSentiment 3.3.2"
    domains = tuple(_MEMBERS)
    files = (_FILE,)

    train: Size = 2000
    mode: Literal["classification", "regression"] = "classification"
    margin: NonNegative = _MARGIN

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """Sentences of each kind, unless they depend on a margin of the user's own."""
        if self.mode == "regression":
            return {"product": 3708, "film": 10605, "editorial": 5190, "tweets": 4200}
        known = {"product": 2985, "film": 10072, "editorial": 2970, "tweets": 3432}
        return known if self.margin == _MARGIN else {}

    @property
    def task(self) -> Task:
        """Negative (0) or positive (1), or the mean rating."""
        return Task("classification", 2) if self.mode == "classification" else Task("regression")

    @property
    def input(self) -> InputSpec:
        """A bag of words, or the sentences themselves."""
        return InputSpec((self.words,), sparse=True, texts=True)

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's sentences: CSR float32 counts of every word and word group of the four files, and as texts."""
        name = f"opinions v{self.version} texts ngrams {self.ngrams} {_FILE.sha256}"
        arrays = files.derived(name, lambda: _encoded(files.path(_FILE), self.ngrams))
        ratings = arrays[f"{domain}_ratings"]
        texts = np.array(arrays[f"{domain}_texts"].tobytes().decode().split("\n")[: len(ratings)], object)
        counts = unpacked_counts(arrays, domain)
        if self.mode == "regression":
            return DomainData(counts, ratings.astype(np.float32), texts=texts)
        kept = np.flatnonzero(abs(ratings) >= self.margin)
        return DomainData(counts[kept], (ratings[kept] > 0).astype(np.int64), texts=texts[kept])


def _encoded(path: Path, ngrams: int) -> Mapping[str, Array]:
    """Ratings and counts of the four domains, over one set of columns in alphabetical order."""
    sentences = {domain: _sentences(lines) for domain, lines in _members(path).items()}
    arrays = packed_counts({domain: [text for _, text in rated] for domain, rated in sentences.items()}, ngrams)
    for domain, rated in sentences.items():
        arrays[f"{domain}_ratings"] = np.array([rating for rating, _ in rated])
        arrays[f"{domain}_texts"] = np.frombuffer("\n".join(text for _, text in rated).encode(), np.uint8)
    return arrays


def _members(path: Path) -> dict[str, bytes]:
    """The bytes of the four files, read in memory; nothing is written to disk."""
    with (
        reading(path, "not the expected archive", "run `msda-bench data fetch opinions`"),
        tarfile.open(path) as outer,
        tarfile.open(fileobj=outer.extractfile(_INNER)) as inner,
    ):
        return {domain: cast("IO[bytes]", inner.extractfile(name)).read() for domain, name in _MEMBERS.items()}


def _sentences(lines: bytes) -> list[tuple[float, str]]:
    """Rating and text of every line `id<tab>rating<tab>text`."""
    sentences: list[tuple[float, str]] = []
    for line in lines.splitlines():
        _, rating, text = _decoded(line).split("\t", 2)
        sentences.append((float(rating), text))
    return sentences


def _decoded(line: bytes) -> str:
    """UTF-8, or else the Western European code page of other files by the same authors."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", "replace")
