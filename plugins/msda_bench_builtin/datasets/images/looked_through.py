"""Looks through a user's folders and lists of images before a first suite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import ValidationError

from msda_bench.api import DataError, Identified, Row
from msda_bench_builtin.datasets.first_suite import about_targets
from msda_bench_builtin.datasets.images.dataset import Images, first_suite, what_is_missing
from msda_bench_builtin.datasets.images.decode import header
from msda_bench_builtin.datasets.images.keys import key_in
from msda_bench_builtin.datasets.images.listing import Listed, names_text, plain_name
from msda_bench_builtin.datasets.images.looks import PATTERN, deep_line, sequences_in
from msda_bench_builtin.datasets.sizes import Imbalance, few_examples

_Own = TypeVar("_Own", bound=Images)
IMAGE_OPTIONS = {"group", "test", "unlabelled"}
"""The options of `data identify` that images may have; the first two are regular expressions of paths."""
_FIRST_SIDE = 224
"""Pixels in a first suite, the input size of most pretrained networks."""
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


class Looked(NamedTuple):
    """Images that were looked at.

    Attributes:
        rows: all of them.
        counts: by domain, of each class.
        lines: on bad files, merged folders, 16 bits a pixel and turned images.
        params: `upright`, if an image is turned.
        read: how many of the files they are, and what the others are.
    """

    rows: list[Row]
    counts: dict[str, dict[str, int]]
    lines: list[str]
    params: dict[str, Any]
    read: str


def folder_params(path: Path, sha256: str) -> dict[str, Any]:
    """The parameters that name a folder."""
    return {"folder": path.name, "sha256": sha256, "side": _FIRST_SIDE}


def with_patterns(data: _Own, options: Mapping[str, str]) -> _Own:
    """The dataset with the regular expressions that the user gives; a DataError for one that is none."""
    given: dict[str, Any] = {}
    if "group" in options:
        given["groups"] = options["group"]
    if "test" in options:
        given["test_images"] = options["test"]
    try:
        return replace(data, **given)
    except ValidationError as error:
        first = error.errors()[0]
        option = "group" if first["loc"][0] == "groups" else "test"
        raise DataError(f"--{option} {first['msg'].removeprefix('Value error, ')}") from None


def looked_at(tree: Tree, files: Listed) -> Looked:
    """Counts images, and reads the first bytes of each."""
    rows: list[Row] = []
    counts: dict[str, dict[str, int]] = {}
    for domain, by_class in tree.items():
        rows += [image.row for image in _images(by_class)]
        counts[domain] = {label: len(images) for label, images in by_class.items()}
    lines, turned = _headers(rows)
    lines += [f"odd: {line}" for line in merged(tree)]
    deep = deep_line(rows)
    if deep is not None:
        lines.append(deep)
    params: dict[str, Any] = {}
    if turned:
        lines.append(f"turned: {turned} images, as their EXIF orientation says (`upright`)")
        params["upright"] = True
    return Looked(rows, counts, lines, params, _how_much(files, rows))


def _images(by_class: Mapping[str, Sequence[Placed]]) -> list[Placed]:
    """The images of a domain."""
    every: list[Placed] = []
    for images in by_class.values():
        every += images
    return every


def identified(
    data: Images,
    what: str,
    tree: Tree,
    files: Listed,
    params: Mapping[str, Any],
    classes: Sequence[str],
    doubts: Sequence[str] = (),
    layout: str = "**",
) -> Identified:
    """What `data identify` reports on a user's own images, and their first suite.

    Args:
        data: the dataset that reads them.
        what: what they are, after their number.
        tree: the images.
        files: all files that are there.
        params: the parameters of the dataset so far.
        classes: the names of the classes in their order.
        doubts: why they may mean something else.
        layout: what the folders are.

    Raises:
        DataError: the user's groups or official tests do not fit the images.
    """
    looked = looked_at(tree, files)
    roles, about_roles = _roles(data, tree, layout)
    imbalance = Imbalance.of(looked.counts, classes)
    lines = [*what_is_missing(looked.counts, {}, None), *looked.lines, *about_roles, *few_examples(looked.counts)]
    if imbalance is not None:
        lines.append(imbalance.line)
    lines += about_targets([*looked.counts])
    params = {**params, **looked.params, **_train(tree), **roles}
    suite = first_suite(looked.counts, imbalance)
    return Identified(f"{len(looked.rows)} {what}", looked.counts, lines, params, suite, doubts, looked.read)


def part_of(name: str) -> str:
    """The official part that a folder's name stands for: train, validation, test or full; empty if none."""
    return _PARTS.get(re.sub(r"(set|data|split|images|imgs)?\d*$", "", plain_name(name)), "")


def merged(tree: Tree) -> Iterator[str]:
    """A line for domains, and one for classes, that have folders of several names."""
    domains: dict[tuple[str, str], str] = {}
    classes: dict[tuple[str, str], str] = {}
    for domain, by_class in tree.items():
        for label, images in by_class.items():
            for image in images:
                domains.setdefault((domain, image.domain), image.domain)
                classes.setdefault((label, image.label), f"{image.domain}/{image.label}")
    for kind, folders in (("domain", domains), ("class", classes)):
        spelt = Counter(name for name, _ in folders)
        several = [folder for (name, _), folder in folders.items() if spelt[name] > 1]
        if several:
            yield f"{kind} folders whose names mean the same are merged, {names_text(several)}"


