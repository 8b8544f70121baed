import itertools

import numpy as np
import pytest
from hypothesis import given, settings
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


def rows(extent, groups=None, labels=None):
    """A domain of so many rows, or with a mask of its official test examples."""
    test = extent if isinstance(extent, np.ndarray) else None
    n = extent if test is None else len(test)
    return DomainData(np.empty((n, 0)), np.zeros(n, np.int64) if labels is None else labels, test, groups=groups)


def split(target, domains, *, seed=0, name="d", shared_groups=False, task=Plain.task, **params):
    """The split of domains, each a `DomainData` or what `rows` takes."""
    dataset = type("Made", (Plain,), {"name": name, "shared_groups": shared_groups, "task": task})(**params)
    made = {name: domain if isinstance(domain, DomainData) else rows(domain) for name, domain in domains.items()}
    return splits.split(dataset, target, made, seed=seed)


def of_groups(groups):
    return {domain: rows(len(of_rows), of_rows) for domain, of_rows in groups.items()}


def grouped_split(groups, *, shared_groups=True, **options):
    return split("t", of_groups(groups), name="g", shared_groups=shared_groups, **options)


def groups_in(groups, rows):
    return set(groups[rows].tolist())


def listed(parts):
    """Training and test rows of each domain."""
    return {name: (part.train.tolist(), part.test.tolist()) for name, part in parts.items()}


