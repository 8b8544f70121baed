"""The contract of datasets passes honest ones and catches each sin."""

from __future__ import annotations

import itertools
import random
import unittest
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse

from msda_bench.api import DataError, Dataset, DomainData, File, InputSpec, Task, Url, component
from msda_bench.testing import DatasetContract

COUNTER = itertools.count()


@component
class Lines(Dataset):
    """Shifted copies of one line."""

    name = "lines"
    domains = ("near", "middle", "far")
    task = Task("regression")
    input = InputSpec((1,))

    def load(self, domain, files):
        x = np.linspace(0, 1, 1200, dtype=np.float32) + self.domains.index(domain)
        return DomainData(x[:, None], 2 * x)


class TestLines(DatasetContract):
    component = Lines()


@component
class Words(Dataset):
    """Texts, with a vocabulary from the training texts and an official test part."""

    name = "words"
    domains = ("old", "new")
    task = Task("classification", 2)
    input = InputSpec((2,), sparse=True)
    train: int = 40

    def load(self, domain, files):
        texts = np.array(["good" if i % 2 else "bad" for i in range(60)], dtype=object)
        return DomainData(texts, np.arange(60) % 2, np.arange(60) >= 50)

    def fit(self, train):
        known = sorted(set(np.concatenate(train)))
        return lambda texts: scipy.sparse.csr_matrix(
            np.array([[text == word for word in known] for text in texts]) * 1.0
        )


class TestWords(DatasetContract):
    component = Words()


@component
class Spoiled(Lines):
    """Right but for what a subclass spoils."""

    name = "spoiled"

    def load(self, domain, files):
        good = super().load(domain, files)
        return type(self).spoil(good)

    @staticmethod
    def spoil(good):
        return good


@component
class OneDomain(Spoiled):
    """A single domain."""

    domains = ("only",)


@component
class Twice(Spoiled):
    """A domain named twice."""

    domains = ("near", "near")


@component
class UnknownTarget(Spoiled):
    """A target that is no domain."""

    targets = ("nowhere",)


@component
class SelfTaught(Spoiled):
    """The target among its own sources."""

    def sources(self, target):
        return self.domains


@component
class NoSources(Spoiled):
    """A target without sources."""

    def sources(self, target):
        return ()


@component
class OneClass(Spoiled):
    """A classification of one class."""

    task = Task("classification", 1)


@component
class ShiftingFingerprint(Spoiled):
    """A fingerprint that is never the same."""

    def fingerprint(self):
        return f"{next(COUNTER):064x}"


@component
class ShortFingerprint(Spoiled):
    """A fingerprint that is none."""

    def fingerprint(self):
        return "abc"


@component
class FewLabels(Spoiled):
    """Fewer labels than examples."""

    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y[1:])


@component
class DoubleInputs(Spoiled):
    """Inputs in float64."""

    @staticmethod
    def spoil(good):
        return DomainData(good.x.astype(np.float64), good.y)


@component
class MissingValues(Spoiled):
    """A NaN among the inputs."""

    @staticmethod
    def spoil(good):
        return DomainData(np.where(good.x == good.x[0], np.float32(np.nan), good.x), good.y)


@component
class WholeLabels(Spoiled):
    """int64 labels for a regression."""

    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y.astype(np.int64))


@component
class OneBased(Spoiled):
    """Classes 1 and 2 in place of 0 and 1."""

    task = Task("classification", 2)

    @staticmethod
    def spoil(good):
        return DomainData(good.x, 1 + np.arange(len(good.y)) % 2)


@component
class Small(Spoiled):
    """Fewer examples than it trains on."""

    @staticmethod
    def spoil(good):
        return DomainData(good.x[:500], good.y[:500])


@component
class NothingToTest(Spoiled):
    """Exactly as many examples as it trains on."""

    @staticmethod
    def spoil(good):
        return DomainData(good.x[:1000], good.y[:1000])


@component
class Shuffled(Spoiled):
    """Another order at each load."""

    @staticmethod
    def spoil(good):
        return DomainData(np.roll(good.x, next(COUNTER)), good.y)


@component
class WrongShape(Spoiled):
    """Examples of another shape than stated."""

    @staticmethod
    def spoil(good):
        return DomainData(np.repeat(good.x, 2, axis=1), good.y)


@component
class DenseButSparse(Spoiled):
    """States a bag of words and gives an array."""

    input = InputSpec((1,), sparse=True)


