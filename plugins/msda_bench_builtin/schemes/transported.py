"""Sources that are transported to the target at once, by POT: JCPOT, and Wasserstein barycentre transport."""

from __future__ import annotations

import importlib
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msda_bench.api import Array, Count, FitData, Group, Inputs, PluginError, Positive, Predictor, Task, component
from msda_bench.functional import dense_rows, log_shares, on_one_thread, seeded_globals
from msda_bench_builtin.optional import require
from msda_bench_builtin.schemes.baselines import LogisticRegression

_MOST = 3000
_MISSED = 0.1
"""The share of a plan's mass that may lie elsewhere than its marginals say."""


def _pot() -> Any:
    """POT, whose first import draws from Python's random generator."""
    with seeded_globals(0):
        return importlib.import_module("ot")


def _scale(ot: Any, xs: Sequence[Array], target: Array) -> float:
    """The largest distance between an example of a source and one of the target; 1 if all are 0."""
    return float(np.sqrt(max(ot.dist(x, target).max() for x in xs))) or 1.0


class Transported(Predictor):
    """A method of optimal transport between fixed features, one group a source."""

    tasks = ("classification",)
    needs_target = True

    def __post_init__(self) -> None:
        """Refuses to be without POT."""
        require("POT and scikit-learn", "transport", "ot", "sklearn")

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """A group for each source."""
        return tuple((source,) for source in sources)

    def fit(self, rows: FitData, task: Task, seed: int) -> Callable[[Inputs], Array]:
        """Transports on one thread, so that sums do not depend on the number of cores."""
        x, target = (dense_rows(given).astype(np.float64) for given in (rows.x, rows.target))
        parts = [rows.groups == group for group in range(rows.groups.max() + 1)]
        xs = [x[part] for part in parts]
        ys = [rows.y[part] for part in parts]
        with on_one_thread():
            return self.transported(xs, ys, target, task, seed)

    @abstractmethod
    def transported(
        self,
        xs: Sequence[Array],
        ys: Sequence[Array],
        target: Array,
        task: Task,
        seed: int,
    ) -> Callable[[Inputs], Array]:
        """A classifier.

        Args:
            xs: (n, width) float64 for each source.
            ys: (n,) classes.
            target: (m, width) float64.
            task: the task.
            seed: of the classifier.
        """


@component
class Jcpot(Transported):
    """JCPOT: the target's shares of classes, and its labels, by transport from all sources under target shift.

    Redko et al. 2019, "Optimal transport for multi-source domain adaptation under target shift", by
    `ot.bregman.jcpot_barycenter`: one plan from each source to the target with a row's mass h_c / n_c, where h, equal
    for all sources, minimises their mean entropic cost. Labels are propagated by the plans, a target example's being
    the mass that each class brings to it, in the mean over the sources (their JCPOT-LP). POT's `transform_labels`
    scales each row of a plan to 1 first, so that the sources' shares of classes come back. An example that was not
    transported has the labels of the nearest that was, which is ours.

    One h for all sources leaves no room for a source without a class: POT's update, a geometric mean over the sources,
    takes such a class from all of them. So it is refused. Shares for each source are not in the paper.

    Parameters:
        reg: entropic regularisation, as a share of the largest squared distance between a source's and the target's
            examples; POT's and the authors' is of the plain distance.
        iterations: Bregman projections at most.
    """

    name = "jcpot"

    reg: Positive = 0.01
    iterations: Count = 1000

    def transported(
        self,
        xs: Sequence[Array],
        ys: Sequence[Array],
        target: Array,
        task: Task,
        seed: int,
    ) -> Callable[[Inputs], Array]:
        """Labels of the nearest example of the target that was transported.

        Raises:
            PluginError: a source has no example of a class that another has.
        """
        ot = _pot()
        classes = np.unique(np.concatenate(ys))
        for number, y in enumerate(ys, 1):
            lacks = np.setdiff1d(classes, y).tolist()
            if lacks:
                raise PluginError(
                    f"scheme 'jcpot' needs every class in every source; source {number} lacks {lacks}. 'wbt' does not"
                )
        scale = _scale(ot, xs, target)
        _, log = ot.bregman.jcpot_barycenter(
            [x / scale for x in xs],
            [np.searchsorted(classes, y) for y in ys],
            target / scale,
            self.reg,
            numItermax=self.iterations,
            log=True,
            warn=False,
        )
        brought = sum(labels @ plan for labels, plan in zip(log["D1"], log["gamma"], strict=True)).T
        shares = np.zeros((len(target), task.classes))
        shares[:, classes] = brought / brought.sum(1, keepdims=True)

        def predict(rows: Inputs) -> Array:
            nearest = ot.dist(dense_rows(rows).astype(np.float64), target).argmin(1)
            return log_shares(shares[nearest])

        return predict


