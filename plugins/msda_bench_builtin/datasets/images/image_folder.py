"""Images in a folder for each domain and class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from msda_bench.api import AddedLater, DataError, Files, Identified, Row, component
from msda_bench.functional import plain_texts
from msda_bench_builtin.datasets.images.dataset import Images, Listing, Pattern, first_suite, what_is_missing
from msda_bench_builtin.datasets.images.keys import are_keys
from msda_bench_builtin.datasets.images.listing import files_of, is_archive, names_text, plain_name
from msda_bench_builtin.datasets.images.looked_through import (
    IMAGE_OPTIONS,
    Placed,
    Tree,
    folder_params,
    identified,
    looked_at,
    merged,
    part_of,
    parts_in,
    with_patterns,
)

LAST_TWO = "**/DOMAIN/CLASS"
"""The layout of the last two levels, whatever is above them."""
_WORDS = {
    "DOMAIN": "(?P<domain>[^/]+)/",
    "SPLIT": "(?P<part>[^/]+)/",
    "CLASS": "(?P<label>[^/]+)/",
    "*": "[^/]+/",
    "**": "(?:[^/]+/)*",
}


def placed(rows: Iterable[Row], layout: str) -> list[Placed]:
    """The images where the layout has some; without those of a part that repeats others, such as VLCS's `full`.

    A layout is DOMAIN, CLASS, SPLIT, `*` for any folder, `**` for any number of them, or names, from the top down.
    """
    words = (_WORDS.get(word) or f"{re.escape(word)}/" for word in layout.split("/"))
    pattern = re.compile("".join(words) + "[^/]+", re.IGNORECASE)
    images: list[Placed] = []
    for row in rows:
        match = pattern.fullmatch(row.name.removeprefix("./"))
        if match:
            images.append(Placed(row, **match.groupdict()))
    repeats = _repeats({(image.domain, image.part) for image in images})
    return [image for image in images if (image.domain, image.part) not in repeats]


def _repeats(parts: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The parts of domains whose images are also in other parts."""
    count = Counter(domain for domain, _ in parts)
    trained = {domain for domain, part in parts if part_of(part) == "train" and plain_name(part) != "trainval"}
    repeats: set[tuple[str, str]] = set()
    for domain, part in parts:
        is_full = part_of(part) == "full" and count[domain] > 1
        is_trainval = plain_name(part) == "trainval" and domain in trained
        if is_full or is_trainval:
            repeats.add((domain, part))
    return repeats


def layout_of(rows: Sequence[Row]) -> tuple[str, bool]:
    """The layout of a user's images, and whether nested folders may mean something else.

    A level of one name says nothing, and one of names of official parts is SPLIT. Of the others the first is DOMAIN,
    and the next whose names recur in several domains is CLASS. What is deeper than other images is below CLASS. Folders
    called as patients or slides are neither.
    """
    folders = Counter(tuple(row.name.removeprefix("./").split("/")[:-1]) for row in rows)
    for depth in sorted({len(folder) for folder in folders if len(folder) > 1}):
        below = {folder: count for folder, count in folders.items() if len(folder) >= depth}
        words = _words_of([{folder[place] for folder in below} for place in range(depth)])
        free = [place for place, word in enumerate(words) if not word]
        if len(free) < len(("DOMAIN", "CLASS")) or words.count("SPLIT") > 1:
            continue
        domain, *others = free
        recurring = [place for place in others if _recurs(below, domain, place)]
        label = recurring[0] if recurring else others[0]
        words[domain] = "DOMAIN"
        words[label] = "CLASS"
        layout = [word or "*" for word in words]
        deeper = sum(count for folder, count in below.items() if len(folder) > depth)
        if deeper:
            layout.append("**")
        is_doubtful = label != others[0] or (len(others) > 1 and len(recurring) != 1)
        is_mostly_deeper = 2 * deeper > sum(below.values())
        return "/".join(layout), is_doubtful or is_mostly_deeper
    return LAST_TWO, False


def _words_of(levels: Sequence[set[str]]) -> list[str]:
    """The word of a layout for each level of folders; "" for those that may be domains or classes."""
    words: list[str] = []
    for names in levels:
        if len(names) == 1:
            words.append("*")
        else:
            words.append("SPLIT" if all(map(part_of, names)) else "")
    keys = [place for place, names in enumerate(levels) if not words[place] and are_keys(names)]
    if words.count("") - len(keys) > 1:  # besides domains and classes
        for place in keys:
            words[place] = "*"
    return words


def _recurs(folders: Iterable[tuple[str, ...]], domain: int, place: int) -> bool:
    """Whether a name at this level occurs below several names of the level of domains."""
    pairs = {(folder[domain], folder[place]) for folder in folders}
    return max(Counter(name for _, name in pairs).values()) > 1


