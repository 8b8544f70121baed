from __future__ import annotations

import pytest

from msda_bench.suite.protocol import Splitting, batches_of, labelled_groups, source_parts
from msda_bench_builtin.schemes import Adapt, Mdmn, Pooled, TargetOnly

TWO = Splitting(clusters=2)


@pytest.mark.parametrize("scheme", [Adapt(), Mdmn()])
def test_schemes_that_separate_sources_separate_their_parts(scheme):
    assert labelled_groups(scheme, ("a", "b"), "t", TWO, 0) == (("a/0",), ("a/1",), ("b/0",), ("b/1",))
    assert labelled_groups(scheme, ("a", "b"), "t", None, 5) == (("a",), ("b",), ("t/labelled",))
    assert labelled_groups(scheme, ("a",), "t", TWO, 5) == (("a/0",), ("a/1",), ("t/labelled",))


def test_a_pool_consists_of_whole_sources():
    assert labelled_groups(Pooled(), ("a", "b"), "t", TWO, 0) == (("a", "b"),)
    assert labelled_groups(Pooled(), ("a", "b"), "t", TWO, 5) == (("a", "b", "t/labelled"),)


@pytest.mark.parametrize(
    ("groups", "batches"),
    [((("a",), ("b",)), 1), ((("a", "b"),), 2), ((("t",),), 2), ((("a", "b"), ("b", "a")), 2), ((("a", "b", "c"),), 3)],
)
def test_a_groups_batches_follow_from_its_number_of_sources(groups, batches):
    assert batches_of(groups, 2) == batches


def test_the_oracle_sees_no_source():
    assert labelled_groups(TargetOnly(), ("a", "b"), "t", TWO, 0) == (("t",),)


def test_one_cluster_equals_the_source():
    assert source_parts("a", Splitting(clusters=1)) == source_parts("a", None) == ("a",)


class Halves(Adapt):
    """Draws the first part of all sources as one, and the rest as one."""

    def groups(self, sources, target):
        return tuple(tuple(name for name in sources if name.endswith(half)) for half in ("/0", "/1"))


def test_parts_of_different_sources_may_be_drawn_as_one():
    assert labelled_groups(Halves(), ("a", "b"), "t", TWO, 0) == (("a/0", "b/0"), ("a/1", "b/1"))
