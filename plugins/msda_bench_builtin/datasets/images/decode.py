"""Decodes and resizes one image."""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from msda_bench.api import Array, DataError, Row

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose
    from PIL.ImageFile import ImageFile

FORMATS = ("JPEG", "PNG", "BMP", "PPM", "TIFF", "WEBP", "GIF")
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".gif")
MEGAPIXELS = 50
"""Megapixels of the largest image that is decoded, also while it is resized; Pillow holds each pixel in 4 bytes."""
LARGEST = 1 << 28
"""Bytes of the largest file that is read."""
_TOO_LARGE = f"larger than {MEGAPIXELS} megapixels"
_DEEP = "16 bits a pixel or colour (kept the upper 8)"
_NOT_TURNED = "not turned by its EXIF orientation (`upright: true` does that)"


def decode(
    content: bytes,
    side: int,
    short: int | None,
    decoder: str = "",  # noqa: ARG001
    *,
    upright: bool = False,
) -> tuple[Array, str | None]:
    """The image as RGB, resized with Pillow's antialiased bilinear filter, as torchvision's transforms do it.

    Args:
        content: the file's bytes.
        side: side in pixels of the resulting square.
        short: pixels of the image's shorter side after resizing, before the centre is cropped; None squeezes the whole
            image into the square.
        decoder: identifies the libraries, so that arrays of other libraries have another name.
        upright: whether to turn the image as its EXIF orientation says.

    Returns:
        (3, side, side) uint8, and a few words on any conversion.

    Raises:
        DataError: a few words on why the bytes are not an image.
    """
    if not content:
        raise DataError("empty (0 bytes)")
    with _opened(io.BytesIO(content)) as image:
        _check_size(image, side, short)
        colours, note = _rgb(image)
        turn = _turn(image)
        if turn is not None and upright:
            colours = colours.transpose(turn)
        elif turn is not None:
            note = _NOT_TURNED if note is None else f"{note}; {_NOT_TURNED}"
        size = _check_size(colours, side, short)
        pixels = np.asarray(_square(colours, side, size))
        return pixels.transpose(2, 0, 1), note


def header(row: Row, side: int) -> tuple[str | None, bool]:
    """Why an image cannot be decoded to a square of this side, by its first bytes, and whether EXIF turns it."""
    if not row.size:
        return "empty (0 bytes)", False
    if row.size > LARGEST:
        return f"larger than {LARGEST >> 20} MiB", False
    try:
        with Path(row.path).open("rb") as stream:
            stream.seek(row.offset)
            # Pillow seeks from the start of a stream, so an image within an archive gets one of its own.
            source = io.BytesIO(stream.read(row.size)) if row.offset else stream
            with _opened(source) as image:
                _check_size(image, side, None)
                return None, _turn(image) is not None
    except OSError as error:
        return f"not readable ({error.strerror})", False
    except DataError as error:
        return str(error), False


def deep_range(content: bytes) -> tuple[int, int] | None:
    """The least and largest value of an image of 16 bits a pixel or colour; None for others, and for damaged ones."""
    try:
        with _opened(io.BytesIO(content)) as image:
            _check_size(image, 1, None)
            if image.mode.startswith("I"):
                values = np.asarray(image)
                return int(values.min()), int(values.max())
            if ";16" not in str(image.tile):
                return None
            values = np.asarray(image.convert("RGB"))  # the upper 8 bits
            return int(values.min()) << 8, (int(values.max()) << 8) + 255
    except DataError:
        return None


def _turn(image: ImageFile) -> Transpose | None:
    """How the EXIF orientation turns an image; Pillow itself turns those of TIFF. Damaged EXIF does nothing."""
    from PIL.Image import Exif, Transpose

    exif = Exif()
    with contextlib.suppress(Exception):
        exif.load(image.info.get("exif", b""))
        return {
            2: Transpose.FLIP_LEFT_RIGHT,
            3: Transpose.ROTATE_180,
            4: Transpose.FLIP_TOP_BOTTOM,
            5: Transpose.TRANSPOSE,
            6: Transpose.ROTATE_270,
            7: Transpose.TRANSVERSE,
            8: Transpose.ROTATE_90,
        }.get(exif.get(0x0112, 1))
    return None