def same(name: str) -> str:
    """A name without case and without the kind of separator; signs, and how many separators there are, remain."""
    return re.sub(r"(?<=[^ _-])-|[ _]|-(?!\.?\d)", "_", name).casefold()


class FolderImages(Images):
    """Reads DOMAIN/CLASS/FILE; classes are numbered in the order of their plain names."""

    copies_known: ClassVar[Mapping[str, str]] = {}
    """Descriptions of copies by the checksum of their folder or archive."""

    @property
    def layout(self) -> str:
        """What the folders are, from the top down; see `placed`."""
        return LAST_TWO

    def plain(self, names: Sequence[str]) -> list[str]:
        """Names in a form in which names with the same meaning are equal."""
        return [plain_name(name) for name in names]

    def listed(self, domain: str, files: Files) -> Listing:
        """The domain's images by class and name; `odd` has missing classes and folders spelt in two ways."""
        path = files.path(self.files[0])
        images = placed(files_of(path).images, self.layout)
        tree, classes = self._tree(images, self.domains)
        if domain not in tree:
            absent = [name for name in self.domains if name not in tree]
            present = {image.domain for image in images}
            held = f"domains {names_text(present)}" if present else f"no {self.layout.removeprefix('**/')}/FILE"
            what = f"no images of domains {names_text(absent)}; it holds {held}"
            raise DataError(f"{path}: {what}; {self._remedy('domains')}")
        if len(classes) != self.classes:
            expected = f"{self.classes} classes expected, it has {names_text(classes)}"
            raise DataError(f"{path}: {expected}; {self._remedy('classes')}")
        mine = tree[domain]
        rows = []
        for place, name in enumerate(classes):
            for image in mine.get(name, ()):
                rows.append((image.row, place, part_of(image.part) == "test"))
        odd = []
        missing = set(classes) - set(mine)
        if missing:
            odd.append(f"no images of classes {names_text(missing)}")
        odd += merged({domain: mine})
        return Listing(rows, odd)

    def class_names(self, files: Files) -> tuple[str, ...]:
        """The names that most of their folders have."""
        path = files.path(self.files[0])
        _, classes = self._tree(placed(files_of(path).images, self.layout), self.domains)
        return tuple(classes)

    def _tree(self, images: Sequence[Placed], known: Collection[str]) -> tuple[Tree, list[str]]:
        """The images of the known domains, or of all if none is known, and the classes in order."""
        domains = self._names([image.domain for image in images], known)
        here = [image for image in images if not known or domains[image.domain] in known]
        labels = self._names([image.label for image in here])
        tree: Tree = {}
        for image in here:
            by_class = tree.setdefault(domains[image.domain], {})
            by_class.setdefault(labels[image.label], []).append(image)
        return tree, list(dict.fromkeys(labels.values()))

    def _names(self, folders: Sequence[str], known: Collection[str] = ()) -> dict[str, str]:
        """For each folder, by its plain name, the known spelling, or else that of most images."""
        counts = Counter(sorted(folders))
        every = list(dict.fromkeys([*known, *counts]))
        keys = dict(zip(every, self.plain(every), strict=True))
        most_first = [name for name, _ in counts.most_common()]
        names: dict[str, str] = {}
        for name in (*known, *most_first):
            names.setdefault(keys[name], name)
        return {folder: names[keys[folder]] for folder in sorted(counts, key=keys.__getitem__)}

    def _remedy(self, key: str) -> str:
        if self.published:
            return "complete the folder, or read it as an image_folder"
        return f"set `{key}` in the suite"

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """Recognises a copy of the published set if most of its domains are there."""
        if options or not (path.is_dir() or is_archive(path)):
            return None
        files = files_of(path)
        tree, classes = self._tree(placed(files.images, self.layout), self.published)
        if len(tree) <= len(self.published) / 2:
            return None
        found = looked_at(tree, files)
        missing = list(what_is_missing(found.counts, self.published, self.classes))
        state = "incomplete, or another copy" if missing else "as many images of each domain as published"
        what = self.copies_known.get(sha256) or f"{len(found.rows)} images; {state}"
        lines = [*missing, *found.lines, *self.facts]
        params = {**folder_params(path, sha256), **found.params}
        is_whole = len(classes) == self.classes and len(tree) == len(self.published)
        suite = first_suite(found.counts) if is_whole else {}
        return Identified(what, found.counts, lines, params, suite, read=found.read)


