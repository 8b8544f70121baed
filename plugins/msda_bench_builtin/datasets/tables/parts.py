"""Reads domains, labels, groups and predictions from the columns or arrays that a file of the user's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from msda_bench.api import Array, DataError, Task
from msda_bench_builtin.datasets.tables.read import Column, listed

Mode = Literal["auto", "classification", "regression"]
_MOST_DOMAINS = 500
_MOST_CLASSES = 1000
_MANY = 20
"""More different labels than this, one of them with a fraction, are a regression's."""


class RowsError(DataError):
    """What `data identify` mends in a first suite; elsewhere it is a line like others."""

    def __reduce__(self) -> tuple[type[DataError], tuple[str, ...]]:
        return DataError, self.lines


class NoLabelsError(RowsError):
    """Rows have no label."""

    def __init__(self, path: Path, what: str) -> None:
        self.what = what
        remedy = (
            "set `unlabelled: drop` to leave such rows out (docs/own-data.md says what can be known without labels)"
        )
        super().__init__(f"{path}: {what}; {remedy}")


class OneClassError(RowsError):
    """A domain has one class alone."""

    def __init__(self, path: Path, domain: str, label: str) -> None:
        self.domain = domain
        self.what = f"domain {domain!r} has one class alone, {label!r}"
        super().__init__(f"{path}: {self.what}; add rows of another, or name the domain in `leave_out`")


@dataclass(frozen=True)
class Roles:
    """How messages call the parts of a file, such as "column 'site'"."""

    path: Path
    domain: str
    label: str
    group: str


def domains_in(
    roles: Roles, domain: Column, label: Column, *, leave_out: Sequence[str], unlabelled: str
) -> dict[str, Array]:
    """The rows of each domain that have a label; all rows of one without any, if `unlabelled` makes it a target.

    Raises:
        DataError: a row has no domain or, unless those are dropped, no label; or there are too few domains, or too
            many.
    """
    path = roles.path
    if (domain.codes < 0).any():
        raise DataError(f"{path}: row {int(np.argmax(domain.codes < 0)) + 1} has no {roles.domain}; name its domain")
    unknown = [name for name in leave_out if name not in domain.texts]
    if unknown:
        raise DataError(f"{path}: `leave_out` names {unknown[0]!r}; the domains are {listed(domain.texts)}")
    if len(domain.texts) > _MOST_DOMAINS:
        what = f"{roles.domain} has {len(domain.texts)} different values, and at most {_MOST_DOMAINS} can be domains"
        raise DataError(f"{path}: {what}; name another column")
    kept = [place for place, name in enumerate(domain.texts) if name not in leave_out]
    lacking = np.isin(domain.codes, kept) & (label.codes < 0)
    if lacking.any() and unlabelled == "refuse":
        raise NoLabelsError(path, _without_label(roles, domain, lacking))
    rows = {domain.texts[place]: np.flatnonzero((domain.codes == place) & (label.codes >= 0)) for place in kept}
    if unlabelled == "target":
        whole = {domain.texts[place]: np.flatnonzero(domain.codes == place) for place in kept}
        rows = {name: mine if len(mine) else whole[name] for name, mine in rows.items()}
    labelled = {name: mine for name, mine in sorted(rows.items(), key=_first_row) if len(mine)}
    if not (label.codes[np.isin(domain.codes, kept)] >= 0).any():
        raise DataError(f"{path}: has no row with a label; adaptation needs two or more domains ({roles.domain})")
    if len(labelled) < len(("source", "target")):
        what = f"has one domain, {next(iter(labelled))!r}; adaptation needs two or more ({roles.domain})"
        raise DataError(f"{path}: {what}")
    return labelled


def _first_row(item: tuple[str, Array]) -> int:
    return int(item[1][0]) if len(item[1]) else -1


def _without_label(roles: Roles, domain: Column, lacking: Array) -> str:
    row = int(np.argmax(lacking))
    name = domain.texts[int(domain.codes[row])]
    of_it = domain.codes == domain.codes[row]
    who = (
        f"domain {name!r} has no labels at all" if lacking[of_it].all() else f"row {row + 1} (domain {name!r}) has none"
    )
    return f"{int(lacking.sum())} rows have no {roles.label}: {who}"


