"""Random crops and colours agree with torchvision for equal draws; each image has its own, and tests have none."""

import pytest
import torch

from msda_bench_builtin.backbones.headless import torchvision
from msda_bench_builtin.datasets.images.augment import Recipe, box, centre, changed, coloured, cropped, luma

KEY = torch.tensor([3, -4], dtype=torch.int32)
ALL = Recipe((0.5, 1.0), flip=True, jitter=0.4, grey=0.2, erase=0.5)


def pictures(count, height=40, width=40):
    torch.manual_seed(1)
    coarse = torch.rand(count, 3, 5, 5)
    return torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 1)


@pytest.mark.parametrize("scale", [None, (0.3, 0.9)])
def test_crops_and_flips_equal_torchvisions(scale):
    v2, x, size = torchvision("transforms.v2.functional"), pictures(6, 48, 40), 24
    boxes = box(torch.rand(6, 4), (48, 40), size, scale).round()
    mirrored = torch.tensor([True, False] * 3)
    found = cropped(x, boxes, mirrored, size)
    for image, (left, top, width, height), flip, ours in zip(x, boxes.int().tolist(), mirrored, found, strict=True):
        cut = v2.resized_crop(image, top, left, height, width, [size, size], antialias=False)
        torch.testing.assert_close(ours, v2.horizontal_flip(cut) if flip else cut, atol=1e-5, rtol=0)


def test_colours_equal_torchvisions():
    v2, x = torchvision("transforms.v2.functional"), pictures(4)
    factors = torch.tensor([[0.6, 1.4, 0.7], [1.4, 0.6, 1.4], [1.0, 1.0, 1.0], [1.2, 0.8, 0.0]])
    for image, (brightness, contrast, saturation), ours in zip(x, factors.tolist(), coloured(x, factors), strict=True):
        expected = v2.adjust_contrast(v2.adjust_brightness(image, brightness), contrast)
        torch.testing.assert_close(ours, v2.adjust_saturation(expected, saturation), atol=2e-6, rtol=0)
    torch.testing.assert_close(luma(x), v2.rgb_to_grayscale(x), atol=1e-6, rtol=0)
    torch.testing.assert_close(centre(pictures(2, 41, 38), 20), v2.center_crop(pictures(2, 41, 38), [20, 20]))


def test_every_image_has_its_own_independent_draws():
    x = pictures(1).expand(64, -1, -1, -1)
    found = changed(x, KEY, 32, ALL)
    assert len({image.numpy().tobytes() for image in found}) == 64
    torch.testing.assert_close(found[:5], changed(x[:5], KEY, 32, ALL))
    keys = torch.stack([KEY, KEY + 1])
    stacked = torch.vmap(lambda batch, key: changed(batch, key, 32, ALL), randomness="error")(torch.stack([x, x]), keys)
    for one, key in zip(stacked, keys, strict=True):
        torch.testing.assert_close(one, changed(x, key, 32, ALL))
    assert 0 <= float(found.min()) <= float(found.max()) <= 1


def test_drawn_shares_match_their_parameters():
    x = pictures(1).expand(2000, -1, -1, -1)
    grey = (changed(x, KEY, 40, Recipe(grey=0.2)).std(1).amax((1, 2)) < 1e-6).float().mean()
    mirrored = (changed(x, KEY, 40, Recipe(flip=True)) - x).abs().amax((1, 2, 3)) > 1e-3
    erased = (changed(x, KEY, 40, Recipe(erase=0.5)) != x).float().mean((1, 2, 3))
    assert abs(float(grey) - 0.2) < 0.04
    assert abs(float(mirrored.float().mean()) - 0.5) < 0.05
    assert abs(float((erased > 0).float().mean()) - 0.5) < 0.05
    assert float(erased.max()) < 0.25
    boxes = box(torch.rand(2000, 4), (40, 40), 32, (0.4, 0.6))
    area = boxes[:, 2] * boxes[:, 3] / 1600
    assert 0.39 < float(area.min()) < float(area.max()) < 0.61
    assert bool((boxes[:, :2] >= 0).all() & (boxes[:, :2] + boxes[:, 2:] <= 40.001).all())
