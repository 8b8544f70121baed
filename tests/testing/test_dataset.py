"""The contract of datasets accepts correct ones and catches each sin."""

from __future__ import annotations

import dataclasses
import itertools
import random
import unittest
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse

from msda_bench.api import DataError, Dataset, DomainData, File, InputSpec, Task, Url, component
from msda_bench.testing import DatasetContract
from tests.testing.sins import sin

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
    """Texts with a vocabulary from the training texts and an official test part."""

    name = "words"
    domains = ("old", "new")
    task = Task("classification", 2)
    input = InputSpec((2,), sparse=True)
    train: int = 40

    def load(self, domain, files):
        texts = np.array(["good" if i % 2 else "bad" for i in range(60)], dtype=object)
        return DomainData(texts, np.arange(60) % 2, np.arange(60) >= 50)

    def fit(self, train):
        known = sorted(set(np.concatenate(list(train.values()))))
        return lambda _, texts: scipy.sparse.csr_matrix(
            np.array([[text == word for word in known] for text in texts]) * 1.0
        )


class TestWords(DatasetContract):
    component = Words()


@component
class Spoiled(Lines):
    """Correct except for what a subclass breaks."""

    name = "spoiled"

    def load(self, domain, files):
        good = super().load(domain, files)
        return type(self).spoil(good)

    @staticmethod
    def spoil(good):
        return good


@sin("domains_are_named", "has 1 domains; the contract asks for at least 2")
class OneDomain(Spoiled):
    domains = ("only",)


@sin("domains_are_named", "names a domain twice")
class Twice(Spoiled):
    domains = ("near", "near")


@sin("domains_are_named", r"the targets \['nowhere'\] are not among its domains")
class UnknownTarget(Spoiled):
    def sources(self):
        return {"nowhere": self.domains}


@sin("domains_are_named", r"\['near'\] cannot be sources of 'near'")
class SelfTaught(Spoiled):
    def sources(self):
        return {"near": self.domains}


@sin("domains_are_named", "has no source; the contract asks for at least one")
class NoSources(Spoiled):
    def sources(self):
        return {"near": ()}


@sin("task_and_input_are_stated", "a classification of 1 classes")
class OneClass(Spoiled):
    task = Task("classification", 1)


@sin("fingerprint_is_stable", "equal parameters differ in fingerprint")
class ShiftingFingerprint(Spoiled):
    def fingerprint(self):
        return f"{next(COUNTER):064x}"


@sin("fingerprint_is_stable", "the contract asks for 64 hexadecimal digits")
class ShortFingerprint(Spoiled):
    def fingerprint(self):
        return "abc"


class Pixels(Spoiled):
    """Bytes that are passed to the network unchanged."""

    @property
    def input(self):
        return InputSpec((2, 3), bytes=True)

    def load(self, domain, files):
        data = super().load(domain, files)
        return dataclasses.replace(data, x=np.zeros((len(data.y), 2, 3), np.uint8))


@sin("augmented_batches_are_of_the_stated_shape", r"augment gives torch.float32 of \(4, 2, 2\); input says \(2, 3\)")
class WrongSquare(Pixels):
    def augment(self, x, key):
        return x[..., :2]


@sin("augmented_batches_are_of_the_stated_shape", "augment changed its batch in place")
class Overwriting(Pixels):
    def augment(self, x, key):
        return x.add_(1)


@sin("augmented_batches_are_of_the_stated_shape", "asks `augmentation` for the parameters")
class Inverted(Pixels):
    def augment(self, x, key):
        return x if key is None else 1 - x


@sin("fit_gives_the_stated_input", "bytes must stay as they are, so it needs no fit")
class Refitted(Pixels):
    def fit(self, train):
        return lambda _, x: x + 1


@sin("examples_are_well_formed", r"have shape \(1199,\); there are 1200 examples")
class FewLabels(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y[1:])


@sin("examples_are_well_formed", "'middle' has identity 'mine'; the contract asks for text unique to a domain")
class OneIdentity(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y, identity="mine")


@component
class Takes(Lines):
    """Lines of which four consecutive rows are one group, the same one in every domain."""

    name = "takes"
    shared_groups = True
    train: int = 900
    test: int = 100

    def load(self, domain, files):
        good = super().load(domain, files)
        return dataclasses.replace(good, groups=np.array([f"take {row // 4}" for row in range(len(good.y))]))


class TestTakes(DatasetContract):
    component = Takes()


@sin("examples_are_well_formed", r"has 1200 examples, but groups of shape \(1199,\); one each is needed")
class FewGroups(Spoiled):
    @staticmethod
    def spoil(good):
        return dataclasses.replace(good, groups=np.arange(len(good.y) - 1))


