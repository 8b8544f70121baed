from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from msda_bench_builtin.datasets.digits.part import enlarge


@pytest.mark.parametrize("side", [16, 28])
def test_the_result_equals_pillows_up_to_rounding(side):
    images = np.random.default_rng(0).integers(0, 256, (5, side, side), np.uint8)
    found = enlarge(images, 32)
    assert found.shape == (5, 32, 32)
    for small, large in zip(images, found, strict=True):
        pillows = np.asarray(Image.fromarray(small).resize((32, 32), Image.Resampling.BILINEAR))
        assert abs(large.astype(int) - pillows).max() <= 1


@pytest.mark.parametrize("side", [16, 28])
def test_the_sums_are_exact_so_that_every_machine_rounds_alike(side):
    images = np.random.default_rng(1).integers(0, 256, (5, side, side), np.uint8)
    at = np.clip((np.arange(32) + 0.5) * side / 32 - 0.5, 0, side - 1)
    sixteenths = np.rint(16 * np.maximum(1 - abs(at[:, None] - np.arange(side)), 0)).astype(np.int64)
    assert (sixteenths.sum(1) == 16).all()
    exact = sixteenths @ images.astype(np.int64) @ sixteenths.T
    assert np.array_equal(enlarge(images, 32), np.rint(exact / 256).astype(np.uint8))


def test_images_processed_in_chunks_keep_their_order():
    levels = (np.arange(5000) % 251).astype(np.uint8)
    images = np.broadcast_to(levels[:, None, None], (5000, 4, 4))
    found = enlarge(images, 5)
    assert np.array_equal(found, np.broadcast_to(levels[:, None, None], (5000, 5, 5)))
