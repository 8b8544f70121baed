"""Takes rows of loaded domains, through fitted features, to the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard, cast

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, DataError, DomainData, Inputs, InputSpec, Task
from msda_bench.engine.standardised import Scale
from msda_bench.engine.tensors import Examples, HostBytes, Unit, as_examples, as_labels


@dataclass(frozen=True, eq=False)
class Labelled:
    """Examples with their labels."""

    x: Examples
    y: Tensor


@dataclass(frozen=True, eq=False)
class Learned:
    """Fitted features, whose shape must be as the dataset's `input` says; otherwise a method would get the blame.

    Attributes:
        name: of the dataset.
        shape: of an example.
        features: what the dataset's `fit` gave.
        columns: how many of the first columns are used, as an array; None for all.
    """

    name: str
    shape: tuple[int, ...]
    features: Callable[[str, Inputs], Inputs]
    columns: int | None = None

    def __call__(self, domain: str, inputs: Inputs) -> Inputs:
        """The features of a domain's examples."""
        made = self.features(domain, inputs)
        if made.ndim > 1 and made.shape[1:] != self.shape:  # others are refused where they become tensors
            fault = f"gives examples of shape {made.shape[1:]}, but its `input` says {self.shape}"
            raise DataError(f"dataset {self.name}: domain {domain!r}: {fault}; report it to its author")
        if self.columns is None:
            return made
        first = cast("Array", made[:, : self.columns])
        return first if isinstance(first, np.ndarray) else np.asarray(first.toarray())


@dataclass(frozen=True, eq=False)
class Picker:
    """Takes rows of a domain, through the fitted features, to the device; bytes only if the device is to hold them.

    Frozen vectors of texts come before the fitted features. If there are scales, each domain has its own.
    """

    domains: Mapping[str, DomainData]
    features: Learned | None
    vectors: Mapping[str, Array]
    task: Task
    device: torch.device
    resident: bool
    unit: Unit | None
    scales: Mapping[str, Scale] = field(default_factory=dict)

    def standardised(self, training: Mapping[str, Array], input: InputSpec) -> Picker:
        """One that standardises each domain, of this input, by its training rows."""
        scales = {}
        for name, rows in training.items():
            inputs = self._inputs(name, rows)
            scales[name] = Scale.of(inputs, input.beside, input.mask)
        return replace(self, scales=scales)

    def examples(self, domain: str, rows: Array) -> Examples:
        """Rows of a domain as examples on the device; bytes stay on the host."""
        x = self.domains[domain].x
        if self.features is None and are_bytes(x):
            return HostBytes.of(x, rows, self.device)
        inputs = self._inputs(domain, rows)
        if domain in self.scales:
            inputs = self.scales[domain](inputs)
        return as_examples(inputs, self.device)

    def _inputs(self, domain: str, rows: Array) -> Inputs:
        inputs = cast("Inputs", self.domains[domain].x[rows])
        if self.features is not None:
            inputs = self.features(domain, inputs)
        if domain not in self.vectors:
            return inputs
        vectors = self.vectors[domain][rows]
        return np.concatenate([vectors, cast("Array", inputs)], axis=1)

    def placed(self, examples: Examples) -> Examples:
        """The examples, with bytes on the device if it is to hold them."""
        if self.resident and isinstance(examples, HostBytes):
            return examples.resident()
        return examples

    def labels(self, domain: str, rows: Array) -> Tensor:
        """Labels as models learn them."""
        y = self.domains[domain].y[rows]
        try:
            return as_labels(self.task, y, self.device, self.unit)
        except DataError as error:
            raise DataError(f"domain {domain!r}: {error}") from None

    def predictions(self, domain: str, rows: Array) -> Tensor | None:
        """Outputs that come with the data, or None."""
        given = self.domains[domain].predictions
        return None if given is None else self._exact(given[rows])

    def tested(self, domain: str, rows: Array) -> Labelled:
        """Test examples, with labels in the user's unit."""
        if self.unit is None:
            return self.labelled(domain, rows)
        examples = self.placed(self.examples(domain, rows))
        return Labelled(examples, self._exact(self.domains[domain].y[rows]))

    def _exact(self, numbers: Array) -> Tensor:
        dtype = np.float32 if self.unit is None else np.float64
        return torch.from_numpy(numbers.astype(dtype)).to(self.device)

    def labelled(self, domain: str, rows: Array) -> Labelled:
        """Examples with labels as models learn them."""
        examples = self.placed(self.examples(domain, rows))
        return Labelled(examples, self.labels(domain, rows))


def are_bytes(x: Inputs) -> TypeGuard[Array]:
    """Whether examples are stored as bytes."""
    return isinstance(x, np.ndarray) and x.dtype == np.uint8
