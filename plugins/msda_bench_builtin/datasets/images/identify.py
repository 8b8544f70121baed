"""Identifies a folder of images as a copy of a published set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msda_bench.api import Row
from msda_bench_builtin.datasets.images.decode import header_fault
from msda_bench_builtin.datasets.images.listing import folders_that_differ_in_case, listed, plain

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
_PARTS = frozenset(("dev", "eval", "test", "testing", "train", "training", "val", "valid", "validation"))
_WEIGHED = "  DARN: {discrepancy: d_A, mu: 0.01, aggregator: {sharpmax: {gamma: 1.0}}}\n"
"""A method that weighs sources; it needs two for each target."""


def first_suite(counts: Counts) -> str:
    """What a first suite of these domains of images needs below its `dataset`."""
    return _SUITE.format(weighed=_WEIGHED if len(counts) > len(("source", "target")) else "")


def spelt(rows: Sequence[Row], depth: int) -> str:
    """The spelling of the folder at this depth from the file in most images."""
    names = [PurePosixPath(row.name).parts[-depth] for row in rows]
    return max(sorted(set(names)), key=names.count)


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


def what_is_odd(domains: Iterable[str], rows: Sequence[Row]) -> Iterator[str]:
    """A line for each kind of file whose header shows that it cannot be decoded, and for names that are unlikely."""
    faults: dict[str, list[str]] = {}
    for row in rows:
        if fault := header_fault(row, FIRST_SIDE):
            faults.setdefault(fault, []).append(row.name)
    for fault, names in sorted(faults.items()):
        yield f"bad: {fault}, {listed(names)}"
    if _PARTS.issuperset(map(plain, domains)):
        named = listed(domains)
        yield f"odd: domains are named as parts of one domain are, {named}; give each domain a folder of its own"
    if odd := folders_that_differ_in_case(rows):
        yield f"odd: class folders that differ only in case are merged, {listed(odd)}"
