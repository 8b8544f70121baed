"""A part of a digit dataset, and digits enlarged to its side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msda_bench.api import Array, DataError, DomainData

SIDE = 32
"""The side of an image in pixels."""
CLASSES = 10


@dataclass(frozen=True, eq=False)
class Part:
    """The training or the test part of a domain: images (n, 3, 32, 32) uint8 and digits (n,) int64."""

    x: Array
    y: Array


def whole(train: Part, test: Part) -> DomainData:
    """Both parts as one domain, the test part marked."""
    official = np.arange(len(train.y) + len(test.y)) >= len(train.y)
    if train.x.strides[1] == test.x.strides[1] == 0:  # grey: the three channels keep sharing their memory
        x = colours(np.concatenate([train.x[:, 0], test.x[:, 0]]))
    else:
        x = np.concatenate([train.x, test.x])
    return DomainData(x, np.concatenate([train.y, test.y]), official)


def colours(grey: Array) -> Array:
    """Grey images (n, 32, 32) as (n, 3, 32, 32), without copying them."""
    return np.broadcast_to(grey[:, None], (len(grey), 3, *grey.shape[1:]))


def digits(labels: Array, where: object, first: int = 0, last: int = CLASSES - 1) -> Array:
    """Whole numbers (n,) from `first` to `last` as int64; a DataError names the first other one and `where` it is."""
    wrong = np.flatnonzero((labels < first) | (labels > last) | (labels != np.floor(labels)))
    if len(wrong):
        at = int(wrong[0])
        raise DataError(f"{where}: label {labels[at]:g} of image {at} is not one of {first}..{last}; replace the file")
    return labels.astype(np.int64)


_AT_ONCE = 4096


def enlarge(images: Array) -> Array:
    """Smaller images (n, side, side) as (n, 32, 32) uint8, each pixel a bilinear mean of four; Pillow's up to rounding.

    From 28 or 16 to 32 pixels all weights are sixteenths, so that float32 holds every sum exactly and every machine
    gives the same result.
    """
    side = images.shape[1]
    # The shares of the old pixels in each new one, pixels being squares and not points.
    at = np.clip((np.arange(SIDE) + 0.5) * side / SIDE - 0.5, 0, side - 1)
    weights = np.maximum(1 - abs(at[:, None] - np.arange(side)), 0).astype(np.float32)
    larger = np.empty((len(images), SIDE, SIDE), np.uint8)
    for start in range(0, len(images), _AT_ONCE):
        some = images[start : start + _AT_ONCE].astype(np.float32)
        larger[start : start + _AT_ONCE] = np.rint(weights @ some @ weights.T)
    return larger
