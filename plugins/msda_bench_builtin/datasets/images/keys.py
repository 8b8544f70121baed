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
    of_levels = [rf"^(?:[^/]+/){{{level}}}([^/]+)/" for level in levels]
    for pattern in (*PATTERNS, *of_levels):
        key = _key(pattern, names)
        if key is not None:
            return _simplified(key, names)
    return None


def _simplified(key: Key, names: Mapping[str, Sequence[str]]) -> Key:
    r"""The key with a pattern of its own word, such as `(patient\d+)`, if that finds the same groups."""
    word = re.escape(key.example.rstrip("0123456789"))
    if not word or key.pattern not in PATTERNS:
        return key
    groups = _groups(key.pattern, names)
    for pattern in (rf"({word}\d+)", rf"(?:^|[/_. -])({word}\d+)"):
        if _groups(pattern, names) == groups:
            return key._replace(pattern=pattern)
    return key


def _groups(pattern: str, names: Mapping[str, Sequence[str]]) -> list[str | None]:
    """The text that a pattern's group matches in each path."""
    expression = re.compile(pattern)
    groups = []
    for paths in names.values():
        for path in paths:
            match = expression.search(path)
            groups.append(None if match is None else match[1])
    return groups


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