def _doubts(tree: Tree) -> Iterator[str]:
    """Why a user's folders may mean something else."""
    domains_with = Counter[str]()
    merged_lines: dict[str, None] = {}
    for domain, by_class in tree.items():
        domains_with.update(by_class.keys())
        merged_lines.update(dict.fromkeys(merged({domain: by_class})))
    for kind, names in (("domains", tree), ("classes", domains_with)):
        parts = [name for name in names if part_of(name)]
        if len(parts) > 1:
            yield f"{kind} are named as parts of one domain are, {names_text(parts)}; give each its own folder"
    for line in merged_lines:
        yield f"{line} beside each other; rename them if they mean two things"
    shared = {label for label, count in domains_with.items() if count > 1}
    alone = [name for name, by_class in tree.items() if shared.isdisjoint(by_class)]
    if alone:
        yield f"domains without a class of another domain, {names_text(alone)}; correct the names or levels of folders"
    tests = [name for name, count in parts_in(tree).items() if not count["train"]]
    if tests:
        yield f"domains of which all images are an official test, {names_text(tests)}; move some to another part"


@component
class ImageFolder(FolderImages):
    """Your own images, in a folder for each domain and class: DOMAIN/CLASS/FILE.

    `msda-bench data identify FOLDER --suite FILE` writes a suite with these parameters (docs/images.md).

    Parameters:
        domains: the names of their folders; blanks at the ends, case, and whether a separator is a space, a hyphen or
            an underscore do not matter.
        classes: the number of class folders in all domains together.
        layout: what the folders are, from the top down: DOMAIN, CLASS, SPLIT for official parts such as `test`, `*` for
            any folder, `**` for any number of them.
        groups: a regular expression; images of a domain in whose paths its groups, or all of it, match the same text
            belong together, such as those of one patient or recording: none is tested on where another is trained on.
        test_images: a regular expression of the paths of official test images, beside those in a SPLIT folder.
    """

    name = "image_folder"
    version = 2
    licence = "your images' own"
    source = "images that you supply"

    domains: Annotated[tuple[str, ...], Field(min_length=2)] = ("source_1", "source_2", "target")
    classes: Annotated[int, Field(ge=2)] = 2
    layout: Annotated[str, Field(min_length=1)] = LAST_TWO
    groups: Annotated[Pattern | None, AddedLater()] = None
    test_images: Annotated[Pattern | None, AddedLater()] = None

    @property
    def grouping(self) -> str | None:
        """The suite's parameter."""
        return self.groups

    @property
    def testing(self) -> str | None:
        """The suite's parameter."""
        return self.test_images

    def __post_init__(self) -> None:
        """Refuses a layout without a place for domains or classes."""
        super().__post_init__()
        words = self.layout.split("/")
        if words.count("DOMAIN") != 1 or words.count("CLASS") != 1 or words.count("SPLIT") > 1:
            raise ValueError(f"layout is {self.layout!r}; it must name DOMAIN and CLASS once, and SPLIT at most once")

    def plain(self, names: Sequence[str]) -> list[str]:
        """Names compared as labels of tables are, but without case and the kind of separator."""
        return [same(name) for name in plain_texts(names, ())]

    def identify(self, path: Path, sha256: str, options: Mapping[str, str]) -> Identified | None:
        """Recognises folders of two or more domains; how they lie is said, or doubted."""
        if not options.keys() <= IMAGE_OPTIONS or not (path.is_dir() or is_archive(path)):
            return None
        files = files_of(path)
        layout, nested = layout_of(files.images)
        data = with_patterns(self, options)
        images = []
        for image in placed(files.images, layout):
            is_test = data.is_test(image.row.name)
            images.append(image._replace(part="test") if is_test else image)
        tree, classes = self._tree(images, ())
        if len(tree) < len(("source", "target")):
            return None
        doubts = list(_doubts(tree))
        if nested and not _explained(data.grouping, files.images, layout):
            wrong = f"nested folders, such as {images[0].row.name}, are read as {layout}/FILE"
            doubts.insert(0, f"{wrong}; move them, or correct `layout` in the suite")
        params = {"domains": list(tree), "classes": len(classes), "layout": layout, **folder_params(path, sha256)}
        what = f"images of {len(tree)} domains, {layout.removeprefix('**/')}/FILE"
        return identified(data, what, tree, files, params, classes, doubts, layout)


def _explained(pattern: str | None, rows: Sequence[Row], layout: str) -> bool:
    """Whether the images of each group share the name of a folder that is neither domain nor class."""
    if pattern is None:
        return False
    free = [place for place, word in enumerate(layout.split("/")) if word in {"*", "**"}]
    for row in rows:
        name = row.name.removeprefix("./")
        match = re.search(pattern, name)
        folders = name.split("/")[:-1]
        free_folders = [folders[place] for place in free if place < len(folders)]
        if match is None or match[0].strip("/") not in free_folders:
            return False
    return True