def parts_in(tree: Tree) -> dict[str, Counter[str]]:
    """How many images of each domain are for the test, and how many are not."""
    counts: dict[str, Counter[str]] = {}
    for name, by_class in tree.items():
        counts[name] = Counter("test" if _is_test(image) else "train" for image in _images(by_class))
    return counts


def _is_test(image: Placed) -> bool:
    return part_of(image.part) == "test"


def _roles(data: Images, tree: Tree, layout: str) -> tuple[dict[str, Any], list[str]]:
    """The parameters that say which images belong together and which are the official test, and a line on each."""
    tests = {name: count["test"] for name, count in parts_in(tree).items()}
    params: dict[str, Any] = {}
    if data.testing is not None:
        params["test_images"] = data.testing
        if not any(tests.values()):
            raise DataError(f"{data.name}: `test_images` ({data.testing}) matches no path of an image; correct it")
    groups, lines = _groups(data, tree, layout)
    if groups is not None:
        params["groups"] = groups
        params["stratify"] = "shares"
    return params, [*_official(tests), *lines]


def _groups(data: Images, tree: Tree, layout: str) -> tuple[str | None, list[str]]:
    """The parameter that says which images belong together, and a line on it."""
    if data.has_groups:
        line = "groups: the third word of each line says which images belong together (`groups: column`)"
        return "column", [line]
    if data.grouping is not None:
        parted = _parted(data, tree, data.grouping)
        if parted:
            what = f"{parted} groups have official test images and others"
            raise DataError(f"{data.name}: {what}; correct --group ({data.grouping}), or leave it out")
        return data.grouping, []
    pattern, line = _proposed(tree, layout)
    parted = 0 if pattern is None else _parted(data, tree, pattern)
    if parted:
        what = line.partition(": ")[2].partition(", so ")[0]
        return None, [f"leak: {what}; {parted} of them have official test images and others"]
    return pattern, [line] if line else []


def _parted(data: Images, tree: Tree, pattern: str) -> int:
    """How many groups by this pattern have official test images and others."""
    parted = 0
    for name, by_class in tree.items():
        images = _images(by_class)
        groups = data.grouped_by(pattern, name, [image.row.name for image in images])
        official = np.array([_is_test(image) for image in images])
        parted += len(np.intersect1d(groups[official], groups[~official]))
    return parted


def _official(tests: Mapping[str, int]) -> list[str]:
    """A line on official test images, if there are any."""
    if not any(tests.values()):
        return []
    some = [f"{name} {count}" for name, count in tests.items() if count]
    line = f"official test: {', '.join(some)}"
    none = [name for name, count in tests.items() if not count]
    if none:
        line += f"; none in {names_text(none)}, where each run draws its own"
    return [line]


def _proposed(tree: Tree, layout: str) -> tuple[str | None, str]:
    """A regular expression that images of one group share, and a line on it; None and an empty line if none is found.

    Sequences whose frames differ have a line without an expression.
    """
    rows: list[Row] = []
    names: dict[str, list[str]] = {}
    for domain, by_class in tree.items():
        mine = [image.row for image in _images(by_class)]
        names[domain] = [row.name.removeprefix("./") for row in mine]
        rows += mine
    words = layout.split("/")
    free: list[int] = []
    if words[0] != "**":
        free = [place for place, word in enumerate(words) if word in {"*", "**"}]
    key = key_in(names, free)
    if key is not None:
        what = f"{key.groups} names such as {key.example}, each in several images: images that belong together"
        how = f"so the suite has `groups: {key.pattern}`; --group PATTERN says otherwise"
        more = "; equal names in two domains count as two" if key.recurs else ""
        return key.pattern, f"key: {what}, {how}{more}"
    sequences = sequences_in(rows, layout)
    if sequences is None:
        return None, ""
    return f"(?i){PATTERN}" if sequences.alike else None, sequences.line


def _train(tree: Tree) -> dict[str, int]:
    """The size of training parts, if some images are official test images."""
    counts = parts_in(tree).values()
    if not any(count["test"] for count in counts):
        return {}
    least = 1000
    for count in counts:
        size = count["train"] if count["test"] else count["train"] // 2
        least = min(least, size)
    return {"train": max(1, least)}


def _headers(rows: Sequence[Row]) -> tuple[list[str], int]:
    """A line for each kind of fault that the first bytes show, and how many images their EXIF orientation turns."""
    faults: dict[str, list[str]] = {}
    turned = 0
    for row in rows:
        fault, turns = header(row, _FIRST_SIDE)
        turned += turns
        if fault:
            faults.setdefault(fault, []).append(row.name)
    return [f"bad: {fault}, {names_text(names)}" for fault, names in sorted(faults.items())], turned


def _how_much(files: Listed, read: Collection[Row]) -> str:
    """`read 20 of 26 files`, and what was not."""
    names = {row.name for row in read}
    elsewhere = [row.name for row in files.images if row.name not in names]
    left = files.endings()
    if elsewhere:
        left.append(f"{len(elsewhere)} images in other folders, such as {elsewhere[0]}")
    line = f"read {len(names)} of {len(files.images) + files.others.total()} files"
    if not left:
        return line
    remedy = "; convert those that are images to .png or .jpg" if files.others else ""
    return f"{line}; not read: {', '.join(left)}{remedy}"
