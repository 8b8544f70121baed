"""Finds a user's lists of images: a text file a domain, with lines `PATH LABEL` or `PATH LABEL GROUP`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

_SIDES = re.compile(r"(?P<domain>.+)_(?P<side>train|test)")
_LARGEST = 1 << 27
"""The maximum size of a list in bytes."""
_LINE = re.compile(r"(?P<name>.+?)\s+(?P<label>\d{1,9})(?:\s+(?P<group>\S+))?\s*")
_MOST_ABSENT = 0.5
"""A text file is no list if more than this share of its lines name no image."""


class OwnLists(NamedTuple):
    """Lists of images.

    Attributes:
        domains: their names.
        list: the name of a domain's list, with `{domain}` for the domain.
        test_list: that of its official test images, or None.
        grouped: whether each line names a group.
        labels: of all lines.
        files: how many files they are.
    """

    domains: tuple[str, ...]
    list: str
    test_list: str | None
    grouped: bool
    labels: frozenset[int]
    files: int


def own_lists(folder: Path, images: Collection[str]) -> OwnLists | None:
    """The lists of a folder, or of `txt` in it, that name its images; None unless two domains have some."""
    found = {path.stem: list(_lines(path, images)) for path in _texts(folder)}
    stems = [stem for stem, lines in found.items() if lines]
    matches = [_SIDES.fullmatch(stem) for stem in stems]
    domains = dict.fromkeys(match["domain"] for match in matches if match is not None)
    are_pairs = None not in matches and len(stems) == 2 * len(domains)
    names = tuple(domains if are_pairs else stems)
    if len(names) < len(("source", "target")):
        return None
    every = [line for lines in found.values() for line in lines]
    return OwnLists(
        domains=names,
        list="{domain}_train.txt" if are_pairs else "{domain}.txt",
        test_list="{domain}_test.txt" if are_pairs else None,
        grouped=all(group is not None for _, group in every),
        labels=frozenset(label for label, _ in every),
        files=len(stems),
    )


def _texts(folder: Path) -> list[Path]:
    """Text files that may be lists."""
    places = [*folder.glob("*.txt"), *(folder / "txt").glob("*.txt")]
    return [path for path in sorted(places) if path.is_file() and path.stat().st_size <= _LARGEST]


def _lines(path: Path, images: Collection[str]) -> Iterator[tuple[int, str | None]]:
    """The label and the group of each line; nothing if a line has another form, or most name no image."""
    try:
        lines = [line for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        return
    matches = [_LINE.fullmatch(line.strip()) for line in lines]
    absent = sum(match is None or match["name"] not in images for match in matches)
    if not matches or None in matches or absent > _MOST_ABSENT * len(matches):
        return
    for match in matches:
        if match is not None:
            yield int(match["label"]), match["group"]
