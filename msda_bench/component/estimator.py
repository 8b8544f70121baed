"""Estimators as schemes: whatever has scikit-learn's `fit` and `predict`, on the split of every method."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np

from msda_bench.component.domain_data import Inputs
from msda_bench.component.files import Array
from msda_bench.component.scheme import FitData, Predictor
from msda_bench.component.step import Group
from msda_bench.component.task import Task
from msda_bench.errors import PluginError
from msda_bench.functional import dense_rows, log_shares, on_one_thread, seeded_globals

_INNER = ("base_estimator_", "estimator_", "best_estimator_")
"""Where an estimator that is fitted by another one is found."""


class EstimatorScheme(Predictor):
    """A scheme that is an estimator: an object with `fit(X, y)` and `predict(X)`, as scikit-learn's have.

    It is fitted to the labelled examples of all sources. With `needs_target = True` the target's unlabelled training
    examples follow them, marked as in skada: `sample_domain` is 1 to k for the sources and -(k + 1) for the target,
    whose labels are masked, -1 as a class and NaN as a number. If the estimator has `predict_proba`, its probabilities
    are what is tested and scored; otherwise its answers count as certain. Classes are numbered from 0 without a gap.

    An estimator that draws without a `random_state` draws from Python's, numpy's and torch's global generators: they
    are seeded for the fit and for each prediction, and put back.

    Attributes:
        dense: whether a bag of words must be an array, since the estimator takes no sparse matrix.
    """

    dense: ClassVar[bool] = False

    @abstractmethod
    def make(self, task: Task, seed: int) -> Any:
        """The estimator, not yet fitted.

        Args:
            task: the task.
            seed: for its `random_state`.
        """

    def sample_weight(self, rows: FitData, task: Task) -> Array | None:
        """The weight of each labelled example, (n,); None, and so no such argument of `fit`, unless overridden."""
        return None

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """A group for each source if the estimator gets the domains; otherwise one of all sources."""
        return tuple((source,) for source in sources) if self.needs_target else super().groups(sources, target)

    def fit(self, rows: FitData, task: Task, seed: int) -> Callable[[Inputs], Array]:
        """Fits the estimator on one thread, so that sums do not depend on the number of cores."""
        present = np.unique(rows.y) if task.has_classes else None
        inputs, y, more = self._training(rows, task, present)
        with seeded_globals(seed):
            model = self.make(task, seed)
        # Seeded once more, since what the estimator imports may draw when it is first imported.
        with seeded_globals(seed), on_one_thread():
            model.fit(inputs, y, **more)

        def predict(given: Inputs) -> Array:
            x: Any = dense_rows(given) if self.dense else given
            with seeded_globals(seed), on_one_thread():
                return self._outputs(model, x, task, present, more)

        return predict

    def _training(
        self,
        rows: FitData,
        task: Task,
        present: Array | None,
    ) -> tuple[Any, Array, dict[str, Array]]:
        """Inputs, labels, and what else `fit` is given: domains and weights."""
        x: Any = dense_rows(rows.x) if self.dense else rows.x
        y = rows.y if present is None else np.searchsorted(present, rows.y)
        weights = self.sample_weight(rows, task)
        more = {} if weights is None else {"sample_weight": weights}
        if not self.needs_target:
            return x, y, more
        target: Any = dense_rows(rows.target) if self.dense else rows.target
        size = target.shape[0]
        if weights is not None:
            more["sample_weight"] = np.concatenate([weights, np.ones(size, weights.dtype)])
        domains = rows.groups + 1
        more["sample_domain"] = np.concatenate([domains, np.full(size, -int(domains.max()) - 1)])
        masked = np.full(size, task.rules.unknown, y.dtype)
        return _stacked(x, target), np.concatenate([y, masked]), more

    def _outputs(
        self,
        model: Any,
        x: Any,
        task: Task,
        present: Array | None,
        fitted_with: dict[str, Array],
    ) -> Array:
        """Logarithms of probabilities, or numbers."""
        name = "predict_proba" if present is not None and hasattr(model, "predict_proba") else "predict"
        more = {}
        if "sample_domain" in fitted_with and takes(model, name, "sample_domain"):
            more["sample_domain"] = np.full(x.shape[0], fitted_with["sample_domain"][-1])
        given = np.asarray(getattr(model, name)(x, **more))
        if present is None:
            return given.astype(np.float64).reshape(x.shape[0], -1)
        shares = np.zeros((x.shape[0], task.classes))
        if name == "predict":
            answers = np.asarray(given).reshape(-1).astype(np.int64)
            shares[np.arange(len(answers)), present[answers]] = 1
        else:
            shares[:, self._columns(model, given, present)] = given
        return log_shares(shares)

    def _columns(self, model: Any, shares: Array, present: Array) -> Array:
        """The class of each column of probabilities."""
        classes = _classes(model)
        if classes is None and shares.shape[1:] == present.shape:
            return present
        if classes is None or shares.shape[1:] != classes.shape:
            raise PluginError(
                f"scheme {self.name!r}: predict_proba gave the shape {shares.shape} for {len(present)} classes, and "
                "nothing says which they are; the estimator needs `classes_`"
            )
        return cast("Array", present[classes.astype(np.int64)])


def takes(model: Any, method: str, argument: str) -> bool:
    """Whether a method of an estimator takes an argument, by its signature or by scikit-learn's metadata routing."""
    if argument in inspect.signature(getattr(model, method)).parameters:
        return True
    if not hasattr(model, "get_metadata_routing"):
        return False
    from sklearn.utils.metadata_routing import get_routing_for_object

    return argument in get_routing_for_object(model).consumes(method, {argument})


def _stacked(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    from scipy.sparse import vstack

    return vstack([first, second], format="csr")


def _classes(model: Any) -> Array | None:
    """The classes of an estimator, or of the one that it has fitted; of a pipeline's last step."""
    seen = [model]
    for one in seen:
        classes = getattr(one, "classes_", None)
        if classes is not None:
            return np.asarray(classes)
        steps = getattr(one, "steps", None)
        if steps:
            seen.append(steps[-1][1])
        inner = [getattr(one, name, None) for name in _INNER]
        seen += [found for found in inner if found is not None]
    return None
