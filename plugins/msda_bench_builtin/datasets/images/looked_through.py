"""What user's folders and lists of images have in common when they are looked through before a first suite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from msda_bench.api import DataError, Row
from msda_bench_builtin.datasets.images.dataset import FIRST_SIDE, Images
from msda_bench_builtin.datasets.images.decode import header
from msda_bench_builtin.datasets.images.keys import key_in
from msda_bench_builtin.datasets.images.listing import Listed, listed, plain
from msda_bench_builtin.datasets.images.looks import PATTERN, sequences_in

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


Tree = dict[str, dict[str, list[Placed]]]
"""Images by domain and class."""


def part_of(name: str) -> str:
    """The official part that a folder's name stands for: train, validation, test or full; empty if none."""
    return _PARTS.get(re.sub(r"(set|data|split|images|imgs)?\d*$", "", plain(name)), "")


def roles_in(data: Images, tree: Tree, layout: str) -> tuple[dict[str, Any], list[str]]:
    """The parameters that say which images belong together and which are the official test, and a line on each.

    Raises:
        DataError: what the user says of them does not fit the images.
    """
    tests = {name: of["test"] for name, of in parts_in(tree).items()}
    params: dict[str, Any] = {}
    if data.testing is not None:
        params["test_images"] = data.testing
        if not any(tests.values()):
            raise DataError(f"{data.name}: `test_images` ({data.testing}) matches no path of an image; correct it")
    lines = _official(tests)
    pattern, line = (data.grouping, "") if data.grouping is not None else _proposed(tree, layout)
    parted = 0 if pattern is None else _parted(data, tree, pattern)
    if parted and data.grouping is not None:
        what = f"{parted} groups have official test images and others"
        raise DataError(f"{data.name}: {what}; correct --group ({pattern}), or leave it out")
    if parted:
        pattern = None
        what = line.partition(": ")[2].partition(", so ")[0]
        line = f"leak: {what}; {parted} of them have official test images and others"
    lines += [line] if line else []
    return params if pattern is None else params | {"groups": pattern, "stratify": "shares"}, lines


def _parted(data: Images, tree: Tree, pattern: str) -> int:
    """How many groups by this pattern have official test images and others."""
    parted = 0
    for name, of in tree.items():
        images = [image for some in of.values() for image in some]
        groups = data.grouped_by(pattern, name, [image.row.name for image in images])
        official = np.array([part_of(image.part) == "test" for image in images])
        parted += len(np.intersect1d(groups[official], groups[~official]))
    return parted


def _official(tests: Mapping[str, int]) -> list[str]:
    """A line on official test images, if there are any."""
    if not any(tests.values()):
        return []
    some = ", ".join(f"{name} {count}" for name, count in tests.items() if count)
    none = [name for name, count in tests.items() if not count]
    more = f"; none in {listed(none)}, where each run draws its own" if none else ""
    return [f"official test: {some}{more}"]


def _proposed(tree: Tree, layout: str) -> tuple[str | None, str]:
    """A regular expression of what images that belong together have in common, and a line on it; empty if none."""
    rows = [image.row for of in tree.values() for images in of.values() for image in images]
    names = {
        name: [image.row.name.removeprefix("./") for images in of.values() for image in images]
        for name, of in tree.items()
    }
    words = layout.split("/")
    free = [place for place, word in enumerate(words) if word in {"*", "**"}] if words[0] != "**" else []
    if key := key_in(names, free):
        what = f"{key.groups} names such as {key.example}, each in several images: images that belong together"
        more = "; equal names in two domains count as two" if key.recurs else ""
        return (
            key.pattern,
            f"key: {what}, so the suite has `groups: {key.pattern}`; --group PATTERN says otherwise{more}",
        )
    if sequences := sequences_in(rows, layout):
        return f"(?i){PATTERN}" if sequences.alike else None, sequences.line
    return None, ""


def train_of(tree: Tree) -> dict[str, int]:
    """The size of training parts, if some are official."""
    sizes = [count["train"] if count["test"] else count["train"] // 2 for count in parts_in(tree).values()]
    return {"train": max(1, min(1000, *sizes))} if any(count["test"] for count in parts_in(tree).values()) else {}


def parts_in(tree: Tree) -> dict[str, Counter[str]]:
    """Images for the test, and others, in each domain."""
    parts = {name: [part_of(image.part) for some in of.values() for image in some] for name, of in tree.items()}
    return {name: Counter("test" if part == "test" else "train" for part in of) for name, of in parts.items()}


def headers(rows: Sequence[Row]) -> tuple[list[str], int]:
    """A line for each kind of fault that the first bytes show, and how many images their EXIF orientation turns."""
    faults: dict[str, list[str]] = {}
    turned = 0
    for row in rows:
        fault, turns = header(row, FIRST_SIDE)
        turned += turns
        if fault:
            faults.setdefault(fault, []).append(row.name)
    return [f"bad: {fault}, {listed(names)}" for fault, names in sorted(faults.items())], turned


def how_much(files: Listed, read: Collection[Row]) -> str:
    """`read 20 of 26 files`, and what was not."""
    names = {row.name for row in read}
    elsewhere = [row.name for row in files.images if row.name not in names]
    left = [f"{count} {ending}" for ending, count in sorted(files.others.items())]
    left += [f"{len(elsewhere)} images in other folders, such as {elsewhere[0]}"] if elsewhere else []
    remedy = "; convert those that are images to .png or .jpg" if files.others else ""
    total = len(files.images) + files.others.total()
    return f"read {len(names)} of {total} files" + (f"; not read: {', '.join(left)}{remedy}" if left else "")
