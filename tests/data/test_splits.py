from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.api import Dataset, DomainData, InputSpec, Task, component
from msda_bench.data import splits
from msda_bench.data.splits import permutation
from msda_bench.errors import DataError


@component
class Plain(Dataset):
    """A dataset with arbitrary domains."""

    name = "d"
    domains = ()
    task = Task("classification", 2)
    input = InputSpec((1,))

    def load(self, domain, files):
        return DomainData(np.zeros((0, 1), np.float32), np.zeros(0, np.int64))


def split(name, target, domains, *, seed=0, **params):
    return splits.split(type("Named", (Plain,), {"name": name})(**params), target, domains, seed=seed)


def test_the_order_of_rows_is_pinned():
    assert permutation(10, "amazon", "books", 0, "dvd").tolist() == [8, 1, 9, 4, 7, 3, 6, 0, 2, 5]
    found = split("amazon", "books", {"books": 8, "dvd": 10}, seed=3, train=4, test=2)
    assert [found["books"].train.tolist(), found["books"].test.tolist()] == [[4, 1, 3, 0], [6, 5]]
    assert [found["dvd"].train.tolist(), found["dvd"].test.tolist()] == [[6, 4, 2, 3], [5, 9]]


@given(size=st.integers(0, 60), seed=st.integers(0, 2**40), cut=st.integers(0, 60))
def test_a_longer_permutation_extends_a_shorter_one(size, seed, cut):
    order = permutation(size, "d", "t", seed, "s")
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(size))
    fewer = permutation(min(cut, size), "d", "t", seed, "s")
    assert fewer.tolist() == [row for row in order.tolist() if row < cut]


def test_every_part_of_the_identity_changes_the_split():
    base = ("d", "t", 0, "s")
    orders = {
        tuple(permutation(50, *identity).tolist())
        for identity in [base, ("e", "t", 0, "s"), ("d", "u", 0, "s"), ("d", "t", 1, "s"), ("d", "t", 0, "u")]
    }
    assert len(orders) == 5


sizes = st.dictionaries(st.sampled_from("abcdef"), st.integers(5, 40), min_size=1)


@given(sizes=sizes, seed=st.integers(0, 99), train=st.integers(1, 4), test=st.none() | st.integers(1, 50))
def test_splits_are_disjoint_nested_and_independent_of_other_domains(sizes, seed, train, test):
    target = min(sizes)
    found = split("d", target, sizes, seed=seed, train=train, test=test)
    more = split("d", target, sizes, seed=seed, train=train + 1) if min(sizes.values()) > train + 1 else None
    for domain, size in sizes.items():
        rows = np.concatenate([found[domain].train, found[domain].test])
        assert len(set(rows.tolist())) == len(rows)
        assert len(found[domain].train) == train
        assert len(found[domain].test) == min(size - train, size if test is None else test)
        if more:
            assert more[domain].train[:-1].tolist() == found[domain].train.tolist()
        alone = split("d", target, {target: sizes[target], domain: size}, seed=seed, train=train, test=test)
        assert alone[domain].train.tolist() == found[domain].train.tolist()
        assert alone[domain].test.tolist() == found[domain].test.tolist()


@given(mask=st.lists(st.booleans(), min_size=4, max_size=40), seed=st.integers(0, 99))
def test_official_test_examples_are_kept_for_the_test(mask, seed):
    official = np.array([*mask, False, True])
    found = split("d", "t", {"t": official}, seed=seed, train=1, test=3)["t"]
    assert not official[found.train].any()
    assert official[found.test].all()
    assert len(found.test) == min(3, official.sum())


def test_too_few_examples_are_named():
    with pytest.raises(DataError, match=r"^dataset d: domain 's' has 5 examples to train on, fewer than train = 6; "):
        split("d", "t", {"t": 9, "s": 5}, seed=0, train=6)
    with pytest.raises(DataError, match="domain 's' has 1 examples to train on"):
        split("d", "t", {"t": 9, "s": np.array([True, True, False])}, seed=0, train=2)


def test_a_target_needs_test_examples_but_a_source_does_not():
    assert len(split("d", "t", {"t": 9, "s": 5}, seed=0, train=5)["s"].test) == 0
    with pytest.raises(DataError, match=r"^dataset d: target 't' has no test examples left; set a smaller `train`$"):
        split("d", "t", {"t": 5, "s": 9}, seed=0, train=5)
    with pytest.raises(DataError, match="no test examples left"):
        split("d", "t", {"t": np.zeros(9, bool)}, seed=0, train=5)
