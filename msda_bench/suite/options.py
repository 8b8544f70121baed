"""What a suite does to a method's sources: splits them, or adds labelled examples of the target to them."""

from __future__ import annotations

from dataclasses import dataclass

from msda_bench.api import Group, Scheme
from msda_bench.errors import pass_interrupt
from msda_bench.suite.cell import Splitting
from msda_bench.suite.sources import labelled_groups
from msda_bench.suite.spec import MethodSpec, SplitSpec


@dataclass(frozen=True)
class Options:
    """What is done to a method's sources.

    Attributes:
        split_sources: how they are split; None where they stay whole.
        labelled_target: training examples of the target that are one more source, with their labels.
    """

    split_sources: Splitting | None = None
    labelled_target: int = 0


def method_options(method: MethodSpec, split_sources: SplitSpec | None, labelled_target: int) -> Options:
    """What a method says, or else its suite; without what changes nothing for it, so that cells are shared.

    Args:
        method: the method.
        split_sources: what the suite says for all methods.
        labelled_target: the same.
    """
    scheme = method.scheme.component
    split = method.split_sources or split_sources
    splits = split is not None and split.clusters > 1 and takes_parts(scheme)
    labels = labelled_target if method.labelled_target is None else method.labelled_target
    return Options(
        Splitting(split.clusters, split.by) if split is not None and splits else None,
        0 if scheme.needs_target_labels else labels,
    )


def takes_parts(scheme: Scheme) -> bool:
    """Whether a scheme tells the parts of a source apart; one that pools all sources does not."""
    return _groups_of_two(scheme, Splitting(2)) != _groups_of_two(scheme, None)


def _groups_of_two(scheme: Scheme, splitting: Splitting | None) -> tuple[Group, ...]:
    """The groups of two sources; none where the scheme cannot say, which is told when it trains."""
    try:
        return labelled_groups(scheme, ("a", "b"), "t", splitting, 0)
    except BaseException as error:  # noqa: BLE001 - a stranger's scheme may raise anything for names unknown to it
        pass_interrupt(error)
        return ()
