"""Loads, splits and places the data of one split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from msda_bench.api import Array, Backbone, DataError, Dataset, DomainData, Files
from msda_bench.component.sizes import is_transductive
from msda_bench.data.features import Frozen
from msda_bench.data.splits import Split, split, whole_splits
from msda_bench.engine.label_shift import corrupted, shifted
from msda_bench.engine.loaded import load_domain
from msda_bench.engine.picker import Labelled, Learned, Picker, are_bytes
from msda_bench.engine.prepared import Prepared, TrainingData
from msda_bench.engine.tensors import Unit, fits_gpu
from msda_bench.suite.run_spec import RunSpec

HELD_OUT = 1000
"""Source examples for validators, besides the training ones: at most so many a source."""


class Preparer:
    """Loads each domain once and keeps the last split, since a split's cells come one after another."""

    def __init__(self, files: Files, device: torch.device) -> None:
        self._files = files
        self._device = device
        self._loaded: object = None
        self._domains: dict[str, DomainData] = {}
        self._vectors: dict[str, Array] = {}
        self._last: tuple[object, Prepared] | None = None

    def prepare(
        self,
        dataset: Dataset,
        cell: RunSpec,
        backbone: Backbone | None = None,
    ) -> Prepared:
        """The data of the cell's split; frozen features instead of examples if the backbone has any.

        Raises:
            DataError: a file is missing or wrong, a domain does not match its declaration or is too small for the
                split, or the target is among its own sources.
        """
        frozen = None if backbone is None else Frozen.of(backbone, dataset)
        standardised = cell.standardise_labels, cell.standardise
        identity = (_identity(dataset, frozen), standardised, cell.target, cell.sources, cell.seed)
        if self._last is None or self._last[0] != identity:
            self._last = (identity, self._prepare(dataset, cell, frozen))
        return self._last[1]

    def _load(self, dataset: Dataset, domain: str, frozen: Frozen | None) -> DomainData:
        identity = _identity(dataset, frozen)
        if self._loaded != identity:
            self._loaded = identity
            self._domains = {}
            self._vectors = {}
        if domain not in self._domains:
            data = load_domain(replace(dataset), domain, self._files)
            self._domains[domain] = self._embedded(data, domain, frozen)
        return self._domains[domain]

    def _embedded(self, data: DomainData, domain: str, frozen: Frozen | None) -> DomainData:
        """A domain with frozen features in place of its examples; those beside others are kept apart."""
        if frozen is None:
            return data
        vectors = frozen.features(data, self._files, str(self._device))
        if not frozen.beside:
            return replace(data, x=vectors)
        self._vectors[domain] = vectors
        return data

    def _prepare(self, dataset: Dataset, cell: RunSpec, frozen: Frozen | None) -> Prepared:
        if cell.target in cell.sources:  # its labels would be seen
            raise DataError(
                f"dataset {dataset.name}: target {cell.target!r} is among its own sources; report it to its author"
            )
        domains = {name: self._load(dataset, name, frozen) for name in (*cell.sources, cell.target)}
        drawn = split(dataset, cell.target, domains, seed=cell.seed)
        splits = shifted(dataset, cell, domains, drawn)
        domains |= corrupted(dataset, cell, domains, splits)
        pick = self._picker(dataset, cell, frozen, domains, splits)
        return _prepared(dataset, cell, frozen, pick, splits)

    def prepare_whole(
        self,
        dataset: Dataset,
        cell: RunSpec,
        backbone: Backbone,
        target: DomainData,
    ) -> tuple[Prepared, Picker]:
        """Prepares all examples of the sources, and of a target that the dataset does not have, to be trained on.

        Returns:
            Them, without any test, and what takes rows of each domain through what was learned.

        Raises:
            DataError: as `prepare`.
        """
        frozen = Frozen.of(backbone, dataset)
        domains = {name: self._load(dataset, name, frozen) for name in cell.sources}
        domains[cell.target] = self._embedded(target, cell.target, frozen)
        splits = whole_splits(dataset, cell.target, domains, seed=cell.seed)
        pick = self._picker(dataset, cell, frozen, domains, splits)
        return _prepared(dataset, cell, frozen, pick, splits), pick

    def _picker(
        self,
        dataset: Dataset,
        cell: RunSpec,
        frozen: Frozen | None,
        domains: Mapping[str, DomainData],
        splits: Mapping[str, Split],
    ) -> Picker:
        """A picker of rows of these domains, with features learned from their training rows."""
        features = _fitted(dataset, domains, splits) if frozen is None or frozen.beside else None
        if frozen is not None and features is not None:
            features = replace(features, columns=frozen.beside)
        of_bytes = [data.x for data in domains.values() if are_bytes(data.x)]
        resident = fits_gpu(of_bytes, self._device)
        trained = [domains[name].y[splits[name].train] for name in cell.sources]
        unit = Unit.of(np.concatenate(trained)) if cell.standardise_labels else None
        pick = Picker(
            domains,
            features,
            self._vectors,
            dataset.task,
            self._device,
            resident,
            unit,
        )
        if cell.standardise is None:
            return pick
        return pick.standardised({name: splits[name].train for name in domains}, dataset.input)


def _identity(dataset: Dataset, frozen: Frozen | None) -> tuple[object, ...]:
    """Equal if domains are loaded as the same examples."""
    return dataset, frozen and frozen.embedding.identity


def _prepared(
    dataset: Dataset,
    cell: RunSpec,
    frozen: Frozen | None,
    pick: Picker,
    splits: Mapping[str, Split],
) -> Prepared:
    target = splits[cell.target]
    places = pick.domains[cell.target].places
    exhausted = tuple(name for name in cell.sources if not len(splits[name].test))
    held_out: tuple[Labelled, ...] = ()
    if not exhausted:
        held_out = tuple(pick.labelled(name, splits[name].test[:HELD_OUT]) for name in cell.sources)
    groups: dict[str, Array] = {}
    for name, data in pick.domains.items():
        if data.groups is not None:
            groups[name] = data.groups[splits[name].train].astype(str)
    return Prepared(
        task=dataset.task,
        bags=dataset.input.sparse and frozen is None,
        tested_in_training=is_transductive(dataset),
        training=_training(pick, cell, splits),
        held_out=held_out,
        test=pick.tested(cell.target, target.test),
        unit=pick.unit,
        _target_labels=pick.labels(cell.target, target.train),
        _groups=groups,
        predictions=pick.predictions(cell.target, target.test),
        test_rows=target.test if places is None else places[target.test],
        _exhausted=exhausted,
    )


def _fitted(dataset: Dataset, domains: Mapping[str, DomainData], splits: Mapping[str, Split]) -> Learned | None:
    """The dataset's fitted features; None if its examples stay as they are."""
    if dataset.input.bytes:
        return None
    training = {name: data.x[splits[name].train] for name, data in domains.items()}
    # By an instance that has loaded nothing, so that it remembers no label.
    features = replace(dataset).fit(training)
    return Learned(dataset.name, dataset.input.shape, features)


def _training(pick: Picker, cell: RunSpec, splits: Mapping[str, Split]) -> TrainingData:
    names = (*cell.sources, cell.target)
    sizes = {name: len(splits[name].train) for name in names}
    labels = [pick.labels(name, splits[name].train) for name in cell.sources]
    examples = (pick.examples(name, splits[name].train) for name in names)
    training = TrainingData.of(pick.task, sizes, examples, labels, pick.device)
    return replace(training, x=pick.placed(training.x))
