"""Tweets of six disasters: is one about the disaster?"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from msda_bench.api import (
    Array,
    DomainData,
    Extent,
    File,
    Files,
    InputSpec,
    Size,
    Task,
    TestSize,
    Url,
    component,
)
from msda_bench_builtin.datasets.unpacked import reading, zip_member
from msda_bench_builtin.datasets.words import BagOfWords, packed_counts, unpacked_counts

_COMMIT = "d67cddd51131dbb28842209014f67cffe359ff42"
_FILE = File(
    "crises/CrisisLexT6-v1.0.zip",
    "9f6c801f0c6a54ac3b268cfec31951108af67ca42d98d584d87c95cd653141ef",
    3146913,
    Url((f"https://raw.githubusercontent.com/sajao/CrisisLex/{_COMMIT}/releases/CrisisLexT6-v1.0.zip",)),
)
_FOLDERS = {
    "hurricane_sandy": ("2012_Sandy_Hurricane", 10008),
    "alberta_floods": ("2013_Alberta_Floods", 10031),
    "boston_bombings": ("2013_Boston_Bombings", 10012),
    "oklahoma_tornado": ("2013_Oklahoma_Tornado", 9992),
    "queensland_floods": ("2013_Queensland_Floods", 10033),
    "texas_explosion": ("2013_West_Texas_Explosion", 10006),
}
"""Of each domain its folder and its number of tweets."""
_LABELS = {"off-topic": 0, "on-topic": 1}
_LINKS_AND_NAMES = re.compile(r"https?:\S*|@\w+|\brt\b", re.IGNORECASE)
_COPIED = 10
"""Words by which copies are known: a retweet may be cut off after them."""


@component
class Crises(BagOfWords):
    """Tweets of six disasters of 2012 and 2013: is a tweet about the disaster (1) or not (0)?

    Half of a disaster's tweets were found by keywords, half by the place they were sent from; at least three people
    labelled each. Links, names of users and the mark of a retweet are taken out before words are counted, and the texts
    are kept nowhere. Tweets whose first ten words are then equal are copies, the groups of a split.

    Olteanu, Castillo, Diaz, Vieweg. CrisisLex: A Lexicon for Collecting and Filtering Microblogged Communications in
    Crises. ICWSM 2014.
    """

    name = "crises"
    version = 1
    licence = "MIT as published; the tweets are their authors' (see docs/datasets.md)"
    modality = "text"
    source = "Olteanu et al. 2014, CrisisLexT6 (sajao/CrisisLex on GitHub)"
    domains = tuple(_FOLDERS)
    task = Task("classification", len(_LABELS))
    files = (_FILE,)
    shared_groups = True

    train: Size = 2000
    test: TestSize = 0.25

    @property
    def input(self) -> InputSpec:
        """A bag of words."""
        return InputSpec((self.words,), sparse=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the groups are."""
        return ("crises: split by copies of a tweet: no copy of one that is tested is trained on.",)

    def sizes(self, files: Files | None = None) -> dict[str, Extent]:
        """Tweets of each disaster."""
        return {domain: size for domain, (_, size) in _FOLDERS.items()}

    def load(self, domain: str, files: Files) -> DomainData:
        """One disaster's tweets, in the file's order: CSR float32 counts of every word and word group of all six."""
        name = f"crises v{self.version} ngrams {self.ngrams} {_FILE.sha256}"
        arrays = files.derived(name, lambda: _encoded(files.path(_FILE), self.ngrams))
        counts = unpacked_counts(arrays, domain)
        return DomainData(counts, arrays[f"{domain}_labels"], groups=arrays[f"{domain}_copies"])


def without_names(text: str) -> str:
    """A tweet without links, names of users and the mark of a retweet; character references are resolved."""
    return _LINKS_AND_NAMES.sub(" ", html.unescape(text))


def _encoded(path: Path, ngrams: int) -> Mapping[str, Array]:
    """Labels, copies and counts of the six disasters."""
    tweets = {domain: _tweets(path, domain) for domain in _FOLDERS}
    arrays = packed_counts({domain: [text for text, _ in some] for domain, some in tweets.items()}, ngrams)
    numbers: dict[str, int] = {}
    for domain, some in tweets.items():
        starts = [_start(text) for text, _ in some]
        arrays[f"{domain}_copies"] = np.array([numbers.setdefault(start, len(numbers)) for start in starts])
        arrays[f"{domain}_labels"] = np.array([label for _, label in some])
    return arrays


def _start(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower())[:_COPIED])


def _tweets(path: Path, domain: str) -> list[tuple[str, int]]:
    """Text and label of every row `id, text, label` after the header.

    Raises:
        DataError: the archive is another one.
    """
    folder, _ = _FOLDERS[domain]
    member = f"CrisisLexT6/{folder}/{folder}-ontopic_offtopic.csv"
    with reading(path, "not the expected tweets", "run `msda-bench data fetch crises`"):
        with zip_member(path, member) as stream:
            content = stream.read().decode()
        rows = list(csv.reader(io.StringIO(content, newline="")))
        return [(without_names(text), _LABELS[label]) for _, text, label in rows[1:]]
