"""Where the images of each domain come from: published files, and how they are read or made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from msda_bench.api import Array, ByHand, DomainData, File, Files, Url
from msda_bench_builtin.datasets.digits import mnist_m_made, synth_fonts
from msda_bench_builtin.datasets.digits.readers import Part, joined_parts, read_mat, read_mnist, read_mnist_m, read_usps

Copies = Literal["original", "reduced"]

_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_SVHN = "http://ufldl.stanford.edu/housenumbers/"
_SYNTH = "https://media.githubusercontent.com/media/domainadaptation/datasets/91ff02225a73db330883843bc41ee3aca59a19d9/synth/"
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
_MNIST_M = "https://cornell.box.com/shared/static/jado7quprg6hzzdubvwzh9umr75damwi"
_REDUCED = "a smaller copy of the file at {}, not available for download (`copies: original` downloads the whole)"


_Bytes = tuple[str, int]
"""sha256 and size of a file."""

# As the mirrors serve it, and the same contents compressed again.
_MNIST_BYTES: dict[str, tuple[_Bytes, _Bytes]] = {
    "train-images-idx3-ubyte.gz": (
        ("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9912422),
        ("0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971", 9719438),
    ),
    "train-labels-idx1-ubyte.gz": (
        ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28881),
        ("1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203", 28857),
    ),
    "t10k-images-idx3-ubyte.gz": (
        ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1648877),
        ("1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be", 1616508),
    ),
    "t10k-labels-idx1-ubyte.gz": (
        ("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4542),
        ("b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b", 4517),
    ),
}
MNIST = tuple(
    File(f"mnist/{name}", sha256, size, Url(tuple(mirror + name for mirror in _MNIST_MIRRORS)), same=(again,))
    for name, ((sha256, size), again) in _MNIST_BYTES.items()
)
"""Training images and labels, test images and labels."""

_REDUCED_MNIST_M = ("5baad899dece7cc3684dfcaa8aa7430788db739b3b22e1e624a419eefcc51916", 27650633)
# Only this md5 was published with the original.
_MD5 = "859df31c91afe82e80e5012ba928f279"
MNIST_M: dict[Copies, tuple[File]] = {
    "original": (File("mnist_m/mnist_m.tar.gz", None, None, Url((_MNIST_M,)), md5=_MD5),),
    "reduced": (File("mnist_m_reduced/mnist_m.tar.gz", *_REDUCED_MNIST_M, ByHand(_REDUCED.format(_MNIST_M))),),
}
"""The archive of MNIST-M."""

_SVHN_BYTES: dict[Copies, dict[str, _Bytes]] = {
    "original": {
        "train_32x32.mat": ("435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8", 182040794),
        "test_32x32.mat": ("cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b", 64275384),
    },
    "reduced": {
        "train_32x32.mat": ("c3cea36cc8bf8b48d693aaa04d45f7b9fe5659c085e64214f7e4ef7cf5b2171e", 18389426),
        "test_32x32.mat": ("9b1183a65a72c25e5b47a43f24c8edecea8f9981f1bde7daa865de06afeab58f", 8756641),
    },
}
SVHN: dict[Copies, tuple[File, ...]] = {
    "original": tuple(
        File(f"svhn/{name}", *known, Url((_SVHN + name,))) for name, known in _SVHN_BYTES["original"].items()
    ),
    "reduced": tuple(
        File(f"svhn_reduced/{name}", *known, ByHand(_REDUCED.format(_SVHN)))
        for name, known in _SVHN_BYTES["reduced"].items()
    ),
}
"""The training and the test part of SVHN."""

_SYNTH_BYTES: dict[str, _Bytes] = {
    "synth_train_32x32.mat": ("e0e0924ecd0c0b5a55ed6485aaa7d39937af982397717b89a3d91777aca9433c", 895578032),
    "synth_test_32x32.mat": ("6285fe9a1c6f27b379a47263907a37899b59ce86948fd343a5b904435cde5bcc", 17851156),
}
SYNTH = tuple(File(f"synth/{name}", *known, Url((_SYNTH + name,))) for name, known in _SYNTH_BYTES.items())
"""Training part, test part."""

_USPS_BYTES = {
    "usps.bz2": "3771e9dd6ba685185f89867b6e249233dd74652389f263963b3b741e994b034f",
    "usps.t.bz2": "a9c0164e797d60142a50604917f0baa604f326e9a689698763793fa5d12ffc4e",
}
USPS = tuple(File(f"usps/{name}", sha256, None, Url((_USPS + name,))) for name, sha256 in _USPS_BYTES.items())
"""Training part, test part."""

Sizes = tuple[int, int]
_FEW_MNIST_M = "mnist_m: 10000 of the 59001 training images and 4000 of the 9001 test images (reduced copy)"
_FEW_SVHN = (
    "svhn: 7500 training and 3583 test images, divided anew from 1083 of the 73257 training and 10000 of the "
    "26032 test images (reduced copy)"
)
_SYNTH_FONTS = "synth_fonts is rendered from the fonts of matplotlib, a stand-in for Synthetic Digits"
_MNIST_M_MADE = "mnist_m_made is MNIST blended with pieces of one photograph, a stand-in for MNIST-M"


@dataclass(frozen=True)
class Origin:
    """The source of a domain's images, with a note for readers of results and all else that the images depend on."""

    files: tuple[File, ...]
    sizes: Sizes
    load: Callable[[Files], DomainData]
    note: str | None = None
    ingredients: Callable[[], list[str]] = list


