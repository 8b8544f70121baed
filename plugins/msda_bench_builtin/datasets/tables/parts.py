"""Domains, labels, groups and predictions of the rows of a user's file."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from msda_bench.api import Array, DataError, Task
from msda_bench.functional import MISSING_TEXTS, alike, plain_texts
from msda_bench_builtin.datasets.tables.numbers import gaps_among
from msda_bench_builtin.datasets.tables.official import Marked, mask_of
from msda_bench_builtin.datasets.tables.read import Column
from msda_bench_builtin.datasets.tables.texts import names_text

Mode = Literal["auto", "classification", "regression"]
Unlabelled = Literal["refuse", "drop", "target"]
_MOST_DOMAINS = 500
_MOST_CLASSES = 1000
_MANY = 20
"""More different labels than this, one of them with a fraction, are a regression's."""


@dataclass(frozen=True, eq=False)
class Roles:
    """The columns of a file that are no inputs, and how messages call them, such as "domain (column 'site')"."""

    path: Path
    domain: Column
    label: Column
    group: Column | None
    names: tuple[str, ...]
    gaps: frozenset[str]
    """Texts that stand for missing values in any column."""
    test: Marked | None = None
    """What marks official test rows."""

    def hint(self, column: Column) -> str:
        """What a missing value of a column may be instead."""
        if not column.gaps:
            return ""
        what = f"where {names_text(sorted(map(repr, column.gaps)))} stands for a missing value"
        return f", {what}; {option(self.gaps - column.gaps)} reads it as a name"


def option(missing: Collection[str]) -> str:
    """How to say which texts stand for missing values."""
    return f"`--missing={shlex.quote(','.join(sorted(missing)))}` (or `missing` in a suite)"


def missing_in(missing: Collection[str]) -> tuple[tuple[str, ...], dict[str, list[str]]]:
    """The texts that stand for missing values in every column, and those of one, written `COLUMN=TEXT`."""
    everywhere: list[str] = []
    own: dict[str, list[str]] = {}
    for item in missing:
        name, equals, text = item.rpartition("=")
        if equals:
            own.setdefault(name, []).append(text)
        else:
            everywhere.append(text)
    return tuple(everywhere), own


