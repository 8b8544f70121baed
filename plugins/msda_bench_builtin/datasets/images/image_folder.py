"""Images in a folder for each domain and class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from msda_bench.api import DataError, Files, Identified, Row, component
from msda_bench_builtin.datasets.images.dataset import Images, Listing
from msda_bench_builtin.datasets.images.identify import FIRST_SIDE, first_suite, spelt, what_is_missing, what_is_odd
from msda_bench_builtin.datasets.images.listing import (
    by_domain,
    folders_that_differ_in_case,
    images_of,
    is_archive,
    listed,
    plain,
)


class FolderImages(Images):
    """Reads DOMAIN/CLASS/FILE; classes are numbered in the order of their plain names."""

    inner: ClassVar[tuple[str, ...]] = ()
    """Folders between that of a domain and those of its classes."""
    published: ClassVar[Mapping[str, int]] = {}
    """Images of each domain in the published set; empty if the domains are the user's own."""
    facts: ClassVar[tuple[str, ...]] = ()
    """Known facts on the set's copies, a line each."""
    copies_known: ClassVar[Mapping[str, str]] = {}
    """Descriptions of copies by the checksum of their folder or archive."""

    def listed(self, domain: str, files: Files) -> Listing:
        """The domain's images by class and name; odd are missing classes and folders spelt in two ways.

        Raises:
            DataError: the domain is missing, or the number of classes is not the expected one.
        """
        path = files.path(self.files[0])
        present = by_domain(images_of(path), self.inner)
        mine = present.get(plain(domain))
        if mine is None:
            absent = [name for name in self.domains if plain(name) not in present]
            held = f"domains {listed(present)}" if present else "no DOMAIN/CLASS/FILE"
            what = f"no images of domains {listed(absent)}; it holds {held}"
            raise DataError(f"{path}: {what}; {self._remedy('domains')}")
        domains = {name: present.get(name, {}) for name in map(plain, self.domains)}
        classes = sorted(set().union(*domains.values()))
        if len(classes) != self.classes_expected:
            expected = f"{self.classes_expected} classes expected, it has {listed(classes)}"
            raise DataError(f"{path}: {expected}; {self._remedy('classes')}")
        images = [(row, place, False) for place, name in enumerate(classes) for row in mine.get(name, ())]
        return Listing(images, tuple(_odd(set(classes) - set(mine), [row for row, _, _ in images])))

    def _remedy(self, key: str) -> str:
        return "complete the folder, or read it as an image_folder" if self.published else f"set `{key}` in the suite"

    def identify(self, path: Path, sha256: str) -> Identified | None:
        """Recognises a copy of the published set if most of its domains are there; otherwise any DOMAIN/CLASS/FILE.

        Raises:
            DataError: it cannot be read.
        """
        if not path.is_dir() and not is_archive(path):
            return None
        present = by_domain(images_of(path), self.inner)
        wanted = {plain(domain): domain for domain in self.published}
        mine = {name: classes for name, classes in present.items() if not wanted or name in wanted}
        if len(mine) <= len(wanted) / 2 or len(mine) < len(("source", "target")):
            return None
        counts = self._counts(mine, wanted)
        missing = tuple(what_is_missing(counts, self.published, self.classes_expected if wanted else None))
        odd = what_is_odd(counts, [row for classes in mine.values() for rows in classes.values() for row in rows])
        what = self.copies_known.get(sha256) or self._what(counts, complete=not missing)
        kinds = len(set().union(*map(set, mine.values())))
        own = {} if wanted else {"domains": list(counts), "classes": kinds}
        params = {**own, "folder": path.absolute().name, "sha256": sha256, "side": FIRST_SIDE}
        whole = not wanted or (kinds == self.classes_expected and len(mine) == len(wanted))
        lines = (*missing, *odd, *self.facts)
        return Identified(what, counts, lines, params, bool(wanted), first_suite(counts) if whole else "")

    def _counts(
        self, found: Mapping[str, Mapping[str, Sequence[Row]]], names: Mapping[str, str]
    ) -> dict[str, dict[str, int]]:
        """Images of each class by domain, with the set's spelling of names, or else that of most images."""
        depth = len(self.inner) + 3
        of_class: dict[str, list[Row]] = {}
        for classes in found.values():
            for name, rows in classes.items():
                of_class.setdefault(name, []).extend(rows)
        ways = {name: spelt(rows, 2) for name, rows in of_class.items()}
        return {
            names.get(domain) or spelt([row for rows in classes.values() for row in rows], depth): {
                ways[name]: len(rows) for name, rows in classes.items()
            }
            for domain, classes in found.items()
        }

    def _what(self, counts: Mapping[str, Mapping[str, int]], *, complete: bool) -> str:
        number = sum(sum(of_class.values()) for of_class in counts.values())
        if not self.published:
            return f"{number} images of {len(counts)} domains, DOMAIN/CLASS/FILE"
        state = "as many images of each domain as published" if complete else "incomplete, or another copy"
        return f"{number} images; {state}"


def _odd(missing: set[str], rows: Sequence[Row]) -> Iterator[str]:
    if missing:
        yield f"no images of classes {listed(missing)}"
    if odd := folders_that_differ_in_case(rows):
        yield f"class folders that differ only in case are merged, {listed(odd)}"


@component
class ImageFolder(FolderImages):
    """Your own images, in a folder for each domain and class: DOMAIN/CLASS/FILE.

    `msda-bench data identify FOLDER --suite FILE` writes a suite with these parameters (docs/images.md).

    Parameters:
        domains: the names of their folders; case, spaces, hyphens and underscores do not matter.
        classes: the number of class folders in all domains together.
    """

    name = "image_folder"
    version = 1
    licence = "your images' own"
    source = "images that you supply"

    domains: Annotated[tuple[str, ...], Field(min_length=2)] = ("source_1", "source_2", "target")
    classes: Annotated[int, Field(ge=2)] = 2

    @property
    def classes_expected(self) -> int:
        """The suite's parameter."""
        return self.classes