def origins(copies: Copies, made: Sizes) -> dict[str, Origin]:
    """The source of each domain, where generated ones have so many training and test images."""
    mnist_m = MNIST_M[copies]
    svhn = SVHN[copies]
    house_numbers = partial(_both, partial(read_mat, zero=10))
    if copies == "reduced":
        of_mnist_m = _read(mnist_m, (10000, 4000), read_mnist_m, _FEW_MNIST_M, kept="mnist_m")
        of_svhn = _read(svhn, (7500, 3583), house_numbers, _FEW_SVHN)
    else:
        of_mnist_m = _read(mnist_m, (59001, 9001), read_mnist_m, kept="mnist_m")
        of_svhn = _read(svhn, (73257, 26032), house_numbers)
    synth = partial(_both, partial(read_mat, zero=None))  # takes 3 GB while it reads them
    return {
        "mnist": _read(MNIST, (60000, 10000), partial(_both, read_mnist)),
        "mnist_m": of_mnist_m,
        "svhn": of_svhn,
        "synth": _read(SYNTH, (479400, 9553), synth),
        "usps": _read(USPS, (7291, 2007), partial(_both, read_usps), kept="usps"),
        "synth_fonts": _made("SynthFonts", (), made, synth_fonts.render, _SYNTH_FONTS, synth_fonts.identity),
        "mnist_m_made": _made("MnistMMade", MNIST, made, _blend, _MNIST_M_MADE, mnist_m_made.identity),
    }


def _read(
    files: tuple[File, ...],
    sizes: Sizes,
    read: Callable[..., tuple[Part, Part]],
    note: str | None = None,
    kept: str | None = None,
) -> Origin:
    """Images that `read` finds in files, given their paths; with a name to keep them by, they are decoded only once."""

    def load(local: Files) -> DomainData:
        paths = [local.path(file) for file in files]
        if kept is None:
            return joined_parts(*read(*paths))

        def decoded() -> Mapping[str, Array]:
            train, test = read(*paths)
            return {"train_x": train.x, "train_y": train.y, "test_x": test.x, "test_y": test.y}

        arrays = local.derived(json.dumps([kept, 1, *(file.checksum for file in files)]), decoded)
        return joined_parts(Part(arrays["train_x"], arrays["train_y"]), Part(arrays["test_x"], arrays["test_y"]))

    return Origin(files, sizes, load, note)


def _both(read: Callable[..., Part], *paths: Path) -> tuple[Part, Part]:
    """The parts in the first and in the second half of the files."""
    half = len(paths) // 2
    return read(*paths[:half]), read(*paths[half:])


def _made(
    kind: str,
    files: tuple[File, ...],
    sizes: Sizes,
    make: Callable[..., Mapping[str, Array]],
    note: str,
    ingredients: Callable[[], list[str]],
) -> Origin:
    """Images that are made once, and then kept: `make` gets their number, an identity, and paths of the part's files.

    Their random numbers are drawn for the identity.
    """

    def part(name: str, count: int, read: tuple[File, ...], local: Files) -> Part:
        identity = ("digits", kind, 1, name)
        key = json.dumps([*identity, count, ingredients(), [file.checksum for file in files]])
        arrays = local.derived(key, lambda: make(count, identity, *map(local.path, read)))
        return Part(arrays["x"], arrays["y"])

    def load(local: Files) -> DomainData:
        n_train, n_test = sizes
        half = len(files) // 2
        train = part("train", n_train, files[:half], local)
        test = part("test", n_test, files[half:], local)
        return joined_parts(train, test)

    return Origin(files, sizes, load, note, ingredients)


def _blend(count: int, identity: tuple[str | int, ...], images: Path, labels: Path) -> Mapping[str, Array]:
    return mnist_m_made.blend(read_mnist(images, labels), count, identity)