@dataclass(frozen=True, eq=False)
class Parts:
    """What a file says of its rows.

    Attributes:
        rows: of each domain, in the order of their first rows: where they lie in the file.
        places: of each domain, where these rows lie among all of it; only of domains that lack some.
        y: labels of all rows; -1 or NaN where there is none.
        task: the prediction task.
        classes: the names of the classes.
        groups: of all rows, or None.
        shared: whether a group has rows in several domains.
        unlabelled: domains without any label.
        gaps: texts that stand for missing values somewhere in the file.
        coded: numbers to predict that may stand for no label, as they are written.
        test: which rows are official test rows, or None.
    """

    rows: Mapping[str, Array]
    places: Mapping[str, Array]
    y: Array
    task: Task
    classes: tuple[str, ...]
    groups: Array | None
    shared: bool
    unlabelled: tuple[str, ...]
    gaps: frozenset[str]
    coded: tuple[str, ...] = ()
    test: Array | None = None

    def label_places(self, rows: Array) -> Array:
        """The place of these rows' labels among the classes or the sorted numbers, -1 where there is none."""
        y = self.y[rows]
        if self.classes:
            return y.astype(np.int64)
        _, places = np.unique(y, return_inverse=True)
        return np.where(np.isfinite(y), places.reshape(-1), -1)

    def doubts(self) -> Iterator[str]:
        """A line on each name that may mean something else."""
        alone = self._alone()
        groups = () if self.groups is None else np.unique(self.groups).tolist()
        every: dict[str, Collection[str]] = {"domains": self.rows, "classes": self.classes, "groups": groups}
        for what, names in every.items():
            pairs = [" and ".join(map(repr, same)) for same in alike(names)]
            if pairs:
                yield f"{names_text(pairs, 3)} count as different {what}; write them alike if they are the same"
            odd = [*filter(may_be_missing, names)]
            if what == "classes":
                odd += _masks(names, alone)
            if odd and len(odd) < len(names):
                remedy = f"{option({*self.gaps, odd[0]})} says so"
                yield f"{odd[0]!r} among the {what} may stand for a missing value; {remedy}"
        if self.coded:
            what = f"{names_text(self.coded)} repeats far outside of all other labels, so it may stand for no label"
            yield f"{what}; {option({*self.gaps, *self.coded})} says so"
        strange = []
        for name, classes in alone.items():
            here = np.unique(self.y[self.rows[name]])
            if len(classes) == len(here):
                strange.append(name)
        if strange:
            remedy = "correct the labels, or remove the rows of these domains"
            yield f"domains without a class of another domain, {names_text(strange)}; {remedy}"

    def remarks(self) -> Iterator[str]:
        """Lines on official test rows, and on classes that only one domain has or that some domains do not have."""
        if self.test is not None:
            yield self._tested(self.test)
            yield from self._one_sided(self.test)
        for name, classes in self._alone().items():
            yield f"only {name} has the classes {names_text(classes)}: no source can teach them when it is the target"
        yield from self._lacking()

    def _lacking(self) -> Iterator[str]:
        """A line on classes that several domains have and others do not."""
        alone = set[str]().union(*self._alone().values())
        some: list[str] = []
        for name, rows in self.rows.items():
            if name in self.unlabelled:
                continue
            here = np.unique(self.y[rows])
            lacking = [kind for place, kind in enumerate(self.classes) if place not in here and kind not in alone]
            if lacking:
                some.append(f"{name} has no row of {names_text(lacking, 6)}")
        if some:
            yield f"classes: {names_text(some, 6)}; methods answer them there all the same"

    def _tested(self, test: Array) -> str:
        """How many official test rows each domain has."""
        some: list[str] = []
        none: list[str] = []
        for name, rows in self.rows.items():
            count = int(test[rows].sum())
            if count:
                some.append(f"{name} {count} of {len(rows)}")
            elif name not in self.unlabelled:
                none.append(name)
        line = f"official test rows: {names_text(some)}"
        if not none:
            return line
        return f"{line}; none in {names_text(none)}, where each run draws its own"

    def _one_sided(self, test: Array) -> Iterator[str]:
        """A line on each domain whose official test rows, or training rows, do not have all of its classes."""
        if not self.classes:
            return
        for name, rows in self.rows.items():
            if not test[rows].any():
                continue
            here = np.unique(self.y[rows])
            sides = {"official test": rows[test[rows]], "training": rows[~test[rows]]}
            for what, side in sides.items():
                lacking = np.setdiff1d(here, self.y[side])
                if len(lacking):
                    classes = names_text([self.classes[place] for place in lacking])
                    yield f"the {what} rows of {name} lack the classes {classes}"

    def _alone(self) -> dict[str, list[str]]:
        """The classes that only one domain has, by domain."""
        labelled = [name for name in self.rows if name not in self.unlabelled]
        if not self.classes or len(labelled) == 1:
            return {}
        kinds = {name: np.unique(self.y[self.rows[name]]).tolist() for name in labelled}
        domains = Counter(label for labels in kinds.values() for label in labels)
        alone: dict[str, list[str]] = {}
        for name, labels in kinds.items():
            classes = [self.classes[label] for label in labels if domains[label] == 1]
            if classes:
                alone[name] = classes
        return alone


_LACKING = {text.casefold() for text in (*MISSING_TEXTS, "#null!", "k.a", "missing", "n.a", "n.a.", "unknown")}
_MASK = re.compile(r"-\d+|9{2,}")
"""Numbers that often stand for no label."""


def _masks(classes: Collection[str], alone: Mapping[str, Sequence[str]]) -> list[str]:
    """Classes that are such numbers and occur in one domain each; none if a class of several domains is one, too."""
    of_one = set[str]().union(*alone.values())
    masks = sorted(filter(_MASK.fullmatch, classes))
    return masks if of_one.issuperset(masks) else []


def may_be_missing(text: str) -> bool:
    """Whether a text that counts as a value looks like one that stands for none."""
    if text in MISSING_TEXTS:
        return False
    return text.casefold() in _LACKING or not any(map(str.isalnum, text))


