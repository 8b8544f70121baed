"""The files of the digits, and where they are published."""

from __future__ import annotations

from typing import Literal

from msda_bench.api import ByHand, File, Url

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


def _mnist(name: str, sha256: str, size: int, again: tuple[str, int]) -> File:
    """The file as the mirrors serve it; `again` has the same contents, compressed again."""
    return File(f"mnist/{name}", sha256, size, Url(tuple(mirror + name for mirror in _MNIST_MIRRORS)), same=(again,))


MNIST = (
    _mnist(
        "train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        9912422,
        ("0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971", 9719438),
    ),
    _mnist(
        "train-labels-idx1-ubyte.gz",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        28881,
        ("1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203", 28857),
    ),
    _mnist(
        "t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        1648877,
        ("1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be", 1616508),
    ),
    _mnist(
        "t10k-labels-idx1-ubyte.gz",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        4542,
        ("b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b", 4517),
    ),
)
"""Training images and labels, test images and labels."""

_MNIST_M_WHOLE = File(
    "mnist_m/mnist_m.tar.gz",
    None,  # only this md5 was published with it
    None,
    Url((_MNIST_M,)),
    md5="859df31c91afe82e80e5012ba928f279",
)
_MNIST_M_REDUCED = File(
    "mnist_m_reduced/mnist_m.tar.gz",
    "5baad899dece7cc3684dfcaa8aa7430788db739b3b22e1e624a419eefcc51916",
    27650633,
    ByHand(_REDUCED.format(_MNIST_M)),
)

_SVHN_WHOLE = (
    File(
        "svhn/train_32x32.mat",
        "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        182040794,
        Url((f"{_SVHN}train_32x32.mat",)),
        md5="e26dedcc434d2e4c54c9b2d4a06d8373",
    ),
    File(
        "svhn/test_32x32.mat",
        "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        64275384,
        Url((f"{_SVHN}test_32x32.mat",)),
        md5="eb5a983be6a315427106f1b164d9cef3",
    ),
)
_SVHN_REDUCED = (
    File(
        "svhn_reduced/train_32x32.mat",
        "c3cea36cc8bf8b48d693aaa04d45f7b9fe5659c085e64214f7e4ef7cf5b2171e",
        18389426,
        ByHand(_REDUCED.format(_SVHN)),
    ),
    File(
        "svhn_reduced/test_32x32.mat",
        "9b1183a65a72c25e5b47a43f24c8edecea8f9981f1bde7daa865de06afeab58f",
        8756641,
        ByHand(_REDUCED.format(_SVHN)),
    ),
)

SYNTH = (
    File(
        "synth/synth_train_32x32.mat",
        "e0e0924ecd0c0b5a55ed6485aaa7d39937af982397717b89a3d91777aca9433c",
        895578032,
        Url((f"{_SYNTH}synth_train_32x32.mat",)),
    ),
    File(
        "synth/synth_test_32x32.mat",
        "6285fe9a1c6f27b379a47263907a37899b59ce86948fd343a5b904435cde5bcc",
        17851156,
        Url((f"{_SYNTH}synth_test_32x32.mat",)),
    ),
)
"""Training part, test part."""

USPS = (
    File(
        "usps/usps.bz2",
        "3771e9dd6ba685185f89867b6e249233dd74652389f263963b3b741e994b034f",
        None,
        Url((f"{_USPS}usps.bz2",)),
        md5="ec16c51db3855ca6c91edd34d0e9b197",
    ),
    File(
        "usps/usps.t.bz2",
        "a9c0164e797d60142a50604917f0baa604f326e9a689698763793fa5d12ffc4e",
        None,
        Url((f"{_USPS}usps.t.bz2",)),
        md5="8ea070ee2aca1ac39742fdd1ef5ed118",
    ),
)
"""Training part, test part."""


def mnist_m(copies: Copies) -> File:
    """The archive of MNIST-M."""
    return _MNIST_M_WHOLE if copies == "original" else _MNIST_M_REDUCED


def svhn(copies: Copies) -> tuple[File, File]:
    """The training and the test part of SVHN."""
    return _SVHN_WHOLE if copies == "original" else _SVHN_REDUCED
