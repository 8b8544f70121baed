"""The field's image datasets: differences between their copies and a plain folder, and known facts on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from msda_bench.api import Extent, File, Files, component
from msda_bench_builtin.datasets.images.dataset import Images
from msda_bench_builtin.datasets.images.image_folder import FolderImages
from msda_bench_builtin.datasets.images.image_list import ListedImages

_Q72 = "a306994589f9a37860b1375ebed910452d03f702a2e54f66115239084a99b703"
_Q72_UNPACKED = "f7b7fbfa95b1f70b2fce25e780c5f0b1bbcaaf1bf70d499390416837818bddd6"
_PACS = File("pacs/pacs_q72.tar", _Q72, 83118080, Images.origin)


@component
class Pacs(FolderImages):
    """Art paintings, cartoons, photographs and sketches of seven kinds of thing: 9991 images.

    Parameters:
        copies: "original" reads your folder; "q72" reads `pacs/pacs_q72.tar`, all images at their own size, re-encoded
            as JPEG of quality 72.

    Li, Yang, Song, Hospedales. Deeper, Broader and Artier Domain Generalization. ICCV 2017.
    """

    name = "pacs"
    version = 1
    licence = "none is stated"
    source = "Li et al. 2017; images that you supply"
    domains = ("art_painting", "cartoon", "photo", "sketch")
    published: ClassVar = {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929}
    facts = ("known: the original has photographs as JPEG and sketches as PNG; if all are JPEG, it is re-encoded",)
    copies_known: ClassVar = dict.fromkeys((_Q72, _Q72_UNPACKED), "all 9991 images, re-encoded as JPEG of quality 72")

    folder: str = "pacs"
    copies: Literal["original", "q72"] = "original"
    classes = 7

    def sizes(self, files: Files | None = None) -> dict[str, Extent]:
        """Images of each domain, if the copy is known to be complete; else as listed."""
        return dict(self.published) if self.copies == "q72" and not self.without else super().sizes(files)

    @property
    def files(self) -> tuple[File, ...]:
        """The folder or the archive."""
        return (_PACS,) if self.copies == "q72" else super().files

    @property
    def notes(self) -> tuple[str, ...]:
        """Reports images that are not the published ones."""
        copy = self.copies == "q72" or self.sha256 in self.copies_known
        return ("pacs: a copy whose images were re-encoded as JPEG of quality 72.",) if copy else ()


@component
class Office31(FolderImages):
    """Office things of 31 kinds from a shop's pages, a good camera and a webcam: 4110 images.

    Saenko, Kulis, Fritz, Darrell. Adapting Visual Category Models to New Domains. ECCV 2010.
    """

    name = "office31"
    version = 1
    licence = "none is stated"
    source = "Saenko et al. 2010; images that you supply"
    domains = ("amazon", "dslr", "webcam")
    published: ClassVar = {"amazon": 2817, "dslr": 498, "webcam": 795}
    layout = "**/DOMAIN/images/CLASS"

    folder: str = "office31"
    classes = 31


@component
class OfficeCaltech10(FolderImages):
    """The ten kinds of thing that Office-31 and Caltech-256 share: 2533 images.

    Gong, Shi, Sha, Grauman. Geodesic Flow Kernel for Unsupervised Domain Adaptation. CVPR 2012.
    """

    name = "office_caltech10"
    version = 1
    licence = "none is stated"
    source = "Gong et al. 2012; images that you supply"
    domains = ("amazon", "caltech", "dslr", "webcam")
    published: ClassVar = {"amazon": 958, "caltech": 1123, "dslr": 157, "webcam": 295}

    folder: str = "office_caltech10"
    classes = 10

    def plain(self, names: Sequence[str]) -> list[str]:
        """Plain names, as for all copies; a public one calls its domain `caltech10`."""
        return ["caltech" if name == "caltech10" else name for name in super().plain(names)]


@component
class OfficeHomeImages(FolderImages):
    """Everyday objects of 65 kinds as art, clip art, product pictures and photographs: 15588 images.

    Venkateswara, Eusebio, Chakraborty, Panchanathan. Deep Hashing Network for Unsupervised Domain Adaptation. CVPR
    2017.
    """

    name = "office_home_images"
    version = 1
    licence = "academic research, under the publisher's fair use notice"
    source = "Venkateswara et al. 2017; images that you supply"
    domains = ("art", "clipart", "product", "real_world")
    published: ClassVar = {"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357}
    facts = ("known: the case of some class folders differs between copies, which changes only the checksum",)

    folder: str = "OfficeHomeDataset_10072016"
    classes = 65


@component
class DomainNet(ListedImages):
    """Photographs, drawings and more of 345 kinds of thing, by the cleaned lists: 586575 images.

    Reads the lists DOMAIN_train.txt and DOMAIN_test.txt, in the folder or in `txt` below it; the folder's other images
    are ignored. The test uses the official test lists.

    Peng, Bai, Xia, Huang, Saenko, Wang. Moment Matching for Multi-Source Domain Adaptation. ICCV 2019.
    """

    name = "domainnet"
    version = 1
    licence = "research only; fair use notice"
    source = "Peng et al. 2019; images that you supply"
    domains = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
    published: ClassVar = {
        "clipart": 48129,
        "infograph": 51605,
        "painting": 72266,
        "quickdraw": 172500,
        "real": 172947,
        "sketch": 69128,
    }
    facts = (
        "known: the published archives still hold duplicates; only images in the cleaned lists count",
        "known: painting_train.txt names no t-shirt (class 327)",
    )

    folder: str = "domainnet"
    classes = 345
    lists = ("{domain}_train.txt", "{domain}_test.txt")
