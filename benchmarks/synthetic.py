"""Data made on the spot with the shape and the statistics of the paper's, so that no download is needed to measure."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from msda_bench.api import Count, Dataset, DomainData, Files, InputSpec, Task, component

DOMAINS = ("a", "b", "c", "d")
WORDS = 5000
WORDS_IN_A_ROW = 78
"""Mean number of different words in a review of the Amazon data."""
COLUMNS = 13
SHORT_WORDS, SHORT_REVIEW = 2000, 20


@component
class AmazonLike(Dataset):
    """Bags of words with the statistics of the Amazon reviews.

    78 different words a review on average, of log-normal length (sigma 0.74); the frequency of word j of 5000 goes
    with (j + 10) ** -0.8. So 80 reviews under dropout 0.7 touch 1200 words, and the real ones 1200, too.
    """

    name = "amazon-like"
    domains = DOMAINS
    task = Task("classification", 2)
    input = InputSpec((WORDS,), sparse=True)

    examples: Count = 2200

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - it is made, not read
        generator = _generator(domain)
        lengths = generator.lognormal(-(0.74**2) / 2, 0.74, size=(self.examples, 1))
        frequencies = (np.arange(WORDS) + 10.0) ** -0.8
        frequencies *= WORDS_IN_A_ROW / frequencies.sum()
        occurs = generator.random((self.examples, WORDS), dtype=np.float32) < lengths * frequencies
        counts = occurs * (1 + generator.poisson(0.25, size=occurs.shape))
        # The same words speak for a class in every domain.
        truth = counts @ np.random.Generator(np.random.Philox(key=99)).standard_normal(WORDS)
        return DomainData(scipy.sparse.csr_matrix(counts.astype(np.float32)), (truth > 0).astype(np.int64))


@component
class ManyDomains(Dataset):
    """Short reviews, 20 words of 2000, in many domains and a target; noise, since only time is measured."""

    name = "many-like"
    task = Task("classification", 2)
    input = InputSpec((SHORT_WORDS,), sparse=True)

    number: Count = 256
    examples: Count = 60

    @property
    def domains(self) -> tuple[str, ...]:
        return (*(f"source {place}" for place in range(self.number)), "target")

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - it is made, not read
        generator = np.random.Generator(np.random.Philox(key=self.domains.index(domain)))
        words = generator.permuted(np.tile(np.arange(SHORT_WORDS), (self.examples, 1)), axis=1)[:, :SHORT_REVIEW]
        offsets = np.arange(self.examples + 1) * SHORT_REVIEW
        counts = np.ones(words.size, dtype=np.float32)
        x = scipy.sparse.csr_matrix((counts, words.ravel(), offsets), shape=(self.examples, SHORT_WORDS))
        return DomainData(x, generator.integers(0, 2, self.examples))


@component
class DigitsLike(Dataset):
    """Images of the shape of the digits, 3x32x32 in ten classes; noise, since only time is measured."""

    name = "digits-like"
    domains = DOMAINS
    task = Task("classification", 10)
    input = InputSpec((3, 32, 32))

    examples: Count = 600

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - it is made, not read
        generator = _generator(domain)
        images = generator.random((self.examples, 3, 32, 32), dtype=np.float32)
        return DomainData(images, generator.integers(0, 10, self.examples))


@component
class TableLike(Dataset):
    """Rows of 13 numbers in two classes, as of a table of patients."""

    name = "table-like"
    domains = DOMAINS
    task = Task("classification", 2)
    input = InputSpec((COLUMNS,))

    examples: Count = 400

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - it is made, not read
        x = _generator(domain).standard_normal((self.examples, COLUMNS), dtype=np.float32)
        return DomainData(x, (x[:, 0] + x[:, 1] > 0).astype(np.int64))


def _generator(domain: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=DOMAINS.index(domain)))
