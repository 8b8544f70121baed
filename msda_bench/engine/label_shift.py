"""Changes of labels that a suite asks for: shuffled labels, shifted class shares, and the correction for a shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, DataError, Dataset, DomainData
from msda_bench.component.dataset import corrupted_source, shifted_domain
from msda_bench.component.sizes import is_transductive
from msda_bench.data.splits import Split
from msda_bench.engine.settings import stream_key
from msda_bench.functional import random_bits, uniform
from msda_bench.suite.run_spec import RunSpec

_LEAST_DRAW = 2.0**-25
_ROUNDS, _CLOSE = 10_000, 1e-10
_LEAST = 1e-12
"""The lowest ratio of shares: a class that the target seems to lack stays finite in logarithms."""


def corrupted(
    dataset: Dataset,
    cell: RunSpec,
    domains: Mapping[str, DomainData],
    splits: Mapping[str, Split],
) -> dict[str, DomainData]:
    """The source whose labels are shuffled, if any: separately within its training and its held-out examples."""
    source = corrupted_source(dataset)
    if source is None or source not in cell.sources:
        return {}
    y = domains[source].y.copy()
    parts = {"train": splits[source].train, "test": splits[source].test}
    for part, rows in parts.items():
        key = stream_key(cell, "corrupt", source, part)
        bits = random_bits(key, torch.arange(len(rows), dtype=torch.int32))
        order = bits.argsort(stable=True).numpy()
        y[rows] = y[rows[order]]
    return {source: replace(domains[source], y=y)}


def shifted(
    dataset: Dataset,
    cell: RunSpec,
    domains: Mapping[str, DomainData],
    splits: Mapping[str, Split],
) -> Mapping[str, Split]:
    """The splits with the classes of one domain in other shares, by leaving out rows; the same for every method.

    Rows are left out of the training and of the test (or held-out) part separately, as few as possible, the last ones
    in the split's random order.

    Raises:
        DataError: a class has no row in a part where it should have a share.
    """
    domain = shifted_domain(dataset, cell.target)
    if domain is None or domain not in splits:
        return splits
    y = domains[domain].y
    parts = {"train": splits[domain].train, "test": splits[domain].test}
    if domain == cell.target and is_transductive(dataset):
        del parts["test"]
    counts: dict[str, Array] = {}
    for name, rows in parts.items():
        if len(rows):
            counts[name] = np.bincount(y[rows], minlength=dataset.task.classes)
    there = np.logical_and.reduce([count > 0 for count in counts.values()])
    shares = _shares(dataset, cell, domain, there)
    asked = shares > 0
    for name, count in counts.items():
        total = (count[asked] / shares[asked]).min()
        most = np.floor(shares * total + _CLOSE).astype(np.int64)
        if not most.sum():
            why = f"has too few {name} examples"
            lacking = np.flatnonzero(asked & (count == 0))
            if len(lacking):
                why = f"has no {name} example of class {lacking[0]}"
            what = f"{domain!r} {why} for the shares of `label_shift`"
            raise DataError(f"dataset {dataset.name}: {what}; set other shares, or another `train`")
        parts[name] = _first(parts[name], y[parts[name]], most)
    train = parts["train"]
    return {**splits, domain: Split(train, parts.get("test", train))}


def _shares(dataset: Dataset, cell: RunSpec, domain: str, there: Array) -> Array:
    """The shares that the suite gives; or those of the classes that are there, from a symmetric Dirichlet distribution.

    A Dirichlet draw is one of normalised gamma variates.
    """
    wanted: Mapping[str, Any] = dataset.label_shift or {}
    if "shares" in wanted:
        return np.asarray(wanted["shares"], np.float64)
    from scipy.special import gammaincinv

    key = stream_key(cell, "label_shift", domain)
    draws = uniform(key, (len(there),)).double().numpy()
    variates = gammaincinv(wanted["dirichlet"], np.maximum(draws, _LEAST_DRAW))
    gammas = np.where(there, variates, 0.0)
    return np.asarray(gammas / gammas.sum())


def _first(rows: Array, labels: Array, most: Array) -> Array:
    """The first rows of each class, at most so many, in their order."""
    number = np.zeros(len(rows), np.int64)
    for label in np.unique(labels):
        (of_class,) = np.nonzero(labels == label)
        number[of_class] = np.arange(len(of_class))
    return rows[number < most[labels]]


def correction(outputs: Tensor, shares: Tensor) -> Tensor:
    """The correction of logits for the target's class shares: log of estimated over training shares, (classes,).

    The target's shares are estimated by EM (Saerens, Latinne and Decaestecker 2002): they maximise the likelihood of
    the examples if the class-conditional distributions are those of training, and the predicted probabilities are
    right for these.

    Args:
        outputs: (n, classes) logits of the target's unlabelled training examples.
        shares: (classes,) float64 of the training examples; a class without any keeps none.
    """
    p = torch.softmax(outputs.double(), 1)
    tiny = torch.finfo(p.dtype).tiny
    there = shares > 0
    known = shares.where(there, torch.ones_like(shares))
    estimate = shares
    for _ in range(_ROUNDS):
        before = estimate
        joint = p * torch.where(there, estimate / known, 0.0)
        posterior = joint / joint.sum(1, keepdim=True).clamp(min=tiny)
        estimate = posterior.mean(0)
        if (estimate - before).abs().max() < _CLOSE:
            break
    ratios = torch.where(there, estimate / known, 0.0)
    return ratios.clamp(min=_LEAST).log().to(outputs.dtype)
