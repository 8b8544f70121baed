"""Images of several domains, from files that the user supplies."""

from msda_bench_builtin.datasets.images.image_folder import ImageFolder
from msda_bench_builtin.datasets.images.image_list import ImageList
from msda_bench_builtin.datasets.images.named import DomainNet, Office31, OfficeCaltech10, OfficeHomeImages, Pacs

__all__ = ["DomainNet", "ImageFolder", "ImageList", "Office31", "OfficeCaltech10", "OfficeHomeImages", "Pacs"]
