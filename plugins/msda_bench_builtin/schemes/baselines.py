"""What practitioners use where nothing adapts: scikit-learn's linear models and trees, on the pooled sources."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal

from pydantic import Field

from msda_bench.api import (
    AddedLater,
    Count,
    EstimatorScheme,
    PluginError,
    Positive,
    Rate,
    Task,
    component,
)
from msda_bench_builtin.optional import require


@component
class Baseline(EstimatorScheme):
    """A model of scikit-learn.

    Parameters:
        labels: "sources" learns from all sources as one; "target" from the target's own labels, an oracle to be marked
            `reference: true`.
        class_weight: "balanced" gives each class the same weight in sum, "none" each example; of classes only.
        hold_out: the share of the target's labels that it does not learn from but is scored on (see `target_only`).
    """

    labels: Literal["sources", "target"] = "sources"
    class_weight: Literal["none", "balanced"] = "none"
    hold_out: Annotated[Rate, AddedLater()] = 0.0

    def __post_init__(self) -> None:
        """Refuses to be without scikit-learn, and to hold out labels that it does not learn from."""
        if self.hold_out and self.labels != "target":
            raise ValueError("hold_out is of the target's labels, which only `labels: target` learns from; remove it")
        require("scikit-learn", "sklearn", "sklearn")

    @property
    def needs_target_labels(self) -> bool:  # type: ignore[override]
        """Whether it learns from the target's own labels."""
        return self.labels == "target"

    @abstractmethod
    def model(self, *, classes: bool, shared: dict[str, Any]) -> Any:
        """scikit-learn's classifier or regressor.

        Args:
            classes: whether classes are predicted.
            shared: arguments of every model: random_state and, for classes, class_weight.
        """

    def make(self, task: Task, seed: int) -> Any:
        """The model, with what all of them are given."""
        classes = task.has_classes
        weight = None if self.class_weight == "none" else self.class_weight
        if weight and not classes:
            raise PluginError(f"scheme {self.name!r}: class_weight weighs classes, and this task has none; remove it")
        shared: dict[str, Any] = {"random_state": seed}
        if classes:
            shared["class_weight"] = weight
        return self.model(classes=classes, shared=shared)


@component
class LogisticRegression(Baseline):
    """Logistic regression with an L2 penalty on the pooled sources (scikit-learn).

    Parameters:
        c: the inverse of the penalty's strength.
        max_iter: iterations of L-BFGS at most.
    """

    name = "logistic_regression"
    tasks = ("classification",)

    c: Positive = 1.0
    max_iter: Count = 1000

    def model(self, *, classes: bool, shared: dict[str, Any]) -> Any:
        """A classifier."""
        from sklearn import linear_model

        return linear_model.LogisticRegression(C=self.c, max_iter=self.max_iter, **shared)


@component
class GradientBoosting(Baseline):
    """Boosted trees on binned inputs, on the pooled sources (scikit-learn's HistGradientBoosting).

    All trees are fitted: no examples are kept back to stop early.

    Parameters:
        learning_rate: the factor of each tree.
        max_iter: trees (per class, if there are more than two).
        max_leaf_nodes: leaves of a tree at most.
        min_samples_leaf: examples of a leaf at least.
    """

    name = "gradient_boosting"
    dense = True

    learning_rate: Positive = 0.1
    max_iter: Count = 100
    max_leaf_nodes: Annotated[int, Field(ge=2)] = 31
    min_samples_leaf: Count = 20

    def model(self, *, classes: bool, shared: dict[str, Any]) -> Any:
        """A classifier or a regressor."""
        from sklearn import ensemble

        made = ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
        return made(
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            early_stopping=False,
            **shared,
        )


@component
class RandomForest(Baseline):
    """A forest of randomised trees on the pooled sources (scikit-learn).

    Parameters:
        n_estimators: trees.
        min_samples_leaf: examples of a leaf at least.
    """

    name = "random_forest"

    n_estimators: Count = 300
    min_samples_leaf: Count = 1

    def model(self, *, classes: bool, shared: dict[str, Any]) -> Any:
        """A classifier or a regressor."""
        from sklearn import ensemble

        made = ensemble.RandomForestClassifier if classes else ensemble.RandomForestRegressor
        return made(n_estimators=self.n_estimators, min_samples_leaf=self.min_samples_leaf, n_jobs=1, **shared)


@component
class Ridge(Baseline):
    """Linear regression with an L2 penalty on the pooled sources (scikit-learn).

    Parameters:
        alpha: the penalty's strength.
    """

    name = "ridge"
    tasks = ("regression",)

    alpha: Positive = 1.0

    def model(self, *, classes: bool, shared: dict[str, Any]) -> Any:
        """A regressor."""
        from sklearn import linear_model

        return linear_model.Ridge(alpha=self.alpha, **shared)
