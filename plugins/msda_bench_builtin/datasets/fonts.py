"""Letters of one font, recognised from other fonts."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from msda_bench.api import Array, Count, Dataset, DomainData, Files, InputSpec, NonNegative, Size, Task, component
from msda_bench_builtin.datasets.features import Draws
from msda_bench_builtin.datasets.glyphs import LETTERS, bilinear, font_path, fonts_identity, glyphs

Share = Annotated[float, Field(ge=0, le=1)]
_FONTS = {
    "sans": "DejaVuSans.ttf",
    "serif": "DejaVuSerif.ttf",
    "mono": "DejaVuSansMono.ttf",
    "mono_bold_oblique": "DejaVuSansMono-BoldOblique.ttf",
    "stix_italic": "STIXGeneralItalic.ttf",
    "cm_typewriter": "cmtt10.ttf",
    "cm_maths": "cmmi10.ttf",
}
_CAPITAL = 0.6
"""Height of an undistorted H, as a fraction of the image's side."""
_ZOOM = 2
"""The factor by which clean letters are drawn larger than needed."""
_SIDE = 1.6
"""Side of a clean letter's square relative to an image's: no letter is wider, and no rotated corner reaches further."""


@component
class Fonts(Dataset):
    """Capital letters of one font, recognised from other fonts: grey images, each distorted in its own way.

    The paper motivates the choice of sources by recognising the letters of a font from those of others (abstract).
    The fonts are those in matplotlib, so nothing is downloaded: three upright faces of one family, a bold slanted one,
    two italics of two families, and a typewriter. Some pairs are similar and some are not.

    Parameters:
        size: side of an image, in pixels.
        per_class: images of each letter in each font.
        rotation: largest rotation, in degrees.
        shift: largest shift along each axis, as a fraction of the side.
        scale: largest change of the size's logarithm.
        aspect: largest change of the logarithm of width to height.
        blur: largest share of a blurred copy.
        fade: largest loss of contrast.
        noise: standard deviation of the noise on each pixel; ink is 1.
    """

    name = "fonts"
    version = 1
    licence = "the licences of the DejaVu, STIX and BaKoMa fonts, which matplotlib carries"
    modality = "images"
    source = "rendered from the fonts of the installed matplotlib"
    domains = tuple(_FONTS)
    task = Task("classification", len(LETTERS))

    train: Size = 1500
    size: Annotated[int, Field(ge=12, le=128)] = 20
    per_class: Count = 120
    rotation: Annotated[float, Field(ge=0, le=180)] = 12.0
    shift: Share = 0.06
    scale: NonNegative = 0.1
    aspect: NonNegative = 0.16
    blur: Share = 0.5
    fade: Share = 0.5
    noise: NonNegative = 0.12

    def sizes(self, files: Files | None = None) -> dict[str, int]:
        """Images of each font."""
        return dict.fromkeys(self.domains, len(LETTERS) * self.per_class)

    @property
    def input(self) -> InputSpec:
        """A grey image, 0 for paper and 1 for ink."""
        return InputSpec((1, self.size, self.size))

    def load(self, domain: str, files: Files) -> DomainData:
        """The font's images (n, 1, size, size) float32 in [0, 1], in the order A to Z, A to Z, ..."""
        arrays = files.derived(f"fonts {domain} {self.fingerprint()}", functools.partial(self._render, domain))
        images = arrays["images"][:, None].astype(np.float32) / 255
        return DomainData(images, np.arange(len(images)) % len(LETTERS))

    def fingerprint(self) -> str:
        """Changes with the parameters, the fonts' bytes, and the library that renders them."""
        library, *fonts = fonts_identity(_FONTS.values())
        text = json.dumps([self.name, self.version, self.identity(), fonts, library], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _render(self, domain: str) -> Mapping[str, Array]:
        from scipy.ndimage import gaussian_filter, uniform_filter

        height = _CAPITAL * _ZOOM * self.size
        side = round(_SIDE * _ZOOM * self.size)
        letters = glyphs(font_path(_FONTS[domain]), height, side)
        # Averaged over the pixels that one pixel of an image covers, so that thin strokes are not missed.
        clean = uniform_filter(letters, (0, 2, 2))
        soft = gaussian_filter(clean, (0, height / 8, height / 8))
        which = np.arange(len(LETTERS) * self.per_class) % len(LETTERS)
        draws = Draws((self.name, self.version, domain))
        return {"images": self.distorted(clean, soft, which, _ZOOM, draws)}

    def distorted(self, sharp: Array, soft: Array, which: Array, zoom: float, draws: Draws) -> Array:
        """Copies (n, size, size) uint8 of clean images, each distorted uniformly up to the parameters, either way.

        Args:
            sharp: (c, side, side) clean images in [0, 1].
            soft: (c, side, side) the same, blurred.
            which: (n,) the clean image of each copy.
            zoom: pixels of a clean image to a pixel of an undistorted copy.
            draws: the randomness.
        """
        n, size = len(which), self.size

        def either_way(purpose: str, most: float) -> Array:
            return most * (2 * draws.uniform(purpose, (n, 1, 1)) - 1)

        grid = np.arange(size) - (size - 1) / 2
        x = grid[None, None, :] - either_way("shift x", self.shift * size)
        y = grid[None, :, None] - either_way("shift y", self.shift * size)
        angle = np.deg2rad(either_way("rotation", self.rotation))
        smaller = -either_way("scale", self.scale)
        narrower = -either_way("aspect", self.aspect) / 2
        along = np.cos(angle) * x + np.sin(angle) * y
        across = np.cos(angle) * y - np.sin(angle) * x
        middle = (sharp.shape[1] - 1) / 2
        column = along * zoom * np.exp(smaller + narrower) + middle
        row = across * zoom * np.exp(smaller - narrower) + middle
        blur = self.blur * draws.uniform("blur", (n, 1, 1))
        contrast = 1 - self.fade * draws.uniform("fade", (n, 1, 1))
        clear = bilinear(sharp, which, row, column)
        blurred = bilinear(soft, which, row, column)
        image = ((1 - blur) * clear + blur * blurred) * contrast
        image = image + self.noise * draws.normal("noise", image.shape)
        # In 256 steps, so that the last bit of a machine's cosine makes no difference.
        return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
