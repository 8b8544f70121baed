"""Images named by lists of lines `PATH LABEL`."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field

from msda_bench.api import AddedLater, DataError, Files, Identified, Row, component
from msda_bench_builtin.datasets.images.dataset import Images, Listing, Pattern, first_suite, what_is_missing
from msda_bench_builtin.datasets.images.listing import files_of, names_text, row_of
from msda_bench_builtin.datasets.images.looked_through import (
    IMAGE_OPTIONS,
    Placed,
    folder_params,
    identified,
    with_patterns,
)
from msda_bench_builtin.datasets.images.own_lists import own_lists

_LARGEST_LIST = 1 << 27
"""The maximum size of a list in bytes; the largest of DomainNet's has 6 million."""


@component
class ListedImages(Images):
    """Reads one list of a domain's images, or one for training and one for the test.

    Parameters:
        first_label: the label of the first class, such as 1 in PACS's own lists.
    """

    @property
    @abstractmethod
    def lists(self) -> tuple[str, str | None]:
        """Names of the training list and of the test list, if there is one; `{domain}` stands for the domain."""

    first_label: Annotated[int, Field(ge=0)] = 0

    def class_names(self, files: Files) -> tuple[str, ...]:
        """The labels in the lists."""
        return tuple(str(self.first_label + place) for place in range(self.classes))

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """Recognises a copy of the published set if most of its domains are there; counts the listed images."""
        domains = [domain for domain in self.published if (path / domain).is_dir()]
        if options or len(domains) <= len(self.published) / 2:
            return None
        here = {row.name for row in files_of(path).images}
        lines: list[str] = []
        counts: dict[str, dict[str, int]] = {}
        for domain in domains:
            try:
                names = self._names(path, domain)
            except DataError as error:
                lines.extend(f"missing: {line}" for line in error.lines)
                continue
            counts[domain] = dict(Counter(PurePosixPath(name).parent.name for name in names if name in here))
            absent = [name for name in names if name not in here]
            if absent:
                lines.append(f"missing: domain {domain}, listed files are not there, {names_text(absent)}")
        images = sum(sum(by_class.values()) for by_class in counts.values())
        is_whole = not lines and len(counts) == len(self.published)
        suite = first_suite(counts) if is_whole else {}
        lines += what_is_missing(counts, self.published, self.classes)
        lines += self.facts
        return Identified(f"{images} listed images", counts, lines, folder_params(path, sha256), suite)

    def _names(self, folder: Path, domain: str) -> list[str]:
        """The paths in a domain's lists."""
        names: list[str] = []
        for pattern in self.lists:
            if pattern:
                names += [name for name, _, _ in self.entries(folder, pattern, domain)]
        return names

    def listed(self, domain: str, files: Files) -> Listing:
        """The domain's images in the order of its lists; `odd` has missing classes and images listed twice."""
        folder = files.path(self.files[0])
        train, test = self.lists
        entries = [(*entry, False) for entry in self.entries(folder, train, domain)]
        if test is not None:
            entries += [(*entry, True) for entry in self.entries(folder, test, domain)]
        lines_of = Counter(name for name, *_ in entries)
        rows = {name: row_of(folder, name) for name in lines_of}
        absent = [name for name, row in rows.items() if row is None and name not in self.without]
        if absent:
            remedy = _remedy(folder, domain, absent[0])
            raise DataError(f"{folder}: {domain}: listed files are not there, {names_text(absent)}; {remedy}")
        images = []
        for name, label, _, official in entries:
            row = rows[name]
            if row is not None:
                images.append((row, label, official))
        odd = []
        missing = set(range(self.classes)) - {label for _, label, *_ in entries}
        if missing:
            odd.append(f"no images of classes {names_text(map(str, missing))}")
        twice = [name for name, count in lines_of.items() if count > 1]
        if twice:
            odd.append(f"images that are listed more than once, {names_text(twice)}")
        groups = {name: group for name, _, group, _ in entries} if self.has_groups else None
        return Listing(images, odd, groups)

    def entries(self, folder: Path, pattern: str, domain: str) -> list[tuple[str, int, str]]:
        """The path, class and group of each line of a list; a DataError for each kind of fault."""
        path = self._list(folder, pattern.replace("{domain}", domain))
        entries: list[tuple[str, int, str]] = []
        bad: dict[str, list[str]] = {}
        for number, line in enumerate(_text(path).splitlines(), 1):
            if not line.strip():
                continue
            pair, group = line, ""
            if self.has_groups:
                *pairs, group = line.strip().rsplit(maxsplit=1)
                pair = "".join(pairs)
            name, label, fault = _entry(pair)
            entries.append((name, label, group))
            if fault:
                bad.setdefault(fault, []).append(f"line {number} ({line.strip()[:80]})")
        if bad:
            raise DataError(*(f"{path}: {len(lines)} lines {fault}, first {lines[0]}" for fault, lines in bad.items()))
        self._check_labels(path, [label for _, label, _ in entries])
        return [(name, label - self.first_label, group) for name, label, group in entries]

    def _list(self, folder: Path, name: str) -> Path:
        """The list of this name, in the folder or in `txt` below it."""
        for path in (folder / name, folder / "txt" / name):
            if path.is_file():
                return path
        remedy = "" if self.published else ", or correct `domains` and `list`"
        raise DataError(f"{folder}: no list {name}, there or in txt; put it there{remedy}")

    def _check_labels(self, path: Path, labels: Sequence[int]) -> None:
        """Refuses labels outside the dataset's classes."""
        first = self.first_label
        least = min(labels, default=first)
        most = max(labels, default=first)
        if first <= least and most < first + self.classes:
            return
        remedy = f"set `first_label: {least}` and `classes: {max(self.classes, most - least + 1)}` if that is right"
        if self.published:
            remedy = "replace it by the published list"
        known = f"labels from {least} to {most}, but `first_label` is {first} and `classes` {self.classes}"
        raise DataError(f"{path}: {known}; {remedy}")