def test_the_order_of_rows_is_pinned():
    assert permutation(10, "amazon", "books", 0, "dvd").tolist() == [8, 1, 9, 4, 7, 3, 6, 0, 2, 5]
    parts = split("books", {"books": 8, "dvd": 10}, name="amazon", seed=3, train=4, test=2)
    assert listed(parts) == {"books": ([4, 1, 3, 0], [6, 5]), "dvd": ([6, 4, 2, 3], [5, 9])}
    parts = grouped_split({"t": np.arange(10) // 2, "s": np.arange(20) // 2}, train=3, test=2)
    assert listed(parts) == {"t": ([2, 3, 1], [4, 5]), "s": ([2, 3, 1], [12, 13])}


sizes = st.dictionaries(st.sampled_from("abcdef"), st.integers(5, 40), min_size=1)


@settings(max_examples=30)
@given(sizes=sizes, seed=st.integers(0, 99), train=st.integers(1, 4), test=st.none() | st.integers(1, 50))
def test_splits_are_disjoint_nested_and_independent_of_other_domains(sizes, seed, train, test):
    target = min(sizes)
    parts = listed(split(target, sizes, seed=seed, train=train, test=test))
    more = listed(split(target, sizes, seed=seed, train=train + 1)) if min(sizes.values()) > train + 1 else parts
    for domain, size in sizes.items():
        trained, tested = parts[domain]
        assert len({*trained, *tested}) == len(trained) + len(tested)
        assert len(trained) == train
        assert len(tested) == min(size - train, size if test is None else test)
        assert more[domain][0][:train] == trained
        alone = split(target, {target: sizes[target], domain: size}, seed=seed, train=train, test=test)
        assert listed(alone)[domain] == parts[domain]


@settings(max_examples=30)
@given(mask=st.lists(st.booleans(), min_size=4, max_size=40), seed=st.integers(0, 99))
def test_official_test_examples_are_kept_for_the_test(mask, seed):
    official = np.array([*mask, False, True])
    parts = split("t", {"t": official}, seed=seed, train=1, test=3)["t"]
    assert not official[parts.train].any()
    assert official[parts.test].all()
    assert len(parts.test) == min(3, official.sum())


labels = st.lists(st.integers(0, 40), min_size=30, max_size=60).map(np.array)


@settings(max_examples=30)
@given(
    groups=st.fixed_dictionaries({"s": labels, "t": labels, "u": labels}),
    seed=st.integers(0, 9),
    train=st.integers(1, 10),
)
def test_no_group_is_on_both_sides_of_a_split(groups, seed, train):
    try:
        parts = grouped_split(groups, seed=seed, train=train, test=8)
    except DataError as error:
        assert "set a smaller `train`" in str(error)  # noqa: PT017 - few groups may leave too little
        return
    tested = groups_in(groups["t"], parts["t"].test)
    trained = set().union(*(groups_in(groups[name], part.train) for name, part in parts.items()))
    held_out = set().union(*(groups_in(groups[name], parts[name].test) for name in "su"))
    assert tested
    assert not tested & trained
    assert not held_out & (tested | trained)
    assert {len(part.train) for part in parts.values()} == {train}
    fewer = grouped_split(groups, seed=seed, train=max(train - 1, 1), test=8)
    if np.array_equal(fewer["t"].test, parts["t"].test):
        for name, part in parts.items():
            assert part.train[: len(fewer[name].train)].tolist() == fewer[name].train.tolist()
    texts = {name: of_rows.astype(str).astype(object) for name, of_rows in groups.items()}
    assert listed(grouped_split(texts, seed=seed, train=train, test=8)) == listed(parts)
    alone = grouped_split({name: groups[name] for name in "st"}, seed=seed, train=train, test=8)
    assert alone["t"].test.tolist() == parts["t"].test.tolist()
    assert alone["s"].train.tolist() == parts["s"].train.tolist()


def test_stratified_groups_give_training_and_test_every_class():
    group = np.arange(60) // 5  # twelve groups of five rows, four of each class
    classes = group % 3
    domains = {"t": rows(60, group, classes), "s": rows(60, group + 12, classes)}
    lacking = {False: 0, True: 0}
    for seed, stratify in itertools.product(range(20), lacking):
        parts = split("t", domains, seed=seed, task=Task("classification", 3), train=15, test=15, stratify=stratify)
        counts = [np.bincount(classes[some]).tolist() for part in parts.values() for some in (part.train, part.test)]
        lacking[stratify] += counts != 4 * [[5, 5, 5]]
        assert not groups_in(group, parts["t"].train) & groups_in(group, parts["t"].test)
    assert lacking[True] == 0
    assert lacking[False] > 10
    domains = {"t": rows(60, group, np.linspace(0, 1, 60)), "s": rows(60, group + 12, np.linspace(0, 1, 60))}
    drawn, plain = (split("t", domains, task=Task("regression"), train=15, stratify=by) for by in (True, False))
    assert listed(drawn) == listed(plain)


def test_by_shares_a_rare_class_is_as_frequent_in_the_test_as_in_training():
    """Of 200 patients with two visits each a tenth is ill; class by class, all of them are in training."""
    group = np.arange(400) // 2
    ill = (group % 10 == 0).astype(int)
    domains = {"t": rows(400, group, ill), "s": rows(400, group + 200, ill)}
    tested = {True: 0, "shares": 20}
    for stratify, expected in tested.items():
        parts = split("t", domains, task=Task("classification", 2), train=200, test=200, stratify=stratify)
        assert ill[parts["t"].test].sum() == expected
        assert not groups_in(group, parts["t"].train) & groups_in(group, parts["t"].test)


def test_official_test_examples_of_a_trained_group_are_not_tested():
    official = np.array([False, False, False, False, True, True])
    target = rows(official, np.array([1, 2, 3, 4, 4, 5]))
    parts = split("t", {"t": target, "s": rows(6, np.array([5, 6, 7, 8, 9, 10]))}, shared_groups=True, train=4)
    assert parts["t"].test.tolist() == [5]
    assert 0 not in parts["s"].train


def test_a_source_needs_no_test_examples_and_a_transductive_target_may_have_groups_of_its_own():
    assert len(split("t", {"t": 9, "s": 5}, train=5)["s"].test) == 0
    groups = {"t": np.arange(10), "s": np.repeat(np.arange(10, 14), 5)}
    parts = grouped_split(groups, shared_groups=False, train=7, protocol="transductive")
    assert sorted(parts["t"].test.tolist()) == list(range(10))
    assert not groups_in(groups["s"], parts["s"].train) & groups_in(groups["s"], parts["s"].test)


APART = of_groups({"t": np.repeat([1, 2], 5), "s": np.arange(10) + 5})
SHARED = of_groups({"t": np.arange(10), "s": np.arange(10)})


@pytest.mark.parametrize(
    ("domains", "params", "words"),
    [
        ({"t": 9, "s": 5}, {"train": 6}, "domain 's' has 5 examples to train on, fewer than train = 6; "),
        ({"t": 9, "s": np.array([True, True, False])}, {"train": 2}, "domain 's' has 1 examples to train on"),
        ({"t": 5, "s": 9}, {"train": 5}, "target 't' has no test examples left; set a smaller `train`$"),
        ({"t": np.zeros(9, bool)}, {"train": 5}, "target 't' has no test examples left"),
        (APART, {"train": 6}, "target 't' has no test examples left in groups that it does not train on; set"),
        (SHARED, {"train": {"t": 5, "s": "all"}}, "train.s = all trains on all of a source, and so on groups of"),
        (SHARED, {"train": {"t": 5, "s": 6}}, "source 's' has 5 examples to train on in groups that are not tested"),
        (SHARED, {"train": 5, "protocol": "transductive"}, "`protocol: transductive` would show the test's labels, "),
        (SHARED, {"train": 5, "shared_groups": False}, "some of its groups are in several domains, but its `shared_"),
    ],
)
def test_too_few_examples_and_groups_that_leave_nothing_are_named(domains, params, words):
    with pytest.raises(DataError, match=f"^dataset d: {words}"):
        split("t", domains, **{"shared_groups": True} | params)