def parts_of(roles: Roles, *, leave_out: Sequence[str], unlabelled: Unlabelled, mode: Mode) -> Parts:
    """The domains, labels and groups of a file.

    Raises:
        DataError: a line on what cannot be used.
    """
    domain, label = roles.domain.named, roles.label.named
    rows, places = _domains(roles, domain, label, leave_out, unlabelled)
    lacking = tuple(name for name, mine in rows.items() if (label.codes[mine] < 0).all())
    labelled = {name: mine for name, mine in rows.items() if name not in lacking}
    y, task, classes = _labels(roles, label, labelled, mode)
    groups, shared = _groups(roles, rows)
    coded = () if classes else _coded(label, np.concatenate([*labelled.values()]))
    test = None if roles.test is None else mask_of(roles.path, roles.test, labelled, groups)
    return Parts(rows, places, y, task, classes, groups, shared, lacking, roles.gaps, coded, test)


def _coded(label: Column, rows: Array) -> tuple[str, ...]:
    """Numbers among those to predict that surely stand for a gap."""
    values, counts = np.unique(label.numbers[label.codes[rows]], return_counts=True)
    gaps = [gap.value for gap in gaps_among(values, counts) if gap.certain]
    places = np.flatnonzero(np.isin(label.numbers, gaps))
    return tuple(label.texts[place] for place in places)