def _remedy(folder: Path, domain: str, name: str) -> str:
    """What to do about a listed file that is not there."""
    first, _, rest = name.partition("/")
    tries = {
        "write / for \\ in the list": name.replace("\\", "/"),
        "remove the quotes in the list": name.strip("\"'"),
        f"remove {first}/ in the list": rest,
        f"write {domain}/ before each path in the list": f"{domain}/{name}",
    }
    for remedy, other in tries.items():
        if other not in {"", name} and row_of(folder, other) is not None:
            return remedy
    return "complete the folder"


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_LIST:
            raise DataError(f"{path}: larger than {_LARGEST_LIST >> 20} MiB; it is not a list of images")
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: cannot be read as text ({error}); save it as UTF-8") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read as text ({error}); replace it") from None


def _entry(line: str) -> tuple[str, int, str]:
    """Path and label of a line; or what is wrong with it, and what to do."""
    name, *rest = line.strip().rsplit(maxsplit=1)
    if not rest or not re.fullmatch(r"\d{1,9}(\.0*)?", rest[0]):
        return "", 0, "do not end in a blank and a whole number (write PATH LABEL, the class as a number)"
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        return "", 0, "name a file outside the folder (write its path below the folder)"
    return str(path), int(float(rest[0])), ""


def _placed(data: ListedImages, folder: Path, domain: str, rows: Mapping[str, Row]) -> dict[str, list[Placed]]:
    """The images of a domain's lists that are there, by their label as it is written."""
    found: dict[int, list[Placed]] = {}
    train, test = data.lists
    for pattern, part_of_list in ((train, ""), (test, "test")):
        if pattern is None:
            continue
        for image, number, _ in data.entries(folder, pattern, domain):
            if image in rows:
                label = number + data.first_label
                part = "test" if data.is_test(image) else part_of_list
                found.setdefault(label, []).append(Placed(rows[image], domain, str(label), part))
    return {str(label): found[label] for label in sorted(found)}


@component
class ImageList(ListedImages):
    """Your own images, named by a list of lines `PATH LABEL` for each domain; paths are below the folder.

    Parameters:
        domains: their names, as in the names of the lists.
        classes: the number of labels.
        list: the list's name; `{domain}` stands for the domain.
        groups: "column" if a third word of each line names the group of images that belong together, such as those of
            one patient; or a regular expression of their paths, as in `image_folder`.
        test_list: for the official test images, which are never trained on; None to draw all images from `list`.
        test_images: a regular expression of the paths of official test images in `list`.
    """

    name = "image_list"
    version = 1
    licence = "your images' own"
    source = "images that you supply"

    domains: Annotated[tuple[str, ...], Field(min_length=2)] = ("source_1", "source_2", "target")
    classes: Annotated[int, Field(ge=2)] = 2
    list: Annotated[str, Field(min_length=1)] = "{domain}.txt"
    test_list: str | None = None
    groups: Annotated[Pattern | None, AddedLater()] = None
    test_images: Annotated[Pattern | None, AddedLater()] = None

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """Recognises lists of two or more domains, `DOMAIN.txt` or `DOMAIN_train.txt` and `DOMAIN_test.txt`."""
        if not options.keys() <= IMAGE_OPTIONS or not path.is_dir():
            return None
        files = files_of(path)
        rows = {row.name.removeprefix("./"): row for row in files.images}
        lists = own_lists(path, rows)
        if lists is None:
            return None
        first = min(lists.labels)
        classes = max(2, max(lists.labels) - first + 1)
        named: dict[str, Any] = {"list": lists.list, "test_list": lists.test_list, "first_label": first}
        data = with_patterns(self, options)
        if lists.grouped and data.groups is None:
            data = replace(data, groups="column")
        data = replace(data, domains=lists.domains, classes=classes, **named)
        tree = {name: _placed(data, path, name, rows) for name in lists.domains}
        params = {"domains": list(lists.domains), "classes": classes, **folder_params(path, sha256)}
        params.update({key: value for key, value in named.items() if value not in {None, 0}})
        what = f"listed images of {len(tree)} domains, by the lists {lists.list}"
        names = [str(first + number) for number in range(classes)]
        files = files._replace(others=files.others - Counter({".txt": lists.files}))
        return identified(data, what, tree, files, params, names)

    @property
    def testing(self) -> str | None:
        """The suite's parameter."""
        return self.test_images

    @property
    def has_groups(self) -> bool:
        """Whether `groups` is "column"."""
        return self.groups == "column"

    @property
    def grouping(self) -> str | None:
        """The suite's parameter, unless a column names groups."""
        return None if self.has_groups else self.groups

    @property
    def lists(self) -> tuple[str, str | None]:
        """The suite's parameters."""
        return self.list, self.test_list