def labels_in(
    roles: Roles, label: Column, rows: Mapping[str, Array], mode: Mode
) -> tuple[Array, Task, tuple[str, ...]]:
    """Labels of all rows (-1 or NaN where there is none), the task, and the names of the classes.

    Raises:
        DataError: a label is no number in a regression; there are too many classes, or one alone in a domain.
    """
    path, label = roles.path, label.merged()
    numbers = label.numbers()
    lacking = without_labels(rows, label)
    rows = {name: mine for name, mine in rows.items() if name not in lacking}
    used = np.unique(np.concatenate([label.codes[mine] for mine in rows.values()]))
    real = bool(np.isfinite(numbers[used]).all())
    fractions = real and len(used) > _MANY and bool((numbers[used] % 1 != 0).any())
    infinite = not real and not np.isnan(numbers[used]).any()  # all are numbers, which is no choice of classes
    if mode == "regression" or (mode == "auto" and (fractions or infinite)):
        if not real:
            text = label.texts[int(used[int(np.argmin(np.isfinite(numbers[used])))])]
            raise DataError(f"{path}: {roles.label} holds {text!r}, which is no finite number; correct it")
        values = np.append(numbers, np.nan)
        if (abs(values[used]) > np.finfo(np.float32).max).any():
            raise DataError(f"{path}: {roles.label} holds numbers that are too large for float32; scale them")
        return values[label.codes], Task("regression"), ()
    if len(used) > _MOST_CLASSES:
        what = f"{roles.label} has {len(used)} different values, and at most {_MOST_CLASSES} can be classes"
        raise DataError(f"{path}: {what}; set `task: regression`, or name another column")
    if len(used) == 1:
        raise DataError(
            f"{path}: {roles.label} is {label.texts[int(used[0])]!r} in all rows; there is nothing to predict"
        )
    order = sorted(used, key=lambda place: (numbers[place] if real else 0, label.texts[place]))
    places = np.full(len(label.texts) + 1, -1, np.int64)
    places[order] = np.arange(len(order))
    for name, mine in rows.items():
        if len(kinds := np.unique(label.codes[mine])) == 1:
            raise OneClassError(path, name, label.texts[int(kinds[0])])
    classes = tuple(label.texts[place] for place in order)
    return places[label.codes], Task("classification", len(classes)), classes


def without_labels(rows: Mapping[str, Array], label: Column) -> tuple[str, ...]:
    """The domains without any label."""
    return tuple(name for name, mine in rows.items() if (label.codes[mine] < 0).all())


def predictions_in(
    path: Path, part: str, column: Column, rows: Mapping[str, Array], task: Task, classes: tuple[str, ...]
) -> Array:
    """Outputs of all rows: 1 for the predicted class, or the predicted number; NaN for a row without a prediction.

    Raises:
        DataError: a row predicts no class, or no number.
    """
    column = column.merged()
    used = np.unique(np.concatenate([column.codes[mine] for mine in rows.values()]))
    used = used[used >= 0]
    if task.kind == "regression":
        outputs = np.append(column.numbers(), np.nan)[:, None]
        wrong, what = ~np.isfinite(outputs[used, 0]), "which is no finite number"
    else:
        outputs = np.full((len(column.texts) + 1, len(classes)), np.nan, np.float32)
        for place, text in enumerate(column.texts):
            outputs[place] = [name == text for name in classes]
        wrong, what = ~(outputs[used] == 1).any(1), f"which is none of the classes {listed(classes, 20)}"
    if wrong.any():
        text = column.texts[int(used[int(np.argmax(wrong))])]
        raise DataError(f"{path}: {part} holds {text!r}, {what}; correct it, or leave it empty")
    return outputs[column.codes]


def groups_in(roles: Roles, group: Column | None, rows: Mapping[str, Array]) -> tuple[Array | None, bool]:
    """The group of each row, and whether one has rows in several domains.

    Raises:
        DataError: a row has no group, or all rows of a domain are of one.
    """
    if group is None:
        return None, False
    by = {name: np.unique(group.codes[mine]) for name, mine in rows.items()}
    for name, kinds in by.items():
        if kinds[0] < 0:
            row = int(rows[name][int(np.argmax(group.codes[rows[name]] < 0))])
            raise DataError(f"{roles.path}: row {row + 1} has no {roles.group}; give each row a group, even its own")
        if len(kinds) == 1:
            what = f"all rows of domain {name!r} are of one group, {group.texts[int(kinds[0])]!r}"
            raise DataError(f"{roles.path}: {what}, so they cannot be split; name another {roles.group}")
    names = np.array([*group.texts, ""], np.str_)
    return names[group.codes], len(np.unique(np.concatenate(list(by.values())))) < sum(map(len, by.values()))
