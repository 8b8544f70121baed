"""Sins against the contract of datasets."""

from __future__ import annotations

import dataclasses
import itertools
import random
import unittest
from collections.abc import Callable

import numpy as np
import pytest

from msda_bench.api import DataError, Dataset, DomainData, File, InputSpec, Task, Url, component
from msda_bench.testing import DatasetContract
from tests.testing.sins import after, sins

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


@component
class Spoiled(Lines):
    """Correct except for what a sin changes."""

    name = "spoiled"

    def load(self, domain, files):
        good = super().load(domain, files)
        return self.spoil(good, len(good.y))

    def spoil(self, good, n):
        return good


class Pixels(Spoiled):
    """Bytes that are passed to the network unchanged."""

    @property
    def input(self):
        return InputSpec((2, 3), bytes=True)

    def spoil(self, good, n):
        return dataclasses.replace(good, x=np.zeros((n, 2, 3), np.uint8))


def spoil(**fields):
    """Fields of the data, made from the good data and their number."""

    def run(self, good, n):
        return dataclasses.replace(good, **{name: make(good, n) for name, make in fields.items()})

    return {"spoil": run}


def secret(self, domain, files):
    good = Lines.load(self, domain, files)
    return good if domain == "near" else dataclasses.replace(good, groups=np.arange(len(good.y)))


BROKEN = {
    "domains_are_named": {
        "has 1 domains; the contract asks for at least 2": {"domains": ("only",)},
        "names a domain twice": {"domains": ("near", "near")},
        r"the targets \['nowhere'\] are not among its": {"sources": lambda self: {"nowhere": self.domains}},
        r"\['near'\] cannot be sources of 'near'": {"sources": lambda self: {"near": self.domains}},
        "has no source; the contract asks for at least one": {"sources": lambda self: {"near": ()}},
    },
    "fingerprint_is_stable": {
        "equal parameters differ in fingerprint": {"fingerprint": lambda self: f"{next(COUNTER):064x}"},
        "the contract asks for 64 hexadecimal digits": {"fingerprint": lambda self: "abc"},
    },
    "examples_are_well_formed": {
        r"has 1200 examples, but labels of shape \(1199,\)": spoil(y=lambda good, _: good.y[1:]),
        "'middle' has identity 'mine'; the contract asks for text unique": spoil(identity=lambda *_: "mine"),
        r"has 1200 examples, but groups of shape \(1199,\)": spoil(groups=lambda _, n: np.arange(n - 1)),
        "groups are float64; they are whole numbers or texts": spoil(groups=lambda _, n: np.linspace(0, 1, n)),
        "have dtype float64; the contract asks for float32": spoil(x=lambda good, _: good.x.astype(np.float64)),
        "examples of 'near' are not all finite": spoil(
            x=lambda good, _: np.where(good.x == good.x[0], np.float32("nan"), good.x)
        ),
        "have dtype int64; the contract asks for float32": spoil(y=lambda good, _: good.y.astype(np.int64)),
        "'near' label nan of example 0 is not finite": spoil(y=lambda _, n: np.full(n, np.float32("nan"))),
        r"label 2 of example 1 is none of the 2 classes, 0..1": {
            **spoil(y=lambda _, n: 1 + np.arange(n) % 2),
            "task": Task("classification", 2),
        },
        r"`sizes` declares 7 examples of 'far', which has 1200": {"sizes": lambda self, files=None: {"far": 7}},
        "marks those for the test in int64": spoil(test=lambda _, n: np.arange(n)),
    },
    "every_target_can_be_split": {
        "has 500 examples to train on, fewer than train = 1000": spoil(
            x=lambda good, _: good.x[:500], y=lambda good, _: good.y[:500]
        ),
        "has no test examples left": spoil(x=lambda good, _: good.x[:1000], y=lambda good, _: good.y[:1000]),
        "some of its groups are in several domains, but its `shared_groups` is False": {
            # The first target's run has only one of the domains that share groups.
            "sources": lambda self: {"near": ("middle",), "middle": ("far",), "far": ("middle",)},
            "load": secret,
        },
    },
    "loading_again_gives_the_same": {
        "changes its groups": spoil(groups=lambda _, n: np.arange(n) + 1200 * next(COUNTER)),
        "changes its identity": spoil(identity=lambda *_: f"{next(COUNTER)}"),
        "changes its examples": spoil(x=lambda good, _: np.roll(good.x, next(COUNTER))),
        "changes its labels": spoil(y=lambda good, _: np.roll(good.y, next(COUNTER))),
        "changes its test marks": spoil(test=lambda _, n: np.roll(np.arange(n) >= 1100, next(COUNTER))),
    },
    "fit_gives_the_stated_input": {
        r"to shape \(7, 2\); input says \(7, 1\)": spoil(x=lambda good, _: np.repeat(good.x, 2, axis=1)),
        "maps 'middle' to a ndarray; input.sparse is True": {"input": InputSpec((1,), sparse=True)},
    },
    "leaves_the_process_alone": {
        r"Python's global random generator((?!key of).)*numpy\.random\.Philox": spoil(
            y=lambda good, _: after(random.random(), good.y)
        ),
    },
}
OF_PIXELS = {
    "augmented_batches_are_of_the_stated_shape": {
        r"gives torch.float32 of \(4, 2, 2\); input says \(2, 3\)": {"augment": lambda self, x, key: x[..., :2]},
        "augment changed its batch in place": {"augment": lambda self, x, key: x.add_(1)},
        "asks `augmentation` for the parameters": {"augment": lambda self, x, key: x if key is None else 1 - x},
    },
    "fit_gives_the_stated_input": {
        "bytes must stay as they are, so it needs no fit": {"fit": lambda self, train: lambda _, x: x + 1},
    },
}
SINS = sins(Spoiled, BROKEN) + sins(Pixels, OF_PIXELS)


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
