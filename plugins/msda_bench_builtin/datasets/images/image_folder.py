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
from msda_bench_builtin.datasets.first_targets import first_targets
from msda_bench_builtin.datasets.images.dataset import (
    FIRST_SIDE,
    Images,
    Listing,
    Pattern,
    first_suite,
    what_is_missing,
)
from msda_bench_builtin.datasets.images.keys import are_keys
from msda_bench_builtin.datasets.images.listing import files_of, is_archive, listed, plain
from msda_bench_builtin.datasets.images.looked_through import (
    Placed,
    Tree,
    headers,
    how_much,
    part_of,
    parts_in,
    roles_in,
    train_of,
)
from msda_bench_builtin.datasets.images.looks import deep_line
from msda_bench_builtin.datasets.sizes import Imbalance, few_examples

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
    matches = ((row, pattern.fullmatch(row.name.removeprefix("./"))) for row in rows)
    every = [Placed(row, **match.groupdict()) for row, match in matches if match]
    parts = {(image.domain, image.part) for image in every}
    several = {domain for domain, count in Counter(domain for domain, _ in parts).items() if count > 1}
    trained = {domain for domain, part in parts if part_of(part) == "train" and plain(part) != "trainval"}
    repeats = {
        (domain, part)
        for domain, part in parts
        if (part_of(part) == "full" and domain in several) or (plain(part) == "trainval" and domain in trained)
    }
    return [image for image in every if (image.domain, image.part) not in repeats]


def layout_of(rows: Sequence[Row]) -> tuple[str, bool]:
    """The layout of a user's images, and whether nested folders may mean something else.

    A level of one name says nothing, and one of names of official parts is SPLIT. Of the others the first is DOMAIN,
    and the next whose names recur in several domains is CLASS. What is deeper than other images is below CLASS. Folders
    called as patients or slides are neither.
    """
    folders = Counter(tuple(row.name.removeprefix("./").split("/")[:-1]) for row in rows)
    for depth in sorted({len(folder) for folder in folders if len(folder) > 1}):
        below = {folder: count for folder, count in folders.items() if len(folder) >= depth}
        levels = [{folder[place] for folder in below} for place in range(depth)]
        words = ["*" if len(names) == 1 else "SPLIT" if all(map(part_of, names)) else "" for names in levels]
        keys = [place for place, names in enumerate(levels) if not words[place] and are_keys(names)]
        if words.count("") - len(keys) > 1:  # besides domains and classes
            words = ["*" if place in keys else word for place, word in enumerate(words)]
        domain, *others = [place for place, word in enumerate(words) if not word] or [0]
        if others and words.count("SPLIT") < 2:  # noqa: PLR2004
            pairs = {place: Counter(name for _, name in {(at[domain], at[place]) for at in below}) for place in others}
            recurring = [place for place in others if max(pairs[place].values()) > 1]
            words[domain], words[(recurring or others)[0]] = "DOMAIN", "CLASS"
            deeper = sum(count for folder, count in below.items() if len(folder) > depth)
            doubtful = words.index("CLASS") != others[0] or (len(others) > 1 and len(recurring) != 1)
            doubtful |= 2 * deeper > sum(below.values())
            return "/".join([*(word or "*" for word in words), *(["**"] if deeper else [])]), doubtful
    return LAST_TWO, False


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
        """Names in the form in which those that mean the same are equal."""
        return [*map(plain, names)]

    def listed(self, domain: str, files: Files) -> Listing:
        """The domain's images by class and name; odd are missing classes and folders spelt in two ways."""
        path = files.path(self.files[0])
        images = placed(files_of(path).images, self.layout)
        tree, classes = self._tree(images, self.domains)
        if domain not in tree:
            absent = [name for name in self.domains if name not in tree]
            present = {image.domain for image in images}
            held = f"domains {listed(present)}" if present else f"no {self.layout.removeprefix('**/')}/FILE"
            what = f"no images of domains {listed(absent)}; it holds {held}"
            raise DataError(f"{path}: {what}; {self._remedy('domains')}")
        if len(classes) != self.classes:
            expected = f"{self.classes} classes expected, it has {listed(classes)}"
            raise DataError(f"{path}: {expected}; {self._remedy('classes')}")
        mine = tree[domain]
        rows = [
            (image.row, place, part_of(image.part) == "test")
            for place, name in enumerate(classes)
            for image in mine.get(name, ())
        ]
        missing = set(classes) - set(mine)
        odd = [f"no images of classes {listed(missing)}"] if missing else []
        return Listing(rows, [*odd, *_merged({domain: mine})])

    def class_names(self, files: Files) -> tuple[str, ...]:
        """As most of their folders are called."""
        images = placed(files_of(files.path(self.files[0])).images, self.layout)
        return tuple(self._tree(images, self.domains)[1])

    def _marked(self, images: Sequence[Placed]) -> list[Placed]:
        """The images, of which those that `testing` says are of the part `test`."""
        return [image._replace(part="test") if self.is_test(image.row.name) else image for image in images]

    def _tree(self, images: Sequence[Placed], known: Collection[str]) -> tuple[Tree, list[str]]:
        """The images of the known domains, or of all if none is known, and the classes in order."""
        domains = self._names([image.domain for image in images], known)
        here = [image for image in images if not known or domains[image.domain] in known]
        labels = self._names([image.label for image in here])
        tree: Tree = {}
        for image in here:
            tree.setdefault(domains[image.domain], {}).setdefault(labels[image.label], []).append(image)
        return tree, [*dict.fromkeys(labels.values())]

    def _names(self, folders: Sequence[str], known: Collection[str] = ()) -> dict[str, str]:
        """For each folder, by its plain name, the known spelling, or else that of most images."""
        counts = Counter(sorted(folders))
        every = [*dict.fromkeys([*known, *counts])]
        keys = dict(zip(every, self.plain(every), strict=True))
        names: dict[str, str] = {}
        for name in [*known, *(name for name, _ in counts.most_common())]:
            names.setdefault(keys[name], name)
        return {folder: names[keys[folder]] for folder in sorted(counts, key=lambda folder: keys[folder])}

    def _remedy(self, key: str) -> str:
        return "complete the folder, or read it as an image_folder" if self.published else f"set `{key}` in the suite"

    def identify(self, path: Path, sha256: str) -> Identified | None:
        """Recognises a copy of the published set if most of its domains are there; otherwise folders of any domains."""
        if not path.is_dir() and not is_archive(path):
            return None
        files = files_of(path)
        layout, nested = (self.layout, False) if self.published else layout_of(files.images)
        tree, classes = self._tree(self._marked(placed(files.images, layout)), self.published)
        if len(tree) <= len(self.published) / 2 or len(tree) < len(("source", "target")):
            return None
        counts = {name: {label: len(images) for label, images in of.items()} for name, of in tree.items()}
        missing = [*what_is_missing(counts, self.published, self.classes if self.published else None)]
        rows = [image.row for of in tree.values() for images in of.values() for image in images]
        lines, turned = headers(rows)
        lines += [f"odd: {line}" for line in _merged(tree)]
        lines += [line] if (line := deep_line(rows)) else []
        lines += [f"turned: {turned} images, as their EXIF orientation says (`upright`)"] if turned else []
        number = f"{len(rows)} images"
        params = {"folder": path.absolute().name, "sha256": sha256, "side": FIRST_SIDE}
        params |= {"upright": True} if turned else {}
        doubts: list[str] = []
        if self.published:
            state = "incomplete, or another copy" if missing else "as many images of each domain as published"
            what = self.copies_known.get(sha256) or f"{number}; {state}"
        else:
            what = f"{number} of {len(tree)} domains, {layout.removeprefix('**/')}/FILE"
            if nested and not self._explains(rows, layout):
                wrong = f"nested folders, such as {rows[0].name}, are read as {layout}/FILE"
                doubts.append(f"{wrong}; move them, or correct `layout` in the suite")
            doubts += _doubts(tree)
            params = {"domains": list(tree), "classes": len(classes), "layout": layout, **params, **train_of(tree)}
            more, said = roles_in(self, tree, layout)
            params |= more
            lines += said
        imbalance = None if self.published else Imbalance.of(counts, classes)
        if not self.published:
            lines += few_examples(counts)
            lines += [imbalance.line] if imbalance else []
        whole = not self.published or (len(classes) == self.classes and len(tree) == len(self.published))
        return Identified(
            what,
            counts,
            (*missing, *lines, *first_targets([*counts])[1], *self.facts),
            params,
            certain=bool(self.published),
            suite=first_suite(counts, imbalance.yaml if imbalance else "") if whole else "",
            doubts=tuple(doubts),
            read=how_much(files, rows),
        )

    def _explains(self, rows: Sequence[Row], layout: str) -> bool:
        """Whether what images of one group have in common is a folder that is neither domain nor class."""
        words = layout.split("/")
        free = {place for place, word in enumerate(words) if word in {"*", "**"}}
        names = [row.name.removeprefix("./") for row in rows]
        matches = [re.search(self.grouping, name) for name in names] if self.grouping is not None else [None]
        return all(match is not None and match[0].strip("/") in _folders(match.string, free) for match in matches)