@component
class WorthOfTheTarget(Spoiled):
    """Knows what a domain is worth to itself."""

    def relatedness(self, target):
        return {target: 100.0}


@component
class WorthOfNothing(Spoiled):
    """Knows no number."""

    def relatedness(self, target):
        return dict.fromkeys(self.sources(target), float("nan"))


@component
class ShiftingWorth(Spoiled):
    """Knows something else each time."""

    def relatedness(self, target):
        return dict.fromkeys(self.sources(target), float(next(COUNTER)))


class NoFiles:
    def path(self, file: File):
        raise DataError(f"{file.path}: not here")

    def derived(self, name: str, make: Callable):
        return make()


def test_absent_files_are_a_reason_to_skip():
    @component
    class Remote(Lines):
        """Has a file."""

        files = (File("lines.csv", "0" * 64, 10, Url(("file:///nowhere",))),)

    class Contract(DatasetContract):
        component = Remote()
        files = NoFiles()

    with pytest.raises(unittest.SkipTest, match=r"its files are not here: lines\.csv: not here"):
        Contract().test_examples_are_well_formed()


@component
class NumpyShape(Spoiled):
    """A shape that is not of Python's whole numbers."""

    input = InputSpec((np.int64(1),))


@component
class ShiftingMarks(Spoiled):
    """Other official test examples at each load."""

    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y, np.roll(np.arange(len(good.y)) >= 1100, next(COUNTER)))


@component
class Drawing(Spoiled):
    """Draws from Python's global generator, for nothing."""

    @staticmethod
    def spoil(good):
        random.random()
        return good


@component
class CentresInPlace(Spoiled):
    """Centres its training inputs in place."""

    def fit(self, train):
        for part in train:
            np.subtract(part, part.mean(), out=part)
        return lambda x: x


SINS = [
    (OneDomain, "domains_are_named", "has 1 domains; the contract asks for at least 2"),
    (Twice, "domains_are_named", "names a domain twice"),
    (UnknownTarget, "domains_are_named", r"the targets \['nowhere'\] are not among its domains"),
    (SelfTaught, "domains_are_named", r"\['near'\] cannot be sources of 'near'"),
    (NoSources, "domains_are_named", "has no source; the contract asks for at least one"),
    (OneClass, "task_and_input_are_stated", "a classification of 1 classes"),
    (ShiftingFingerprint, "fingerprint_is_stable", "the same parameters give another fingerprint"),
    (ShortFingerprint, "fingerprint_is_stable", "the contract asks for 64 hexadecimal digits"),
    (WorthOfTheTarget, "relatedness_is_of_its_sources", r"\['near'\], which are no sources of 'near'"),
    (WorthOfNothing, "relatedness_is_of_its_sources", "asks for finite numbers"),
    (ShiftingWorth, "relatedness_is_of_its_sources", "asks for the same"),
    (FewLabels, "examples_are_well_formed", r"have shape \(1199,\); there are 1200 examples"),
    (DoubleInputs, "examples_are_well_formed", "have dtype float64; the contract asks for float32"),
    (MissingValues, "examples_are_well_formed", "are not all finite"),
    (WholeLabels, "examples_are_well_formed", "have dtype int64; the contract asks for float32"),
    (OneBased, "examples_are_well_formed", r"are not all in 0..1"),
    (Small, "examples_are_well_formed", "has 500 examples to train on, fewer than train = 1000"),
    (NothingToTest, "examples_are_well_formed", "leaves no test example"),
    (Shuffled, "loading_again_gives_the_same", "gives other examples"),
    (WrongShape, "fit_gives_the_stated_input", r"to shape \(7, 2\); input says \(7, 1\)"),
    (DenseButSparse, "fit_gives_the_stated_input", "maps 'middle' to a ndarray; input.sparse is True"),
    (NumpyShape, "task_and_input_are_stated", "the contract asks for positive whole numbers"),
    (Drawing, "leaves_the_process_alone", r"Python's global random generator((?!key of).)*numpy\.random\.Philox"),
    (ShiftingMarks, "splits_are_disjoint_and_stable", "split in another way; do its test marks change"),
    (CentresInPlace, "fit_changes_nothing_that_it_is_given", "fit changed its inputs in place"),
]
"""What spoils a component, the clause that it breaks and how the kit says so."""
