"""The built-in datasets, one file each."""

from msda_bench_builtin.datasets.amazon import Amazon
from msda_bench_builtin.datasets.digits import Digits
from msda_bench_builtin.datasets.fonts import Fonts
from msda_bench_builtin.datasets.images import (
    DomainNet,
    ImageFolder,
    ImageList,
    Office31,
    OfficeCaltech10,
    OfficeHomeImages,
    Pacs,
)
from msda_bench_builtin.datasets.music import Music
from msda_bench_builtin.datasets.office_home import OfficeHome
from msda_bench_builtin.datasets.opinions import Opinions
from msda_bench_builtin.datasets.sine import Sine
from msda_bench_builtin.datasets.stress import Stress

__all__ = [
    "Amazon",
    "Digits",
    "DomainNet",
    "Fonts",
    "ImageFolder",
    "ImageList",
    "Music",
    "Office31",
    "OfficeCaltech10",
    "OfficeHome",
    "OfficeHomeImages",
    "Opinions",
    "Pacs",
    "Sine",
    "Stress",
]
