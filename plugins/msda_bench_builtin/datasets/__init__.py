"""The built-in datasets, one file each."""

from msda_bench_builtin.datasets.amazon import Amazon
from msda_bench_builtin.datasets.crises import Crises
from msda_bench_builtin.datasets.digits.dataset import Digits
from msda_bench_builtin.datasets.digits_five import DigitsFive
from msda_bench_builtin.datasets.fonts import Fonts
from msda_bench_builtin.datasets.gas_drift import GasDrift
from msda_bench_builtin.datasets.images.image_folder import ImageFolder
from msda_bench_builtin.datasets.images.image_list import ImageList
from msda_bench_builtin.datasets.images.named import DomainNet, Office31, OfficeCaltech10, OfficeHomeImages, Pacs
from msda_bench_builtin.datasets.intents import Intents
from msda_bench_builtin.datasets.music import Music
from msda_bench_builtin.datasets.office_home import OfficeHome, OfficeHomeFeatures
from msda_bench_builtin.datasets.opinions import Opinions
from msda_bench_builtin.datasets.reactor import Reactor
from msda_bench_builtin.datasets.sine import Sine
from msda_bench_builtin.datasets.spoken_digits import SpokenDigits
from msda_bench_builtin.datasets.stress import Stress
from msda_bench_builtin.datasets.tables.arrays import Arrays
from msda_bench_builtin.datasets.tables.table import Table
from msda_bench_builtin.datasets.tables.tasks import Hospitals, Solubility
from msda_bench_builtin.datasets.watch import Watch

__all__ = [
    "Amazon",
    "Arrays",
    "Crises",
    "Digits",
    "DigitsFive",
    "DomainNet",
    "Fonts",
    "GasDrift",
    "Hospitals",
    "ImageFolder",
    "ImageList",
    "Intents",
    "Music",
    "Office31",
    "OfficeCaltech10",
    "OfficeHome",
    "OfficeHomeFeatures",
    "OfficeHomeImages",
    "Opinions",
    "Pacs",
    "Reactor",
    "Sine",
    "Solubility",
    "SpokenDigits",
    "Stress",
    "Table",
    "Watch",
]
