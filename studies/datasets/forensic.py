"""Looks at the rows of the built-in datasets for flaws that need no training to be seen.

`python studies/datasets/forensic.py` writes forensic.csv beside it, from the files that are on this machine.
`python studies/datasets/forensic.py NAME ...` measures these datasets anew and keeps the other rows.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from msda_bench.api import Array, Dataset, DomainData, Inputs
from msda_bench.data import LocalFiles
from msda_bench_builtin import datasets as built_in

MEASURED = Path(__file__).parent / "forensic.csv"
DATASETS = {
    "amazon": built_in.Amazon(),
    "opinions": built_in.Opinions(),
    "crises": built_in.Crises(),
    "fonts": built_in.Fonts(),
    "music": built_in.Music(),
    "pacs": built_in.Pacs(copies="q72", side=32),
    "hospitals": built_in.Hospitals(),
    "reactor": built_in.Reactor(),
    "solubility": built_in.Solubility(),
    "spoken_digits": built_in.SpokenDigits(),
    "watch": built_in.Watch(),
    "intents": built_in.Intents(),
    "gas_drift": built_in.GasDrift(),
    "digits": built_in.Digits(domains=("mnist", "svhn"), copies="reduced"),
}
_LEAVES, _FOLDS = 8, 5


def measure(domains: Mapping[str, DomainData], classes: int) -> dict[str, Any]:
    """What is odd about the rows of a dataset, in percent of its rows unless it is a number of something.

    Args:
        domains: the rows of each domain.
        classes: of the task.

    Returns:
        rows; copies: rows equal to an earlier one of their domain; elsewhere: rows equal to one of another domain;
        contradicting: rows of which an equal one has another label; constant: columns that are the same in all rows of
        a domain, but not in all rows, in the domain with the most; lacking: domains without an example of some class;
        neighbours: rows with the label of the row before, less what a random order would give; class_by_place,
        class_by_size and domain_by_size: accuracy of a tree with eight leaves that sees a row's place in its domain, or
        its size, alone, in five folds, less the share of the most frequent.
    """
    names = list(domains)
    digests = {name: _digests(domains[name].x) for name in names}
    labels = np.concatenate([domains[name].y for name in names])
    places = np.repeat(np.arange(len(names)), [len(domains[name].y) for name in names])
    sizes = np.concatenate([_sizes(domains[name].x) for name in names])
    rows = pd.DataFrame({"digest": [one for name in names for one in digests[name]], "y": labels, "domain": places})
    by_text = rows.groupby("digest")
    varying = np.any([_varying(domains[name].x) for name in names], axis=0) | _differing(domains)
    return {
        "rows": len(rows),
        "copies": 100 * float(rows.duplicated(["digest", "domain"]).mean()),
        "elsewhere": 100 * float((by_text["domain"].transform("nunique") > 1).mean()),
        "contradicting": 100 * float((by_text["y"].transform("nunique") > 1).mean()),
        "constant": max(int((varying & ~_varying(domains[name].x)).sum()) for name in names),
        "lacking": sum(len(np.unique(domains[name].y)) < classes for name in names),
        "neighbours": 100 * float(np.mean([_neighbours(domains[name].y) for name in names])),
        "class_by_place": float(np.mean([_told(np.arange(len(domains[name].y)), domains[name].y) for name in names])),
        "class_by_size": _told(sizes, labels),
        "domain_by_size": _told(sizes, places),
    }


def _digests(x: Inputs) -> list[str]:
    return [hashlib.sha256(part).hexdigest() for part in _bytes_of_rows(x)]


def _bytes_of_rows(x: Inputs) -> Iterator[bytes]:
    if isinstance(x, np.ndarray):
        yield from (row.tobytes() for row in x)
        return
    for start, end in zip(x.indptr[:-1], x.indptr[1:], strict=True):
        yield x.indices[start:end].tobytes() + x.data[start:end].tobytes()


def _sizes(x: Inputs) -> Array:
    """Of a bag of words how many there are; else the mean of a row's absolute numbers."""
    if not isinstance(x, np.ndarray):
        return np.asarray(x.sum(axis=1), np.float64).ravel()
    return np.array([np.abs(row.astype(np.float64)).mean() for row in x])


def _varying(x: Inputs) -> Array:
    """Which columns differ between rows; none of a bag of words or an image is looked at."""
    if not isinstance(x, np.ndarray) or x.dtype == np.uint8:
        return np.zeros(1, bool)
    varying: Array = x.max(axis=0) > x.min(axis=0)
    return varying


def _differing(domains: Mapping[str, DomainData]) -> Array:
    """Which columns differ between the first rows of the domains."""
    firsts = [domain.x[:1] for domain in domains.values()]
    if not all(isinstance(first, np.ndarray) and first.dtype != np.uint8 for first in firsts):
        return np.zeros(1, bool)
    return _varying(np.concatenate(firsts))


def _neighbours(y: Array) -> float:
    shares = np.bincount(y) / len(y)
    return float((y[1:] == y[:-1]).mean() - (shares**2).sum())


def _told(sizes: Array, of: Array) -> float:
    order = np.random.default_rng(0).permutation(len(of))
    tree = DecisionTreeClassifier(max_leaf_nodes=_LEAVES, random_state=0)
    right = cross_val_score(tree, sizes[order, None], of[order], cv=_FOLDS).mean()
    return 100 * float(right - np.bincount(of).max() / len(of))


def _measured(data: Dataset) -> dict[str, Any]:
    files = LocalFiles(dataset=data.name)
    return measure({name: data.load(name, files) for name in data.domains}, data.task.classes)


def main(names: list[str]) -> None:
    """Measures the datasets and writes the table."""
    kept = pd.read_csv(MEASURED, index_col="dataset") if names and MEASURED.exists() else pd.DataFrame()
    for name in names or DATASETS:
        row = _measured(DATASETS[name])
        print(name, row, flush=True)
        kept = pd.concat([kept.drop(index=name, errors="ignore"), pd.DataFrame(row, index=[name])])
    table = kept.reindex([name for name in DATASETS if name in kept.index])
    table.round(2).to_csv(MEASURED, index_label="dataset")


if __name__ == "__main__":
    main(sys.argv[1:])
