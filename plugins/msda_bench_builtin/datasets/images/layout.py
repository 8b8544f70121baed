"""What the folders above an image mean: its domain, its class, an official part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msda_bench.api import Row
from msda_bench_builtin.datasets.images.listing import plain

LAST_TWO = "**/DOMAIN/CLASS"
"""The layout of the last two levels, whatever is above them."""
_WORDS = {
    "DOMAIN": "(?P<domain>[^/]+)/",
    "SPLIT": "(?P<part>[^/]+)/",
    "CLASS": "(?P<label>[^/]+)/",
    "*": "[^/]+/",
    "**": "(?:[^/]+/)*",
}
_PARTS = {
    **dict.fromkeys(("train", "training", "trainval"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "crossval", "crossvalidation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
    **dict.fromkeys(("full", "all", "whole"), "full"),
}


class Placed(NamedTuple):
    """An image, and the names of the folders that say what it is."""

    row: Row
    domain: str
    label: str
    part: str = ""


def part_of(name: str) -> str:
    """The official part that a folder's name stands for: train, validation, test or full; empty if none."""
    return _PARTS.get(re.sub(r"(set|data|split|images|imgs)?\d*$", "", plain(name)), "")


def placed(rows: Iterable[Row], layout: str) -> list[Placed]:
    """The images where the layout has some; without those of a part that repeats others, such as VLCS's `full`.

    Args:
        rows: the images.
        layout: DOMAIN, CLASS, SPLIT, `*` for any folder, `**` for any number of them, or names, from the top down.
    """
    words = (_WORDS.get(word) or f"{re.escape(word)}/" for word in layout.split("/"))
    pattern = re.compile("".join(words) + "[^/]+", re.IGNORECASE)
    matches = ((row, pattern.fullmatch(row.name.removeprefix("./"))) for row in rows)
    every = [Placed(row, **match.groupdict()) for row, match in matches if match]
    parts = {(image.domain, image.part) for image in every}
    several = {domain for domain, count in Counter(domain for domain, _ in parts).items() if count > 1}
    trained = {domain for domain, part in parts if part_of(part) == "train" and plain(part) != "trainval"}
    repeats = {
        (domain, part)
        for domain, part in parts
        if (part_of(part) == "full" and domain in several) or (plain(part) == "trainval" and domain in trained)
    }
    return [image for image in every if (image.domain, image.part) not in repeats]


def layout_of(rows: Sequence[Row]) -> tuple[str, bool]:
    """The layout of a user's images, and whether nested folders may mean something else.

    A level of one name says nothing, and one of names of official parts is SPLIT. Of the others the first is DOMAIN,
    and the next whose names recur in several domains is CLASS. What is deeper than other images is below CLASS.
    """
    folders = Counter(tuple(row.name.removeprefix("./").split("/")[:-1]) for row in rows)
    for depth in sorted({len(folder) for folder in folders if len(folder) > 1}):
        below = {folder: count for folder, count in folders.items() if len(folder) >= depth}
        levels = [{folder[place] for folder in below} for place in range(depth)]
        words = ["*" if len(names) == 1 else "SPLIT" if all(map(part_of, names)) else "" for names in levels]
        domain, *others = [place for place, word in enumerate(words) if not word] or [0]
        if others and words.count("SPLIT") < 2:  # noqa: PLR2004
            pairs = {place: Counter(name for _, name in {(at[domain], at[place]) for at in below}) for place in others}
            recurring = [place for place in others if max(pairs[place].values()) > 1]
            words[domain], words[(recurring or others)[0]] = "DOMAIN", "CLASS"
            deeper = sum(count for folder, count in below.items() if len(folder) > depth)
            doubtful = words.index("CLASS") != others[0] or (len(others) > 1 and len(recurring) != 1)
            doubtful |= 2 * deeper > sum(below.values())
            return "/".join([*(word or "*" for word in words), *(["**"] if deeper else [])]), doubtful
    return LAST_TWO, False


def same(name: str) -> str:
    """A name without case and without the kind of separator; signs, and how many separators there are, remain."""
    return re.sub(r"(?<=[^ _-])-|[ _]|-(?!\.?\d)", "_", name).casefold()
