"""Identifies a folder of images as a copy of a published set."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msda_bench.api import Row
from msda_bench_builtin.datasets.images.decode import header
from msda_bench_builtin.datasets.images.listing import Listed, listed, plain

Counts = Mapping[str, Mapping[str, int]]

FIRST_SIDE = 224
"""Pixels in a first suite, the input size of most pretrained networks."""
_SUITE = """\
# A first look at your own images: features of a network trained on ImageNet, under a small head of layers that learn.
# Change what you like (docs/images.md); `msda-bench run --fetch` downloads the network's weights once, 45 MB.
targets: all
seeds: 3
backbone: {{torchvision: {{model: resnet18, weights: IMAGENET1K_V1, trainable: head, hidden: [256], dropout: 0.5}}}}
training: {{epochs: 8, batch: 32, optimizer: {{adam: {{lr: 0.001}}}}}}
methods:
  SRC:  {{scheme: pooled}}
  DANN: {{scheme: pooled, discrepancy: d_A, mu: 0.01}}
{weighed}  TAR:  {{scheme: target_only, reference: true}}
"""
_WEIGHED = "  DARN: {discrepancy: d_A, mu: 0.01, aggregator: {sharpmax: {gamma: 1.0}}}\n"
"""A method that weighs sources; it needs two for each target."""


def first_suite(counts: Counts) -> str:
    """What a first suite of these domains of images needs below its `dataset`."""
    return _SUITE.format(weighed=_WEIGHED if len(counts) > len(("source", "target")) else "")


def what_is_missing(counts: Counts, published: Mapping[str, int], classes: int | None) -> Iterator[str]:
    """A line for each domain that differs from the published one, and for each without images of a class."""
    every = {name for of_class in counts.values() for name in of_class}
    here = {plain(domain): of_class for domain, of_class in counts.items()}
    for domain, expected in published.items():
        number = sum(here.get(plain(domain), {}).values())
        if not number:
            yield f"missing: domain {domain}, {expected} images"
        elif number != expected:
            yield f"differs: domain {domain} has {number} images, published are {expected}"
    if classes is not None and len(every) != classes:
        yield f"differs: {len(every)} classes, published are {classes}"
    for domain, of_class in counts.items():
        if missing := every - set(of_class):
            yield f"missing: domain {domain} has no images of classes {listed(missing)}"


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
