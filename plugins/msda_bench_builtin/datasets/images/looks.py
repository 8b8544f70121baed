"""Looks at a few images of a user's folder before its first suite: frames of one sequence, and 16 bits a pixel."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from msda_bench.api import Array, DataError, Row
from msda_bench_builtin.datasets.images.decode import LARGEST, decode, deep_range
from msda_bench_builtin.datasets.images.listing import content_of

PATTERN = r"^(.+?)[ _.-]*(?:frame|img|image|slice|view|f|z|t)?[ _.-]*\d+\.\w+$"
"""What the paths of frames of one sequence have in common: all before their last number."""
_NUMBERED = re.compile(PATTERN, re.IGNORECASE)
_SIDE = 16
_MOST_SEQUENCES, _MOST_FRAMES = 30, 3
_MOST_DEEP = 30
_ALIKE = 0.5
"""Frames of a sequence differ by less than so much of what images of the same folder do."""
_DARK = 1 << 14
"""A quarter of the range of 16 bits: of darker images the upper 8 bits show little."""


class Sequences(NamedTuple):
    """Images that are called as frames of sequences are.

    Attributes:
        line: what to say of them.
        alike: whether frames of one are nearly equal, so that they belong together.
    """

    line: str
    alike: bool


def sequences_in(rows: Sequence[Row], layout: str) -> Sequences | None:
    """Whether the names of images are a name and a number, several numbers to a name, and these are nearly equal.

    The name may be that of a folder below the class.
    """
    words = layout.split("/")
    depth = None if words[0] == "**" else words.index("CLASS") + 1
    frames: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        match = _NUMBERED.match(row.name)
        if match is not None:
            frames[match[1]].append(row)
    several = {name: some for name, some in frames.items() if len(some) > 1 and not _is_class(name, depth)}
    folders: dict[str, list[str]] = defaultdict(list)
    for name in several:
        folders[str(PurePosixPath(name).parent)].append(name)
    many = {folder: names for folder, names in folders.items() if len(names) > 2}  # noqa: PLR2004 - not a class alone
    sequences = [several[name] for names in many.values() for name in names]
    images = sum(len(sequence) for sequence in sequences)
    if 2 * images <= len(rows):
        return None
    first, second = sequences[0][:2]
    called = f"{images} images are called as frames of {len(sequences)} sequences are"
    what = f"{called}, such as {first.name} and {second.name}"
    if _nearly_equal(several, many):
        line = f"sequences: {what}, and those of one are nearly equal, so `groups` keeps them together"
        return Sequences(line, alike=True)
    remedy = "if those of one belong together (a patient, a slide, a recording), --group PATTERN keeps them together"
    return Sequences(f"sequences: {what}; {remedy}", alike=False)


def _is_class(name: str, depth: int | None) -> bool:
    """Whether what comes before the number is only the folder of a class."""
    return name.endswith("/") and (depth is None or name.removeprefix("./").count("/") <= depth)


def _nearly_equal(frames: Mapping[str, Sequence[Row]], folders: Mapping[str, Sequence[str]]) -> bool:
    """Whether images of one name differ less than those of several names in their folder do."""
    draw = random.Random(0)  # noqa: S311 - a choice that anyone can repeat
    within: list[float] = []
    between: list[float] = []
    every = sorted(folders)
    for folder in draw.sample(every, min(len(every), _MOST_SEQUENCES // 3)):
        before: Array | None = None
        for name in draw.sample(sorted(folders[folder]), 3):
            seen = list(_seen(frames[name][:_MOST_FRAMES]))
            if not seen:
                continue
            within += [_distance(one, other) for one, other in pairwise(seen)]
            if before is not None:
                between.append(_distance(seen[0], before))
            before = seen[0]
    if not within or not between:
        return False
    return float(np.median(within)) < _ALIKE * float(np.median(between))


def _seen(rows: Iterable[Row]) -> Iterator[Array]:
    """Images as a few numbers; unreadable ones are skipped, since `headers` reports them."""
    for row in rows:
        try:
            yield decode(content_of(row, LARGEST), _SIDE, None)[0].astype(float)
        except (DataError, OSError):
            continue


def _distance(one: Array, other: Array) -> float:
    return float(np.abs(one - other).mean())


def deep_line(rows: Sequence[Row]) -> str | None:
    """A line on images of 16 bits a pixel that use a small part of their range; a few of them are read."""
    draw = random.Random(0)  # noqa: S311 - a choice that anyone can repeat
    some = draw.sample(list(rows), min(len(rows), _MOST_DEEP))
    ranges = []
    for row in some:
        values = deep_range(content_of(row, LARGEST))
        if values is not None:
            ranges.append(values)
    if not ranges:
        return None
    least = min(low for low, _ in ranges)
    most = max(high for _, high in ranges)
    if most >= _DARK:
        return None
    what = f"{len(ranges)} of {len(some)} images looked at have 16 bits a pixel, but values of {least} to {most}"
    kept = f"of which the upper 8 bits, {least >> 8} to {most >> 8}, are kept and look dark"
    return f"16 bits: {what}, {kept}; scale the images to 0 .. 255 and save them with 8 bits"
