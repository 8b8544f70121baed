"""The contract of datasets."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
import torch

from msda_bench.api import Augments, DataError, Dataset, Inputs
from msda_bench.component.dataset import sizes_of
from msda_bench.data.splits import extent_of, split
from msda_bench.engine.loaded import fault_of
from msda_bench.testing.broken import BrokenContractError
from msda_bench.testing.component import FilesContract


class DatasetContract(FilesContract):
    """What every dataset promises."""

    component: ClassVar[Dataset]
    draws: ClassVar[str] = (
        "draw from the dataset's own generator, such as numpy.random.Generator(numpy.random.Philox(key=1))"
    )

    def test_domains_are_named(self) -> None:
        """It has at least two distinct domains; each target is a domain with distinct sources other than itself."""
        data = self.component
        domains = data.domains
        known = set(data.domains)
        self.holds(len(domains) >= 2, f"it has {len(domains)} domains; the contract asks for at least 2")
        self.holds(len(known) == len(domains), f"it names a domain twice: {domains}")
        by_target = data.sources()
        unknown = sorted(set(by_target) - known)
        self.holds(not unknown, f"the targets {unknown} are not among its domains {domains}")
        for target, sources in by_target.items():
            self.holds(sources, f"target {target!r} has no source; the contract asks for at least one")
            wrong = sorted(set(sources) - (known - {target}))
            self.holds(not wrong, f"{wrong} cannot be sources of {target!r}; the domains are {domains}")

    def test_fingerprint_is_stable(self) -> None:
        """The fingerprint is 64 hexadecimal digits and depends only on the parameters."""
        fingerprint = self.component.fingerprint()
        right = isinstance(fingerprint, str) and re.fullmatch("[0-9a-f]{64}", fingerprint)
        self.holds(right, f"the fingerprint is {fingerprint!r}; the contract asks for 64 hexadecimal digits")
        again = self.remade()
        same = isinstance(again, Dataset) and again.fingerprint() == fingerprint
        differ = "two instances with equal parameters differ in fingerprint; the contract asks for a stable one"
        self.holds(same, differ)

    def test_examples_are_well_formed(self) -> None:
        """Every domain has one label per example, the promised dtypes and the declared number of examples."""
        files = self.reach()
        named = set[str]()
        for domain in self.component.domains:
            data = self.component.load(domain, files)
            fault = fault_of(data, self.component, domain)
            self.holds(fault is None, f"{domain!r} {fault}")
            if (identity := data.identity) is not None:
                new = isinstance(identity, str) and identity not in named
                failure = f"{domain!r} has identity {identity!r}; the contract asks for text unique to a domain"
                self.holds(new, failure)
                named.add(identity)
            self._check_inputs(domain, data.x)
            wanted = self.component.task.rules.dtype
            failure = f"the labels of {domain!r} have dtype {data.y.dtype}; the contract asks for {wanted.__name__}"
            self.holds(data.y.dtype == wanted, failure)
            extent = extent_of(data)
            declared = sizes_of(self.component).get(domain, extent)
            self.holds(declared == extent, f"`sizes` declares {declared} examples of {domain!r}, which has {extent}")

    def test_loading_again_gives_the_same(self) -> None:
        """A second load gives equal examples and labels in the same order."""
        files = self.reach()
        domain = self.component.domains[0]
        first = self.component.load(domain, files)
        second = self.component.load(domain, files)
        self.holds(_same(first.x, second.x), f"a second load of {domain!r} changes its examples")
        for name, what in {"y": "labels", "test": "test marks", "groups": "groups", "identity": "identity"}.items():
            same = np.array_equal(getattr(first, name), getattr(second, name))
            self.holds(same, f"a second load of {domain!r} changes its {what}")

    def test_leaves_the_process_alone(self) -> None:
        """Loading changes no global random generator, default dtype, number of threads or gradient mode."""
        files = self.reach()
        with self.leaves_alone():
            self.component.load(self.component.domains[0], files)

    def test_every_target_can_be_split(self) -> None:
        """Each target and its sources have enough examples, in groups that are not tested, to train and test on."""
        files = self.reach()
        data = self.component
        loaded = {name: data.load(name, files) for name in data.domains}
        for target, sources in data.sources().items():
            try:
                split(data, target, {name: loaded[name] for name in (*sources, target)}, seed=0)
            except DataError as error:
                raise BrokenContractError(f"{self.who}: {error.lines[0].partition(': ')[2]}") from error

    def test_fit_gives_the_stated_input(self) -> None:
        """The map that `fit` learns from training inputs gives numbers of the stated shape for every domain."""
        files = self.reach()
        data = self.component
        spec = self.component.input
        target, sources = next(iter(data.sources().items()))
        loaded = {name: data.load(name, files) for name in (*sources, target)}
        splits = split(data, target, loaded, seed=0)
        inputs = {name: domain.x for name, domain in loaded.items()}
        transform = data.fit({name: x[splits[name].train] for name, x in inputs.items()})
        for name, x in inputs.items():
            examples = transform(name, x[-7:])
            maps = f"fit maps {name!r} to"
            sparse = not isinstance(examples, np.ndarray)
            kind = type(examples).__name__
            self.holds(sparse == spec.sparse, f"{maps} a {kind}; input.sparse is {spec.sparse}")
            if spec.bytes:
                same = _same(examples, x[-7:])
                self.holds(same, f"{maps} other examples; bytes must stay as they are, so it needs no fit")
                continue
            wanted = (min(7, x.shape[0]), *spec.shape)
            shape = tuple(examples.shape)
            self.holds(shape == wanted, f"{maps} shape {shape}; input says {wanted}")
            numeric = examples.dtype.kind in "fiub"
            self.holds(numeric, f"{maps} dtype {examples.dtype}; the contract asks for numbers")

    def test_augmented_batches_are_of_the_stated_shape(self) -> None:
        """Bytes become images of the stated shape, with or without a key; stacking does not change them."""
        data = self.component
        spec = self.component.input
        if not spec.bytes:
            return
        augment = data.augment if isinstance(data, Augments) else lambda x, _: x
        x = data.load(data.domains[0], self.reach()).x[:4]
        batch = torch.from_numpy(np.array(x)) / 255
        keys = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
        given = batch.clone()
        alone = [augment(batch, key) for key in (None, *keys)]
        for augmented in alone:
            right = tuple(augmented.shape) == (len(batch), *spec.shape) and augmented.dtype == torch.float32
            self.holds(right, f"augment gives {augmented.dtype} of {tuple(augmented.shape)}; input says {spec.shape}")
        self.holds(torch.equal(batch, given), "augment changed its batch in place; the contract asks for a new one")
        stated = bool(data.augmentation()) or all(torch.equal(alone[0], augmented) for augmented in alone[1:])
        self.holds(stated, "augment changes images in training; the contract asks `augmentation` for the parameters")
        stacked = torch.vmap(augment, randomness="error")(torch.stack([batch, batch]), keys)
        same = all(torch.allclose(one, other, atol=1e-5) for one, other in zip(alone[1:], stacked, strict=True))
        self.holds(same, "stacking changes what augment draws; the contract asks for draws from its key alone")

    def _check_inputs(self, domain: str, x: Inputs) -> None:
        where = f"the examples of {domain!r}"
        values = x if isinstance(x, np.ndarray) else x.data
        if not isinstance(x, np.ndarray):
            csr = getattr(x, "format", None) == "csr"
            self.holds(csr, f"{where} are a {type(x).__name__}; the contract asks for an array or a CSR matrix")
        elif x.dtype == object:
            self.holds(all(isinstance(text, str) for text in x), f"{where} are objects other than str")
            return
        else:
            known = x.dtype in (np.float32, np.uint8)
            self.holds(
                known, f"{where} have dtype {x.dtype}; the contract asks for float32, uint8 or objects that are str"
            )
        may_lack = self.component.input.mask > 0
        self.holds(may_lack or np.isfinite(values).all(), f"{where} are not all finite")


def _same(one: Inputs, other: Inputs) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    pairs = ((one.data, other.data), (one.indices, other.indices), (one.indptr, other.indptr))
    return one.shape == other.shape and all(np.array_equal(mine, theirs) for mine, theirs in pairs)
