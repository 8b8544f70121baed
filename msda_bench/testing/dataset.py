"""The contract of datasets."""

from __future__ import annotations

import copy
import math
import re
import unittest
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from msda_bench.api import (
    Array,
    Augments,
    DataError,
    Dataset,
    DomainData,
    Files,
    Inputs,
    InputSpec,
    KnowsRelatedness,
    Task,
)
from msda_bench.component.abilities import augmentation_of, fitted, sizes_of, sources_of
from msda_bench.component.sizes import counts
from msda_bench.data.splits import extent_of, split_domains
from msda_bench.engine.loaded import groups_fault
from msda_bench.plugins import Entry
from msda_bench.testing.component import ComponentContract

if TYPE_CHECKING:
    from msda_bench.data.splits import Split


class DatasetContract(ComponentContract):
    """What every dataset promises; tests skip with a reason if this machine does not have its files.

    Attributes:
        component: the dataset under test.
        files: how to find its files; the data folders of the environment when None.
    """

    component: ClassVar[Dataset]
    draws: ClassVar[str] = (
        "draw from the dataset's own generator, such as numpy.random.Generator(numpy.random.Philox(key=1))"
    )
    files: ClassVar[Files | None] = None

    def reach(self) -> Files:
        """The dataset's files; skips the test if one is missing."""
        from msda_bench.data import LocalFiles, absent, describe_absent, folders

        where = folders()
        gone = absent(self.component.files, where) if self.files is None else []
        if gone:
            raise unittest.SkipTest(f"{self.who}: {describe_absent({self.component.name: gone}, where)}")
        files = self.files if self.files is not None else LocalFiles(where, self.component.name)
        for file in self.component.files:
            try:
                files.path(file)
            except DataError as error:
                raise unittest.SkipTest(f"{self.who}: its files are missing: {error}") from error
        return files

    def test_domains_are_named(self) -> None:
        """It has at least two distinct domains; each target is a domain with distinct sources other than itself."""
        data = self.component
        domains, known = data.domains, set(data.domains)
        self.holds(len(domains) >= 2, f"it has {len(domains)} domains; the contract asks for at least 2")
        self.holds(len(known) == len(domains), f"it names a domain twice: {domains}")
        by_target = sources_of(data)
        self.holds(by_target, "it has no target; the contract asks for at least one")
        unknown = sorted(set(by_target) - known)
        self.holds(not unknown, f"the targets {unknown} are not among its domains {domains}")
        for target, sources in by_target.items():
            self.holds(sources, f"target {target!r} has no source; the contract asks for at least one")
            self.holds(len(set(sources)) == len(sources), f"target {target!r} names a source twice: {sources}")
            wrong = sorted(set(sources) - (known - {target}))
            self.holds(not wrong, f"{wrong} cannot be sources of {target!r}; the domains are {domains}")

    def test_task_and_input_are_stated(self) -> None:
        """A classification has at least two classes; the input's shape consists of positive whole numbers."""
        task, spec = self.component.task, self.component.input
        self.holds(isinstance(task, Task), f"task is {task!r}; the contract asks for a Task")
        enough = task.kind == "regression" or task.classes >= 2
        self.holds(enough, f"a classification of {task.classes} classes; the contract asks for at least 2")
        self.holds(isinstance(spec, InputSpec), f"input is {spec!r}; the contract asks for an InputSpec")
        right = bool(spec.shape) and all(type(size) is int and size >= 1 for size in spec.shape)
        self.holds(right, f"an input of shape {spec.shape}; the contract asks for positive whole numbers")

    def test_relatedness_is_of_its_sources(self) -> None:
        """Relatedness gives finite numbers for sources of the target, and does not change between calls."""
        data = self.component
        if not isinstance(data, KnowsRelatedness):
            return
        for target, sources in sources_of(data).items():
            found, of = data.relatedness(target), f"relatedness to {target!r}"
            unknown = sorted(set(found) - set(sources))
            self.holds(not unknown, f"relatedness names {unknown}, which are not sources of {target!r}")
            finite = all(map(math.isfinite, found.values()))
            self.holds(finite, f"{of} is {dict(found)}; the contract asks for finite numbers")
            same = data.relatedness(target) == found
            self.holds(same, f"{of} changes between calls; the contract asks for fixed numbers")

    def test_fingerprint_is_stable(self) -> None:
        """The fingerprint is 64 hexadecimal digits and depends only on the parameters."""
        found = self.component.fingerprint()
        right = isinstance(found, str) and re.fullmatch("[0-9a-f]{64}", found)
        self.holds(right, f"the fingerprint is {found!r}; the contract asks for 64 hexadecimal digits")
        again = Entry(self.component.kind, type(self.component), "", "").create(self.component.params())
        same = isinstance(again, Dataset) and again.fingerprint() == found
        self.holds(
            same, "two instances with equal parameters differ in fingerprint; the contract asks for a stable one"
        )

    def test_examples_are_well_formed(self) -> None:
        """Every domain has one label per example, the promised dtypes and enough examples to train and test on."""
        files = self.reach()
        identities: list[str] = []
        for domain in self.component.domains:
            data = self.component.load(domain, files)
            if data.identity is not None:
                named = isinstance(data.identity, str) and data.identity not in identities
                self.holds(
                    named, f"{domain!r} has identity {data.identity!r}; the contract asks for text unique to a domain"
                )
                identities.append(data.identity)
            self._check_inputs(domain, data.x)
            self._check_labels(domain, data)
            fault = None if data.groups is None else groups_fault(data.groups, data.x.shape[0])
            self.holds(fault is None, f"{domain!r} {fault}")
            self._check_split(domain, data)

    def test_loading_again_gives_the_same(self) -> None:
        """A second load gives equal examples and labels in the same order."""
        files, domain = self.reach(), self.component.domains[0]
        first, second = self.component.load(domain, files), self.component.load(domain, files)
        self.holds(np.array_equal(first.y, second.y), f"a second load of {domain!r} gives other labels")
        self.holds(_same(first.x, second.x), f"a second load of {domain!r} gives other examples")
        self.holds(first.identity == second.identity, f"a second load of {domain!r} gives another identity")
        groups: list[Any] = [first.groups, second.groups]
        self.holds(np.array_equal(groups[0], groups[1]), f"a second load of {domain!r} gives other groups")

    def test_leaves_the_process_alone(self) -> None:
        """Loading changes no global random generator, default dtype, number of threads or gradient mode."""
        files = self.reach()
        with self.leaves_alone():
            self.component.load(self.component.domains[0], files)

    def test_splits_are_disjoint_and_stable(self) -> None:
        """No example is in both training and test data, and a second load gives the same split."""
        files, names = self.reach(), self._names()
        first, second = (self._split(names, files) for _ in range(2))
        for name in names if self.component.protocol != "transductive" else names[:-1]:
            shared = set(first[name].train.tolist()) & set(first[name].test.tolist())
            self.holds(not shared, f"{len(shared)} examples of {name!r} are in both training and test data")
            pairs = ((first[name].train, second[name].train), (first[name].test, second[name].test))
            same = all(np.array_equal(one, other) for one, other in pairs)
            self.holds(same, f"a second load of {name!r} gives another split; do its test marks change?")

    def test_no_group_is_trained_on_and_tested(self) -> None:
        """In no target's split is a group of the test trained on or held out, in any domain."""
        files, data = self.reach(), self.component
        loaded = {name: data.load(name, files) for name in data.domains}
        grouped = any(domain.groups is not None for domain in loaded.values())
        for target, sources in sources_of(data).items() if grouped else ():
            run = {name: loaded[name] for name in (*sources, target)}
            try:
                splits = split_domains(data, target, run, seed=0)
            except DataError as error:
                self.holds(False, error.lines[0].partition(": ")[2])  # noqa: FBT003 - always a failure
            tested = _groups(run[target], splits[target].test)
            for name, split in splits.items():
                seen = split.train if name == target else np.concatenate([split.train, split.test])
                both = sorted(tested & _groups(run[name], seen))
                self.holds(
                    not both, f"group {both[:1]} of target {target!r} is tested, and its labels are seen in {name!r}"
                )

    def test_fit_gives_the_stated_input(self) -> None:
        """The map that `fit` learns from training inputs gives numbers of the stated shape for every domain."""
        files, data, spec = self.reach(), self.component, self.component.input
        inputs = {name: data.load(name, files).x for name in self._names()}
        splits = self._split(self._names(), files)
        transform = fitted(data, {name: x[splits[name].train] for name, x in inputs.items()})
        for name, x in inputs.items():
            examples, maps = transform(name, x[-7:]), f"fit maps {name!r} to"
            sparse, kind = not isinstance(examples, np.ndarray), type(examples).__name__
            self.holds(sparse == spec.sparse, f"{maps} a {kind}; input.sparse is {spec.sparse}")
            if spec.bytes:
                self.holds(
                    _same(examples, x[-7:]), f"{maps} other examples; bytes must stay as they are, so it needs no fit"
                )
                continue
            wanted, shape = (min(7, x.shape[0]), *spec.shape), tuple(examples.shape)
            self.holds(shape == wanted, f"{maps} shape {shape}; input says {wanted}")
            numeric = examples.dtype.kind in "fiub"
            self.holds(numeric, f"{maps} dtype {examples.dtype}; the contract asks for numbers")

    def test_fit_changes_nothing_that_it_is_given(self) -> None:
        """`fit` and the map that it learns do not change their inputs; the map depends only on its inputs."""
        files, data = self.reach(), self.component
        target = self._names()[-1]
        given = data.load(target, files).x[self._split((target,), files)[target].train]
        kept = copy.deepcopy(given)
        transform = fitted(data, {target: given})
        first, second = transform(target, given), transform(target, given)
        self.holds(_same(given, kept), "fit changed its inputs in place; the contract asks for new arrays")
        self.holds(_same(first, second), "a second call of the map that fit learned gives other numbers")

    def test_augmented_batches_are_of_the_stated_shape(self) -> None:
        """Bytes become images of the stated shape, with or without a key; stacking does not change them."""
        data, spec = self.component, self.component.input
        if not spec.bytes:
            return
        augment = data.augment if isinstance(data, Augments) else lambda x, _: x
        x = data.load(data.domains[0], self.reach()).x[:4]
        known = isinstance(x, np.ndarray) and x.dtype == np.uint8
        self.holds(known, "its input promises bytes, but it does not load any; the contract asks for arrays of uint8")
        batch, keys = torch.from_numpy(np.array(x)) / 255, torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
        given = batch.clone()
        alone = [augment(batch, key) for key in (None, *keys)]
        for found in alone:
            right = tuple(found.shape) == (len(batch), *spec.shape) and found.dtype == torch.float32
            self.holds(right, f"augment gives {found.dtype} of {tuple(found.shape)}; input says {spec.shape}")
        self.holds(torch.equal(batch, given), "augment changed its batch in place; the contract asks for a new one")
        stated = bool(augmentation_of(data)) or all(torch.equal(alone[0], found) for found in alone[1:])
        self.holds(stated, "augment changes images in training; the contract asks `augmentation` for the parameters")
        stacked = torch.vmap(augment, randomness="error")(torch.stack([batch, batch]), keys)
        same = all(torch.allclose(one, other, atol=1e-5) for one, other in zip(alone[1:], stacked, strict=True))
        self.holds(same, "stacking changes what augment draws; the contract asks for draws from its key alone")

    def _names(self) -> tuple[str, ...]:
        """The sources of the first target, followed by that target."""
        target, sources = next(iter(sources_of(self.component).items()))
        return (*sources, target)

    def _split(self, names: tuple[str, ...], files: Files) -> dict[str, Split]:
        data = self.component
        loaded = {name: data.load(name, files) for name in names}
        return split_domains(data, names[-1], loaded, seed=0)

    def _check_inputs(self, domain: str, x: Inputs) -> None:
        where = f"the examples of {domain!r}"
        if not isinstance(x, np.ndarray):
            csr = getattr(x, "format", None) == "csr"
            self.holds(csr, f"{where} are a {type(x).__name__}; the contract asks for an array or a CSR matrix")
            values: Array = x.data
        elif x.dtype == object:
            self.holds(all(isinstance(text, str) for text in x), f"{where} are objects other than str")
            return
        else:
            known = x.dtype in {np.dtype(np.float32), np.dtype(np.uint8)}
            self.holds(known, f"{where} have dtype {x.dtype}; the contract asks for float32, uint8 or str")
            values = x
        self.holds(np.isfinite(values).all(), f"{where} are not all finite")

    def _check_labels(self, domain: str, data: DomainData) -> None:
        where, task, y, count = f"the labels of {domain!r}", self.component.task, data.y, data.x.shape[0]
        self.holds(y.shape == (count,), f"{where} have shape {y.shape}; there are {count} examples")
        wanted = np.int64 if task.kind == "classification" else np.float32
        self.holds(y.dtype == wanted, f"{where} have dtype {y.dtype}; the contract asks for {wanted.__name__}")
        if task.kind == "classification":
            inside = count == 0 or (y.min() >= 0 and y.max() < task.classes)
            self.holds(inside, f"{where} are not all in 0..{task.classes - 1}, the range of its {task.classes} classes")
        else:
            self.holds(np.isfinite(y).all(), f"{where} are not all finite")

    def _check_split(self, domain: str, data: DomainData) -> None:
        where, count = f"domain {domain!r}", len(data.y)
        if (mark := data.test) is not None:
            failure = f"{where} has a test mark of {mark.dtype} {mark.shape}; the contract asks for bool ({count},)"
            self.holds(mark.shape == (count,) and mark.dtype == bool, failure)
        found = extent_of(count if mark is None else mark)
        targets = sources_of(self.component)
        target = domain if domain in targets else next(iter(targets))
        try:
            counts(self.component, domain, target, found)
        except DataError as error:
            self.holds(False, error.lines[0].partition(": ")[2])  # noqa: FBT003 - always a failure
        declared = sizes_of(self.component).get(domain, found)
        self.holds(declared == found, f"`sizes` declares {declared} examples of {domain!r}, which has {found}")


def _groups(data: DomainData, rows: Array) -> set[str]:
    return set() if data.groups is None else set(map(str, data.groups[rows]))


def _same(one: Inputs, other: Inputs) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    pairs = ((one.data, other.data), (one.indices, other.indices), (one.indptr, other.indptr))
    return one.shape == other.shape and all(np.array_equal(mine, theirs) for mine, theirs in pairs)
