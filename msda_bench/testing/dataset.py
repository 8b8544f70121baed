"""The contract of datasets."""

from __future__ import annotations

import copy
import math
import re
import unittest
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from msda_bench.api import Array, DataError, Dataset, DomainData, Files, Inputs, InputSpec, Task
from msda_bench.plugins import Entry
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.guard import leaves_alone

if TYPE_CHECKING:
    import scipy.sparse

    from msda_bench.data.splits import Split


class DatasetContract(ComponentContract):
    """What every dataset promises; skipped, saying so, where its files are not on this machine.

    Attributes:
        component: the dataset under test.
        files: how it reaches its files; the data folders of the environment when None.
    """

    component: ClassVar[Dataset]
    draws: ClassVar[str] = (
        "draw from a generator of its own, such as numpy.random.Generator(numpy.random.Philox(key=1))"
    )
    files: ClassVar[Files | None] = None

    def reach(self) -> Files:
        """The files; skips the test where one is missing."""
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
                raise unittest.SkipTest(f"{self.who}: its files are not here: {error}") from error
        return files

    def test_domains_are_named(self) -> None:
        """Domains are distinct, at least two; targets are among them, each with sources other than itself."""
        data = self.component
        domains = data.domains
        assert len(domains) >= 2, f"{self.who} has {len(domains)} domains; the contract asks for at least 2"
        assert len(set(domains)) == len(domains), f"{self.who} names a domain twice: {domains}"
        assert data.targets, f"{self.who} has no target; the contract asks for at least one"
        unknown = set(data.targets) - set(domains)
        assert not unknown, f"{self.who}: the targets {sorted(unknown)} are not among its domains {domains}"
        for target in data.targets:
            sources = data.sources(target)
            assert sources, f"{self.who}: target {target!r} has no source; the contract asks for at least one"
            assert len(set(sources)) == len(sources), f"{self.who}: target {target!r} has a source twice: {sources}"
            wrong = set(sources) - (set(domains) - {target})
            assert not wrong, f"{self.who}: {sorted(wrong)} cannot be sources of {target!r}; the domains are {domains}"

    def test_task_and_input_are_stated(self) -> None:
        """The task has at least two classes if it is a classification; the input's shape is of whole numbers."""
        task, spec = self.component.task, self.component.input
        assert isinstance(task, Task), f"{self.who}: task is {task!r}; the contract asks for a Task"
        enough = task.kind == "regression" or task.classes >= 2
        assert enough, f"{self.who}: a classification of {task.classes} classes; the contract asks for at least 2"
        assert isinstance(spec, InputSpec), f"{self.who}: input is {spec!r}; the contract asks for an InputSpec"
        right = bool(spec.shape) and all(type(size) is int and size >= 1 for size in spec.shape)
        assert right, f"{self.who}: an input of shape {spec.shape}; the contract asks for positive whole numbers"

    def test_relatedness_is_of_its_sources(self) -> None:
        """What it knows of its sources' worth is a finite number for each that it names, and the same every time."""
        data = self.component
        for target in data.targets:
            found = data.relatedness(target)
            unknown = set(found) - set(data.sources(target))
            assert not unknown, f"{self.who}: relatedness names {sorted(unknown)}, which are no sources of {target!r}"
            finite = all(math.isfinite(worth) for worth in found.values())
            assert finite, (
                f"{self.who}: relatedness to {target!r} is {dict(found)}; the contract asks for finite numbers"
            )
            same = data.relatedness(target) == found
            assert same, f"{self.who}: relatedness to {target!r} asked again is another; the contract asks for the same"

    def test_fingerprint_is_stable(self) -> None:
        """The fingerprint is 64 hexadecimal digits, the same for another instance with the same parameters."""
        found = self.component.fingerprint()
        right = isinstance(found, str) and re.fullmatch("[0-9a-f]{64}", found)
        assert right, f"{self.who}: the fingerprint is {found!r}; the contract asks for 64 hexadecimal digits"
        again = Entry(self.component.kind, type(self.component), "", "").create(self.component.params())
        assert isinstance(again, Dataset)
        same = again.fingerprint() == found
        assert same, f"{self.who}: the same parameters give another fingerprint; the contract asks for a stable one"

    def test_examples_are_well_formed(self) -> None:
        """Every domain has as many labels as examples, of the promised dtypes, and enough of them to train and test."""
        files = self.reach()
        for domain in self.component.domains:
            data = self.component.load(domain, files)
            self._check_inputs(domain, data.x)
            self._check_labels(domain, data)
            self._check_split(domain, data)

    def test_loading_again_gives_the_same(self) -> None:
        """A second load gives the same examples and labels in the same order."""
        files = self.reach()
        domain = self.component.domains[0]
        first, second = self.component.load(domain, files), self.component.load(domain, files)
        assert np.array_equal(first.y, second.y), f"{self.who}: loading {domain!r} again gives other labels"
        assert _same(first.x, second.x), f"{self.who}: loading {domain!r} again gives other examples"

    def test_leaves_the_process_alone(self) -> None:
        """Loading touches no global random generator, default dtype, number of threads or gradient mode."""
        files = self.reach()
        with leaves_alone(self.who, self.draws):
            self.component.load(self.component.domains[0], files)

    def test_splits_are_disjoint_and_stable(self) -> None:
        """No example is both trained on and tested on, and a second load is split in the same way."""
        files, data = self.reach(), self.component
        target = data.targets[0]
        names = (*data.sources(target), target)
        first, second = (self._split(target, names, files) for _ in range(2))
        for name in names:
            shared = set(first[name].train.tolist()) & set(first[name].test.tolist())
            assert not shared, f"{self.who}: {len(shared)} examples of {name!r} are both trained on and tested on"
            pairs = ((first[name].train, second[name].train), (first[name].test, second[name].test))
            same = all(np.array_equal(one, other) for one, other in pairs)
            assert same, f"{self.who}: {name!r} loaded again is split in another way; do its test marks change?"

    def test_fit_gives_the_stated_input(self) -> None:
        """What `fit` learns from the training inputs maps every domain's examples to numbers of the stated shape."""
        files, data, spec = self.reach(), self.component, self.component.input
        target = data.targets[0]
        names = (*data.sources(target), target)
        inputs = {name: data.load(name, files).x for name in names}
        transform = data.fit([inputs[name][: data.train] for name in names])
        for name in names:
            examples = transform(inputs[name][-7:])
            sparse = not isinstance(examples, np.ndarray)
            assert sparse == spec.sparse, (
                f"{self.who}: fit maps {name!r} to {_kind(examples)}; input.sparse is {spec.sparse}"
            )
            wanted = (min(7, inputs[name].shape[0]), *spec.shape)
            right = tuple(examples.shape) == wanted
            assert right, f"{self.who}: fit maps {name!r} to shape {tuple(examples.shape)}; input says {wanted}"
            numeric = examples.dtype.kind in "fiub"
            assert numeric, f"{self.who}: fit maps {name!r} to dtype {examples.dtype}; the contract asks for numbers"

    def test_fit_changes_nothing_that_it_is_given(self) -> None:
        """`fit` and the map that it learns leave their inputs as they were, and the map is one of the inputs alone."""
        files, data = self.reach(), self.component
        given = data.load(data.targets[0], files).x[: data.train]
        kept = copy.deepcopy(given)
        transform = data.fit([given])
        first, second = transform(given), transform(given)
        assert _same(given, kept), f"{self.who}: fit changed its inputs in place; the contract asks for new arrays"
        assert _same(first, second), f"{self.who}: the map that fit learned gives other numbers the second time"

    def _split(self, target: str, names: tuple[str, ...], files: Files) -> dict[str, Split]:
        from msda_bench.data.splits import split

        loaded = {name: self.component.load(name, files) for name in names}
        sizes = {name: len(one.y) if one.test is None else one.test for name, one in loaded.items()}
        train, test = self.component.train, self.component.test
        return split(self.component.name, target, sizes, seed=0, train=train, test=test)

    def _check_inputs(self, domain: str, x: Inputs) -> None:
        where = f"{self.who}: the examples of {domain!r}"
        if not isinstance(x, np.ndarray):
            assert getattr(x, "format", None) == "csr", (
                f"{where} are {_kind(x)}; the contract asks for an array or a CSR matrix"
            )
            values: Array = x.data
        elif x.dtype == object:
            assert all(isinstance(text, str) for text in x), f"{where} are objects that are not texts"
            return
        else:
            known = x.dtype in {np.dtype(np.float32), np.dtype(np.uint8)}
            assert known, f"{where} have dtype {x.dtype}; the contract asks for float32, uint8 or texts"
            values = x
        assert np.isfinite(values).all(), f"{where} are not all finite"

    def _check_labels(self, domain: str, data: DomainData) -> None:
        where, task, y = f"{self.who}: the labels of {domain!r}", self.component.task, data.y
        count = data.x.shape[0]
        assert y.shape == (count,), f"{where} have shape {y.shape}; there are {count} examples"
        wanted = np.int64 if task.kind == "classification" else np.float32
        assert y.dtype == wanted, f"{where} have dtype {y.dtype}; the contract asks for {wanted.__name__}"
        if task.kind == "classification":
            inside = bool(count == 0 or (y.min() >= 0 and y.max() < task.classes))
            assert inside, f"{where} are not all in 0..{task.classes - 1}, the range of its {task.classes} classes"
        else:
            assert np.isfinite(y).all(), f"{where} are not all finite"

    def _check_split(self, domain: str, data: DomainData) -> None:
        where, count = f"{self.who}: domain {domain!r}", len(data.y)
        free, tested = count, count - self.component.train
        if data.test is not None:
            right = data.test.shape == (count,) and data.test.dtype == bool
            assert right, (
                f"{where} has a test mark of {data.test.dtype} {data.test.shape}; the contract asks for bool ({count},)"
            )
            free, tested = int((~data.test).sum()), int(data.test.sum())
        enough = free >= self.component.train
        assert enough, f"{where} has {free} examples to train on, fewer than train = {self.component.train}"
        testable = tested >= 1 or domain not in self.component.targets
        assert testable, f"{where} leaves no test example; choose a smaller `train`"


def _same(one: Inputs, other: Inputs) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    return one.shape == other.shape and _parts_equal(one, other)


def _parts_equal(one: scipy.sparse.csr_matrix, other: scipy.sparse.csr_matrix) -> bool:
    parts = ((one.data, other.data), (one.indices, other.indices), (one.indptr, other.indptr))
    return all(np.array_equal(mine, theirs) for mine, theirs in parts)


def _kind(examples: object) -> str:
    return f"a {type(examples).__name__}"
