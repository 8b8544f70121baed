"""Decodes and resizes one image."""

from __future__ import annotations

import hashlib
import io
import struct
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from msda_bench.api import Array, DataError, Row

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

FORMATS = ("JPEG", "PNG", "BMP", "PPM", "TIFF", "WEBP", "GIF")
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".gif")
MEGAPIXELS = 50
"""Megapixels of the largest image that is decoded: 150 MB as RGB, 200 MB as CMYK."""
_DEEP = "16 bits a pixel or colour (kept the upper 8)"
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error)


def decode(content: bytes, side: int, short: int | None, decoder: str = "") -> tuple[Array, str | None]:  # noqa: ARG001
    """The image as RGB, resized with Pillow's antialiased bilinear filter, as torchvision's transforms do it.

    Args:
        content: the file's bytes.
        side: side in pixels of the resulting square.
        short: pixels of the image's shorter side after resizing, before the centre is cropped; None squeezes the whole
            image into the square.
        decoder: identifies the libraries, so that arrays of other libraries have another name.

    Returns:
        (3, side, side) uint8, and a few words on any conversion.

    Raises:
        DataError: a few words on why the bytes are not an image.
    """
    from PIL import Image, UnidentifiedImageError

    if not content:
        raise DataError("empty (0 bytes)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's size limit is larger than ours, and damaged EXIF is harmless
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                _check_size(image)
                colours, note = _rgb(image)
                return np.asarray(_square(colours, side, short)).transpose(2, 0, 1), note
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        bomb = isinstance(error, Image.DecompressionBombError)
        raise DataError(_too_large() if bomb else "not an image") from None
    except _DAMAGE:
        raise DataError("truncated or damaged") from None


def header_fault(row: Row) -> str | None:
    """Why an image will not be decoded, judged by its first bytes; None if they are in order."""
    from PIL import Image, UnidentifiedImageError

    if not row.size:
        return "empty (0 bytes)"
    try:
        with warnings.catch_warnings(), Path(row.path).open("rb") as stream:
            warnings.simplefilter("ignore")
            stream.seek(row.offset)
            with Image.open(stream if not row.offset else io.BytesIO(stream.read(row.size)), formats=FORMATS) as image:
                _check_size(image)
    except UnidentifiedImageError:
        return "not an image"
    except Image.DecompressionBombError:
        return _too_large()
    except DataError as error:
        return str(error)
    except _DAMAGE:
        return "truncated or damaged"
    return None


def decoder() -> str:
    """The versions of the libraries that decode images."""
    import PIL
    from PIL import features

    jpeg = features.version("libjpeg_turbo") or features.version("jpg")
    return f"Pillow {PIL.__version__}, libjpeg {jpeg}, WebP {features.version('webp')}"


def fingerprint() -> str:
    """sha256 of a photograph's pixels from `decode`, which changes only with the libraries' results."""
    import matplotlib as mpl

    path = Path(mpl.get_data_path(), "sample_data", "grace_hopper.jpg")
    try:
        pixels, _ = decode(path.read_bytes(), 64, 72)
    except OSError as error:
        raise DataError(f"{path}: matplotlib {mpl.__version__} does not have this photograph: {error}") from None
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()


def _check_size(image: Image) -> None:
    if image.width * image.height > MEGAPIXELS * 1_000_000:
        raise DataError(_too_large())


def _too_large() -> str:
    return f"larger than {MEGAPIXELS} megapixels"


def _rgb(image: ImageFile) -> tuple[Image, str | None]:
    """Colours of 8 bits, and a few words on the conversion."""
    mode = image.mode
    deep = ";16" in str(image.tile)  # Pillow itself drops the lower 8 bits of colours
    if getattr(image, "n_frames", 1) > 1:
        return image.convert("RGB"), "animated or of several pages (read the first)"
    if mode == "F":
        raise DataError("real numbers, not pixels")
    if mode.startswith("I"):
        return _from_16_bits(image), _DEEP
    if mode == "CMYK":
        return image.convert("RGB"), "CMYK (converted to RGB)"
    # Transparent images with a palette go through RGBA, since Pillow warns of the direct way.
    return (image.convert("RGBA") if "transparency" in image.info else image).convert("RGB"), _DEEP if deep else None


def _from_16_bits(image: Image) -> Image:
    from PIL import Image as Images

    values = np.asarray(image) >> 8  # Pillow's own conversion clips at 255
    return Images.fromarray(np.clip(values, 0, 255).astype(np.uint8)).convert("RGB")


def _square(image: Image, side: int, short: int | None) -> Image:
    from PIL.Image import Resampling

    if short is None:
        return image.resize((side, side), Resampling.BILINEAR)
    least = min(image.size)
    width, height = (short if length == least else max(short, int(short * length / least)) for length in image.size)
    left, top = (round((length - side) / 2) for length in (width, height))
    return image.resize((width, height), Resampling.BILINEAR).crop((left, top, left + side, top + side))