@sin("examples_are_well_formed", "groups are float64; they are whole numbers or texts")
class RealGroups(Spoiled):
    @staticmethod
    def spoil(good):
        return dataclasses.replace(good, groups=np.linspace(0, 1, len(good.y)))


@sin("no_group_is_trained_on_and_tested", "some of its groups are in several domains, but its `shared_groups` is False")
class SecretlyShared(Spoiled):
    """Two domains share groups, and the first target's run has only one of them."""

    def sources(self):
        return {"near": ("middle",), "middle": ("far",), "far": ("middle",)}

    def load(self, domain, files):
        good = super().load(domain, files)
        return good if domain == "near" else dataclasses.replace(good, groups=np.arange(len(good.y)))


@sin("loading_again_gives_the_same", "a second load of .* gives other groups")
class ShiftingGroups(Spoiled):
    @staticmethod
    def spoil(good):
        return dataclasses.replace(good, groups=np.arange(len(good.y)) + 1200 * next(COUNTER))


@sin("loading_again_gives_the_same", "a second load of .* gives another identity")
class ShiftingIdentity(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y, identity=f"{next(COUNTER)}")


@sin("examples_are_well_formed", "have dtype float64; the contract asks for float32")
class DoubleInputs(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x.astype(np.float64), good.y)


@sin("examples_are_well_formed", "are not all finite")
class MissingValues(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(np.where(good.x == good.x[0], np.float32(np.nan), good.x), good.y)


@sin("examples_are_well_formed", "have dtype int64; the contract asks for float32")
class WholeLabels(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y.astype(np.int64))


@sin("examples_are_well_formed", r"are not all in 0..1")
class OneBased(Spoiled):
    task = Task("classification", 2)

    @staticmethod
    def spoil(good):
        return DomainData(good.x, 1 + np.arange(len(good.y)) % 2)


@sin("examples_are_well_formed", "has 500 examples to train on, fewer than train = 1000")
class Small(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x[:500], good.y[:500])


@sin("examples_are_well_formed", "has no test examples left")
class NothingToTest(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x[:1000], good.y[:1000])


@sin("examples_are_well_formed", r"`sizes` declares 7 examples of 'far', which has 1200")
class Miscounted(Spoiled):
    def sizes(self, files=None):
        return {"far": 7}


@sin("loading_again_gives_the_same", "a second load of .* gives other examples")
class Shuffled(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(np.roll(good.x, next(COUNTER)), good.y)


@sin("fit_gives_the_stated_input", r"to shape \(7, 2\); input says \(7, 1\)")
class WrongShape(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(np.repeat(good.x, 2, axis=1), good.y)


@sin("fit_gives_the_stated_input", "maps 'middle' to a ndarray; input.sparse is True")
class DenseButSparse(Spoiled):
    input = InputSpec((1,), sparse=True)


@sin("relatedness_is_of_its_sources", r"\['near'\], which are not sources of 'near'")
class WorthOfTheTarget(Spoiled):
    def relatedness(self, target):
        return {target: 100.0}


@sin("relatedness_is_of_its_sources", "asks for finite numbers")
class WorthOfNothing(Spoiled):
    def relatedness(self, target):
        return {"far": float("nan")}


@sin("relatedness_is_of_its_sources", "changes between calls")
class ShiftingWorth(Spoiled):
    def relatedness(self, target):
        return {self.domains[target == self.domains[0]]: float(next(COUNTER))}


class NoFiles:
    def path(self, file: File):
        raise DataError(f"{file.path}: not here")

    def derived(self, name: str, make: Callable):
        return make()


def test_absent_files_skip_the_test():
    @component
    class Remote(Lines):
        """A dataset with one file."""

        files = (File("lines.csv", "0" * 64, 10, Url(("file:///nowhere",))),)

    class Contract(DatasetContract):
        component = Remote()
        files = NoFiles()

    with pytest.raises(unittest.SkipTest, match=r"its files are missing: lines\.csv: not here"):
        Contract().test_examples_are_well_formed()


@sin("task_and_input_are_stated", "the contract asks for positive whole numbers")
class NumpyShape(Spoiled):
    input = InputSpec((np.int64(1),))


@sin("splits_are_disjoint_and_stable", "gives another split; do its test marks change")
class ShiftingMarks(Spoiled):
    @staticmethod
    def spoil(good):
        return DomainData(good.x, good.y, np.roll(np.arange(len(good.y)) >= 1100, next(COUNTER)))


@sin("leaves_the_process_alone", r"Python's global random generator((?!key of).)*numpy\.random\.Philox")
class Drawing(Spoiled):
    @staticmethod
    def spoil(good):
        random.random()
        return good


@sin("fit_changes_nothing_that_it_is_given", "fit changed its inputs in place")
class CentresInPlace(Spoiled):
    def fit(self, train):
        for part in train.values():
            np.subtract(part, part.mean(), out=part)
        return lambda _, x: x