def _folders(name: str, places: Collection[int]) -> list[str]:
    """The folders of a path at these places, from the top down."""
    return [folder for place, folder in enumerate(name.split("/")[:-1]) if place in places]


def _merged(tree: Tree) -> Iterator[str]:
    """A line for domains, and one for classes, that have folders of several names."""
    images = [(domain, label, image) for domain, of in tree.items() for label, some in of.items() for image in some]
    for kind, ways in (
        ("domain", {(domain, image.domain): image.domain for domain, _, image in images}),
        ("class", {(label, image.label): f"{image.domain}/{image.label}" for _, label, image in reversed(images)}),
    ):
        spelt = Counter(name for name, _ in ways)
        if several := [place for (name, _), place in ways.items() if spelt[name] > 1]:
            yield f"{kind} folders whose names mean the same are merged, {listed(several)}"


def _doubts(tree: Tree) -> Iterator[str]:
    """Why a user's folders may mean something else."""
    for kind, names in (("domains", {*tree}), ("classes", {label for of in tree.values() for label in of})):
        parts = [name for name in names if part_of(name)]
        if len(parts) > 1:
            yield f"{kind} are named as parts of one domain are, {listed(parts)}; give each its own folder"
    for line in dict.fromkeys(line for domain, of in tree.items() for line in _merged({domain: of})):
        yield f"{line} beside each other; rename them if they mean two things"
    shared = {label for label, count in Counter(label for of in tree.values() for label in of).items() if count > 1}
    if alone := [name for name, of in tree.items() if shared.isdisjoint(of)]:
        yield f"domains without a class of another domain, {listed(alone)}; correct the names or levels of folders"
    if tests := [name for name, count in parts_in(tree).items() if not count["train"]]:
        yield f"domains of which all images are an official test, {listed(tests)}; move some to another part"


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
        if (words.count("DOMAIN"), words.count("CLASS"), words.count("SPLIT") > 1) != (1, 1, False):
            raise ValueError(f"layout is {self.layout!r}; it must name DOMAIN and CLASS once, and SPLIT at most once")

    def plain(self, names: Sequence[str]) -> list[str]:
        """As labels of tables are compared, and without case and the kind of separator."""
        return [*map(same, plain_texts(names, ()))]
