"""Images in a folder for each domain and class."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from msda_bench.api import DataError, Files, Row, component
from msda_bench_builtin.datasets.images.dataset import Images, Listed
from msda_bench_builtin.datasets.images.listing import by_domain, folders_that_differ_in_case, images_of, listed, plain


class FolderImages(Images):
    """Reads DOMAIN/CLASS/FILE; classes are numbered in the order of their plain names."""

    inner: ClassVar[tuple[str, ...]] = ()
    """Folders between that of a domain and those of its classes."""

    def listed(self, domain: str, files: Files) -> Listed:
        """The domain's images by class and name; warns of classes that it misses and of folders spelt in two ways.

        Raises:
            DataError: the domain is missing, or there are more or fewer classes than there should be.
        """
        path = files.path(self.files[0])
        domains = self._domains(images_of(path))
        mine = domains.get(plain(domain))
        if mine is None:
            raise DataError(f"{path}: no images of {domain}; it holds domains {listed(domains) if domains else '0'}")
        classes = sorted(set().union(*domains.values()))
        if len(classes) != self.classes_expected:
            raise DataError(f"{path}: {self.classes_expected} classes expected, it has {listed(classes)}")
        self._warn(domain, set(classes) - set(mine), [row for rows in mine.values() for row in rows])
        return [(row, place, False) for place, name in enumerate(classes) for row in mine.get(name, ())]

    def _domains(self, rows: tuple[Row, ...]) -> dict[str, dict[str, list[Row]]]:
        wanted = set(map(plain, self.domains))
        return {name: found for name, found in by_domain(rows, self.inner).items() if name in wanted}

    def _warn(self, domain: str, missing: set[str], rows: list[Row]) -> None:
        if missing:
            self.warn(domain, f"no images of classes {listed(missing)}")
        if odd := folders_that_differ_in_case(rows):
            self.warn(domain, f"class folders that differ in case alone are taken together, {listed(odd)}")


@component
class ImageFolder(FolderImages):
    """Your own images, in a folder for each domain and class: DOMAIN/CLASS/FILE.

    `msda-bench data identify FOLDER --suite FILE` writes a suite with these parameters (docs/images.md).

    Parameters:
        domains: the names of their folders; case, spaces, hyphens and underscores do not matter.
        classes: how many class folders there are in all domains together.
    """

    name = "image_folder"
    version = 1
    licence = "your images' own"
    source = "images that you supply"

    domains: Annotated[tuple[str, ...], Field(min_length=2)] = ("source", "target")
    classes: Annotated[int, Field(ge=2)] = 2

    @property
    def classes_expected(self) -> int:
        """As the suite says."""
        return self.classes