@component
class Wbt(Transported):
    """WBT: the sources' Wasserstein barycentre, moved to the target; a linear classifier on it.

    Montesuma and Mboula 2021, "Wasserstein barycenter for multi-source domain adaptation", with labels (WBT_reg). The
    barycentre has as many points as the sources have examples, of each class as many. POT's
    `ot.lp.free_support_barycenter` moves each class's points, from the sources' own examples, to the barycentre of the
    sources' examples of that class; the authors' entropic plans make other classes expensive, from random points. An
    entropic plan then moves the barycentre to the target (`ot.da.SinkhornTransport` with `norm="max"`); theirs has a
    penalty on classes that meet, too. Distances are shares of the largest, so that no unit matters. Logistic
    regression on the moved points is their softmax layer on features.

    Parameters:
        reg: entropic regularisation of the last plan, as a share of the largest squared distance.
        iterations: updates of the barycentre at most.
        c: the inverse of the strength of the classifier's penalty.
    """

    name = "wbt"
    version = 2

    reg: Positive = 0.01
    iterations: Count = 10
    c: Positive = 1.0

    def transported(
        self,
        xs: Sequence[Array],
        ys: Sequence[Array],
        target: Array,
        task: Task,
        seed: int,
    ) -> Callable[[Inputs], Array]:
        """A classifier of the moved barycentre."""
        ot = _pot()
        labels = np.concatenate(ys)
        names, counts = np.unique(labels, return_counts=True)
        if counts.max() > _MOST:
            what = f"moves {counts.max()} examples of one class, of which exact plans take hours"
            raise PluginError(f"scheme 'wbt' {what} beyond {_MOST}; set a smaller `train`")
        # POT stops at a distance that does not depend on the unit.
        scale = _scale(ot, xs, target)
        scaled = [x / scale for x in xs]
        points = np.concatenate(scaled)
        for label in names:
            of_class = [x[y == label] for x, y in zip(scaled, ys, strict=True)]
            having = [x for x in of_class if len(x)]
            shares = [ot.unif(len(x)) for x in having]
            start = np.concatenate(having)
            points[labels == label] = ot.lp.free_support_barycenter(having, shares, start, numItermax=self.iterations)
        cost = ot.dist(points, target / scale)
        weights = ot.unif(len(points)), ot.unif(len(target))
        with np.errstate(all="ignore"), warnings.catch_warnings():  # of a small `reg`, which `missed` shows
            warnings.simplefilter("ignore")
            plan = ot.sinkhorn(*weights, cost / (cost.max() or 1.0), self.reg, warn=False)
        missed = max(abs(plan.sum(1) - weights[0]).sum(), abs(plan.sum(0) - weights[1]).sum())
        if not missed <= _MISSED:
            what = f"finds no plan to the target at reg {self.reg:g}, {100 * missed:.0f} % of which lies wrong"
            raise PluginError(f"scheme 'wbt' {what}; set a larger `reg`")
        moved = (plan @ target / plan.sum(1, keepdims=True)).astype(np.float32)
        rows = FitData(moved, labels, np.zeros_like(labels), target[:0])
        return LogisticRegression(c=self.c).fit(rows, task, seed)
