"""Recognises which images belong together by their paths, such as those of one patient or slide."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_PATIENTS = "patients?|pat|pt|subjects?|subj|sub|persons?|participants?|donors?|volunteers?|animals?|mouse|mice|users?"
_CASES = "cases?|mrn|pid|id"
_SLIDES = "slides?|wsi|specimens?|biopsy|biopsies|scans?|plates?|videos?|recordings?|ses|sessions?|clips?|trials?"
PATTERNS = (
    *(rf"(?i)(?:^|[/_. -])((?:{words})[_ -]?\d+)(?![^/_. -])" for words in (_PATIENTS, _CASES)),
    r"(TCGA-\w\w-\w{4})",
    r"(?i)(?:^|/)([ps]\d+)[_ -][^/]+$",
    rf"(?i)(?:^|[/_. -])((?:{_SLIDES})[_ -]?\d+)(?![^/_. -])",
)
"""Names of what may have several images, the coarsest first; a letter counts at the beginning of a file's name."""
_LEVEL = re.compile(rf"(?i)(?:{_PATIENTS}|{_CASES}|{_SLIDES})[_ -]?\d+|TCGA-\w\w-\w{{4}}.*")
_FEWEST = 4
"""The fewest groups of a domain."""
_TWICE = 1.5
"""The fewest images of a group, on average."""


class Key(NamedTuple):
    """A regular expression whose group is the same in the paths of images that belong together.

    Attributes:
        pattern: the regular expression.
        example: what it matches in one path.
        groups: how many groups all domains have together.
        recurs: whether a name occurs in several domains.
    """

    pattern: str
    example: str
    groups: int
    recurs: bool


def are_keys(names: set[str]) -> bool:
    """Whether folders are called as patients, cases or slides are."""
    return all(map(_LEVEL.fullmatch, names))


def key_in(names: Mapping[str, Sequence[str]], levels: Sequence[int]) -> Key | None:
    """The coarsest key in the paths of images by domain; `levels` are the folders that say nothing else, from 0."""
    patterns = [*PATTERNS, *(rf"^(?:[^/]+/){{{level}}}([^/]+)/" for level in levels)]
    key = next((key for pattern in patterns if (key := _key(pattern, names)) is not None), None)
    if key is None:
        return None
    word = re.escape(key.example.rstrip("0123456789"))
    plain = [rf"({word}\d+)", rf"(?:^|[/_. -])({word}\d+)"] if word and key.pattern in PATTERNS else []
    same = (pattern for pattern in plain if _groups(pattern, names) == _groups(key.pattern, names))
    return key._replace(pattern=next(same, key.pattern))


def _groups(pattern: str, names: Mapping[str, Sequence[str]]) -> list[str | None]:
    """What a pattern matches in each path."""
    search = re.compile(pattern).search
    return [match[1] if (match := search(path)) else None for paths in names.values() for path in paths]


def _key(pattern: str, names: Mapping[str, Sequence[str]]) -> Key | None:
    """The key if every image has it, and every domain several groups of several images."""
    found: dict[str, set[str]] = {}
    for domain, paths in names.items():
        groups = _groups(pattern, {domain: paths})
        known = {group for group in groups if group is not None}
        if None in groups or len(known) < _FEWEST or len(paths) < _TWICE * len(known):
            return None
        found[domain] = known
    every = set[str]().union(*found.values())
    count = sum(map(len, found.values()))
    return Key(pattern, min(every), count, len(every) < count)