def _domains(
    roles: Roles,
    domain: Column,
    label: Column,
    leave_out: Sequence[str],
    unlabelled: Unlabelled,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The rows of each domain that have a label, all of one without any if it may be a target; and their places."""
    path, name = roles.path, roles.names[0]
    _refuse_domains(roles, domain, leave_out)
    whole: dict[str, Array] = {}
    for place, text in enumerate(domain.texts):
        if text not in leave_out:
            whole[text] = np.flatnonzero(domain.codes == place)
    rows = {text: mine[label.codes[mine] >= 0] for text, mine in whole.items()}
    if unlabelled == "refuse":
        _refuse_unlabelled(roles, whole, rows)
    if not any(map(len, rows.values())):
        raise DataError(f"{path}: has no row with a label; adaptation needs two or more domains ({name})")
    if unlabelled == "target":
        rows = {text: mine if len(mine) else whole[text] for text, mine in rows.items()}
    first_rows = {text: int(mine[0]) for text, mine in rows.items() if len(mine)}
    order = sorted(first_rows, key=first_rows.__getitem__)
    if len(order) < len(("source", "target")):
        raise DataError(f"{path}: has one domain, {order[0]!r}; adaptation needs two or more ({name})")
    rows = {text: rows[text] for text in order}
    partly = [text for text in order if len(rows[text]) < len(whole[text])]
    return rows, {text: np.searchsorted(whole[text], rows[text]) for text in partly}


def _refuse_domains(roles: Roles, domain: Column, leave_out: Sequence[str]) -> None:
    path, name = roles.path, roles.names[0]
    if (domain.codes < 0).any():
        row = int(np.argmax(domain.codes < 0)) + 1
        remedy = "name its domain, or remove the row"
        raise DataError(f"{path}: row {row} has no {name}{roles.hint(roles.domain)}; {remedy}")
    for text in leave_out:
        if text not in domain.texts:
            raise DataError(f"{path}: `leave_out` names {text!r}; the domains are {names_text(domain.texts)}")
    if len(domain.texts) > _MOST_DOMAINS:
        what = f"{name} has {len(domain.texts)} different values, and at most {_MOST_DOMAINS} can be domains"
        raise DataError(f"{path}: {what}; name another column")


def _refuse_unlabelled(roles: Roles, whole: Mapping[str, Array], labelled: Mapping[str, Array]) -> None:
    lacking = {text: np.setdiff1d(whole[text], labelled[text]) for text in whole}
    count = sum(map(len, lacking.values()))
    if not count:
        return
    row, domain = min((int(rows[0]), text) for text, rows in lacking.items() if len(rows))
    who = f"domain {domain!r} has no labels at all"
    if len(labelled[domain]):
        who = f"row {row + 1} (domain {domain!r}) has none"
    what = f"{count} rows have no {roles.names[1]}: {who}{roles.hint(roles.label)}"
    remedy = "set `unlabelled: drop` to leave such rows out (docs/own-data.md says what can be known without labels)"
    raise DataError(f"{roles.path}: {what}; {remedy}")


def is_regression(numbers: Array, mode: Mode) -> bool:
    """Whether different labels are numbers to predict; NaN stands for other texts."""
    if mode != "auto":
        return mode == "regression"
    if np.isnan(numbers).any():
        return False
    if np.isinf(numbers).any():  # which is no class
        return True
    return len(numbers) > _MANY and bool((numbers % 1 != 0).any())


def _labels(roles: Roles, label: Column, rows: Mapping[str, Array], mode: Mode) -> tuple[Array, Task, tuple[str, ...]]:
    """Labels of all rows (-1 or NaN where there is none), the task, and the names of the classes."""
    used = np.unique(np.concatenate([label.codes[mine] for mine in rows.values()]))
    if is_regression(label.numbers[used], mode):
        return _numbers(roles, label, used), Task("regression"), ()
    path, name, numbers = roles.path, roles.names[1], label.numbers
    if len(used) > _MOST_CLASSES:
        what = f"{name} has {len(used)} different values, and at most {_MOST_CLASSES} can be classes"
        raise DataError(f"{path}: {what}; set `task: regression` (`--task regression`), or name another column")
    if len(used) == 1:
        raise DataError(f"{path}: {name} is {label.texts[int(used[0])]!r} in all rows; there is nothing to predict")
    for domain, mine in rows.items():
        kinds = np.unique(label.codes[mine])
        if len(kinds) == 1:
            what = f"domain {domain!r} has one class alone, {label.texts[int(kinds[0])]!r}"
            raise DataError(f"{path}: {what}; add rows of another, or name the domain in `leave_out`")
    by_number = bool(np.isfinite(numbers[used]).all())
    order = sorted(used, key=lambda place: (numbers[place] if by_number else 0, label.texts[place]))
    places = np.full(len(label.texts) + 1, -1, np.int64)
    places[order] = np.arange(len(order))
    classes = tuple(label.texts[place] for place in order)
    return places[label.codes], Task("classification", len(classes)), classes


def _numbers(roles: Roles, label: Column, used: Array) -> Array:
    """Labels of all rows as numbers, NaN where there is none."""
    numbers = label.numbers[used]
    what = f"{roles.path}: {roles.names[1]} holds"
    wrong = used[~np.isfinite(numbers)]
    if len(wrong):
        raise DataError(f"{what} {label.texts[int(wrong[0])]!r}, which is no finite number; correct it")
    if (abs(numbers) > np.finfo(np.float32).max).any():
        raise DataError(f"{what} numbers that are too large for float32; scale them")
    return label.values


def predictions_in(path: Path, part: str, column: Column, parts: Parts) -> Array:
    """Outputs of all rows: 1 for the predicted class, or the predicted number; NaN for a row without a prediction.

    Raises:
        DataError: a row predicts no class, or no number.
    """
    column, classes = column.named, parts.classes
    used = np.unique(np.concatenate([column.codes[mine] for mine in parts.rows.values()]))
    used = used[used >= 0]
    if not parts.task.has_classes:
        outputs = np.append(column.numbers, np.nan)[:, None]
        wrong = used[~np.isfinite(column.numbers[used])]
        what = "which is no finite number"
    else:
        texts = np.array(plain_texts([*classes, *column.texts], ()), object)
        names, given = np.split(texts, [len(classes)])
        outputs = np.full((len(given) + 1, len(classes)), np.nan, np.float32)
        outputs[:-1] = given[:, None] == names
        wrong = used[~outputs[used].any(1)]
        what = f"which is none of the classes {names_text(classes, 20)}"
    if len(wrong):
        raise DataError(f"{path}: {part} holds {column.texts[int(wrong[0])]!r}, {what}; correct it, or leave it empty")
    return outputs[column.codes]


def _groups(roles: Roles, rows: Mapping[str, Array]) -> tuple[Array | None, bool]:
    """The group of each row, and whether one has rows in several domains."""
    if roles.group is None:
        return None, False
    path, group, what = roles.path, roles.group.named, roles.names[2]
    kinds = {name: np.unique(group.codes[mine]) for name, mine in rows.items()}
    for name, mine in kinds.items():
        if mine[0] < 0:
            lacking = rows[name][group.codes[rows[name]] < 0]
            remedy = "give each row a group, even its own"
            raise DataError(f"{path}: row {int(lacking[0]) + 1} has no {what}{roles.hint(roles.group)}; {remedy}")
        if len(mine) == 1:
            one = f"all rows of domain {name!r} are of one group, {group.texts[int(mine[0])]!r}"
            raise DataError(f"{path}: {one}, so they cannot be split; name another {what}")
    every = np.concatenate([*kinds.values()])
    names = np.array([*group.texts, ""], np.str_)
    return names[group.codes], len(np.unique(every)) < len(every)