@contextlib.contextmanager
def _opened(stream: IO[bytes]) -> Iterator[ImageFile]:
    """An image; whatever goes wrong in the block is the file's fault, since Pillow may raise anything on damaged bytes.

    Raises:
        DataError: a few words on the fault.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's size limit is larger than ours, and damaged EXIF is harmless
            with Image.open(stream, formats=FORMATS) as image:
                yield image
    except DataError:
        raise
    except UnidentifiedImageError:
        raise DataError("not an image") from None
    except Image.DecompressionBombError:
        raise DataError(_TOO_LARGE) from None
    except MemoryError:
        raise DataError("needs more memory than there is") from None
    except Exception:  # noqa: BLE001
        raise DataError("truncated or damaged") from None


def decoder() -> str:
    """The versions of the libraries that decode images."""
    import PIL
    from PIL import features

    jpeg = features.version("libjpeg_turbo") or features.version("jpg")
    return f"Pillow {PIL.__version__}, libjpeg {jpeg}, WebP {features.version('webp')}"


def photograph() -> bytes:
    """The file of Grace Hopper's portrait in matplotlib, by the US Navy and in the public domain.

    Raises:
        DataError: this matplotlib does not contain it.
    """
    import matplotlib as mpl

    path = Path(mpl.get_data_path(), "sample_data", "grace_hopper.jpg")
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: matplotlib {mpl.__version__} does not have this photograph: {error}") from None


def fingerprint() -> str:
    """sha256 of a photograph's pixels from `decode`, which changes only with the libraries' results."""
    pixels, _ = decode(photograph(), 64, 72)
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()


def _check_size(image: Image, side: int, short: int | None) -> tuple[int, int]:
    """Width and height after resizing; raises DataError if the image takes too much memory, before it is decoded."""
    width, height = image.size
    wide = side
    high = side
    if short is not None:
        least = min(width, height)
        wide = _resized(width, least, short)
        high = _resized(height, least, short)
    if width * height > MEGAPIXELS * 1_000_000:
        raise DataError(_TOO_LARGE)
    if max(width, wide) * max(height, high) > MEGAPIXELS * 1_000_000:  # Pillow resizes one side after the other
        raise DataError(f"{_TOO_LARGE} while it is resized")
    return wide, high


def _resized(length: int, least: int, short: int) -> int:
    """A side's length after resizing, where the shorter side is `least` before and `short` after."""
    if length == least:
        return short
    return max(short, int(short * length / least))


def _rgb(image: ImageFile) -> tuple[Image, str | None]:
    """Colours of 8 bits, and a few words on the conversion."""
    from PIL.Image import fromarray

    mode = image.mode
    deep = ";16" in str(image.tile)  # Pillow itself drops the lower 8 bits of colours
    if getattr(image, "n_frames", 1) > 1:
        return image.convert("RGB"), "animated or of several pages (read the first)"
    if mode == "F":
        raise DataError("real numbers, not pixels")
    if mode.startswith("I"):
        values = np.asarray(image) >> 8  # Pillow's own conversion clips at 255
        return fromarray(np.clip(values, 0, 255).astype(np.uint8)).convert("RGB"), _DEEP
    if mode == "CMYK":
        return image.convert("RGB"), "CMYK (converted to RGB)"
    note = _DEEP if deep else None
    if "transparency" in image.info:
        # By way of RGBA, since Pillow warns of a direct conversion of transparent images with a palette.
        return image.convert("RGBA").convert("RGB"), note
    return image.convert("RGB"), note


def _square(image: Image, side: int, size: tuple[int, int]) -> Image:
    """The centre of the image after resizing."""
    from PIL.Image import Resampling

    width, height = size
    left = round((width - side) / 2)
    top = round((height - side) / 2)
    return image.resize(size, Resampling.BILINEAR).crop((left, top, left + side, top + side))
