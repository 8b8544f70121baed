"""The estimators, which train any scheme, discrepancy and aggregator on rows from several domains."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_consistent_length, check_random_state, check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from msda_bench.api import Array, Inputs
from msda_bench.engine.arrays import Model, train_arrays
from msda_bench.engine.runs import Predictions
from msda_bench.errors import BenchError, describe
from msda_bench.sklearn.cell import TARGET, Arrays, make_cell, registry
from msda_bench.sklearn.inputs import (
    check_device,
    in_float32,
    labels_of,
    plain_labels,
    read_domains,
    sound,
    whole_numbers,
)
from msda_bench.suite.spec import MAX_SEED

_LARGEST = 1e150
_TURNS = threading.RLock()
"""Held while a model is built, trained or asked: these draw from torch's global generator, which all threads share."""


class RefusedError(BenchError, ValueError):
    """What a suite would refuse, too, as scikit-learn expects it."""


@contextmanager
def _turn() -> Iterator[None]:
    """One thread at a time; what cannot be trained or predicted raises a ValueError."""
    with _TURNS:
        try:
            yield
        except BenchError as error:
            raise RefusedError(*error.lines) from error


class Estimator(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Base of classifiers and regressors: all their parameters, and `fit`.

    Parameters:
        scheme: the scheme as a suite writes it: a name, or `{name: {parameters}}`.
        discrepancy: the discrepancy, written likewise; None if the scheme uses none.
        aggregator: the aggregator, written likewise; None for equal weights.
        mu: weight of the discrepancy; None without a discrepancy.
        hidden: widths of the perceptron's hidden layers.
        dropout: dropout rate before each hidden layer, in [0, 1).
        backbone: another network, as a suite writes it, that replaces the perceptron of `hidden` and `dropout`.
        epochs: passes over the largest source; an epoch has as many steps as this source has batches.
        batch: examples of each source, and of the target, in a step; or "all".
        optimizer: the optimizer as a suite writes it, such as `"adam"` or `{"adam": {"lr": 0.01}}`.
        training: other keys of a suite's `training`, such as `{"schedule": "cosine", "clip": 1.0}`.
        standardise: "domain" gives the rows of each source, and of the target, mean 0 and variance 1 of their own; None
            leaves X as it is. Rows to predict count as the target's unless `sample_domain` says otherwise.
        device: "cpu" or "cuda".
        random_state: an int is the seed, as in a suite; None or a generator draws one.

    Attributes:
        recipe: a row of a suite's `methods`, where `$name` stands for the parameter `name`; of the class.
        sources_: (k,) int64, the sources' numbers in `sample_domain`, sorted.
        weights_: (k,) float64 on the simplex, the weight alpha of each source, averaged over the last steps.
        n_features_in_: number of columns of X.
    """

    recipe: ClassVar[dict[str, Any]] = {name: f"${name}" for name in ("scheme", "discrepancy", "aggregator", "mu")}
    # scikit-learn reads these from the class; skada passes domains to each of these methods.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_domain": True}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"sample_domain": True}
    __metadata_request__predict_proba: ClassVar[dict[str, Any]] = {"sample_domain": True}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_domain": True}

    def __init__(
        self,
        scheme: str | Mapping[str, Any] = "adapt",
        discrepancy: str | Mapping[str, Any] | None = None,
        aggregator: str | Mapping[str, Any] | None = None,
        mu: float | None = None,
        *,
        hidden: Sequence[int] = (64,),
        dropout: float = 0.0,
        backbone: str | Mapping[str, Any] | None = None,
        epochs: int = 50,
        batch: int | str = 20,
        optimizer: str | Mapping[str, Any] = "adam",
        training: Mapping[str, Any] | None = None,
        standardise: str | None = None,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.scheme = scheme
        self.discrepancy = discrepancy
        self.aggregator = aggregator
        self.mu = mu
        self.hidden = hidden
        self.dropout = dropout
        self.backbone = backbone
        self.epochs = epochs
        self.batch = batch
        self.optimizer = optimizer
        self.training = training
        self.standardise = standardise
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Trains on the sources' labels and the target's inputs.

        Args:
            X: (n, columns), dense or sparse, converted to float32. Sparse rows are trained as bags of words. Threads
                that fit or predict take turns, so that each gets the numbers that it would get alone.
            y: (n,) labels. Those of the target's rows are ignored and may have any value.
            sample_domain: (n,) whole numbers, positive for sources and negative for targets. All targets form one.
                None means plain supervised learning: one source, with its own inputs as the target.

        Raises:
            ValueError: an array or a parameter is invalid, training diverged, or a component breaks its contract.
        """
        check_device(self.device)
        X = self._checked(X, dtype=[np.float32, np.float64])  # noqa: N806
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        check_consistent_length(X, y)
        numbers = read_domains(sample_domain, X)
        X = in_float32(X, numbers)  # noqa: N806
        sources, classes = self._sources(X, y, numbers)
        target = X if numbers is None else X[numbers < 0]
        names = tuple(sources)
        is_sparse = not isinstance(X, np.ndarray)
        arrays = Arrays(names=names, width=self.n_features_in_, sparse=is_sparse, classes=classes)
        with _turn():
            given = self._filled(self.recipe) | {"standardise": self.standardise}
            method = {name: part for name, part in given.items() if part is not None}
            cell = make_cell(arrays, method, self._settings(), self._seed())
            self.model_: Model = train_arrays(cell, registry(), sources, target, self.device)
        self.sources_ = np.array([int(name) for name in names])
        self.weights_ = np.array([self.model_.weights[name] for name in names])
        return self

    @abstractmethod
    def _labels(self, y: Array) -> tuple[Array, int]:
        """The sources' labels as the engine expects them, and the number of classes; 0 for regression."""

    def _filled(self, recipe: Any) -> Any:
        """A recipe with each `$name` replaced by a parameter."""
        if isinstance(recipe, Mapping):
            return {name: self._filled(part) for name, part in recipe.items()}
        if isinstance(recipe, str) and recipe.startswith("$"):
            return getattr(self, recipe[1:])
        return recipe

    def _settings(self) -> dict[str, Any]:
        perceptron = {"mlp": {"hidden": self.hidden, "dropout": self.dropout}}
        training = {"epochs": self.epochs, "batch": self.batch, "optimizer": self.optimizer, **(self.training or {})}
        return {"backbone": self.backbone or perceptron, "training": training}

    def _seed(self) -> int:
        if not isinstance(self.random_state, int | np.integer):
            return int(check_random_state(self.random_state).randint(MAX_SEED))
        if not 0 <= self.random_state <= MAX_SEED:
            raise ValueError(f"random_state: must be a whole number from 0 to 2**31 - 1, not {self.random_state}")
        return int(self.random_state)

    def _sources(self, x: Any, y: Any, numbers: Array | None) -> tuple[dict[str, tuple[Inputs, Array]], int]:
        """Inputs and labels of each source by name, ordered by domain number, and the number of classes."""
        if numbers is None:
            numbers = np.ones(x.shape[0], np.int64)
        of_source = numbers > 0
        kept = {"accept_sparse": "csr", "dtype": np.float32, "y_numeric": isinstance(self, RegressorMixin)}
        source, y = check_X_y(x[of_source], labels_of(y, of_source), **kept, estimator=self)
        labels, classes = self._labels(y)
        domain = numbers[of_source]
        sources: dict[str, tuple[Inputs, Array]] = {}
        for number in np.unique(domain):
            mine = domain == number
            sources[str(number)] = source[mine], labels[mine]
        return sources, classes

    def _checked(self, x: Any, **more: Any) -> Any:
        """Rows as scikit-learn checks them, dense or CSR; raises a ValueError or TypeError."""
        try:
            return validate_data(self, sound(x), accept_sparse="csr", **more)
        except (ValueError, TypeError):
            raise
        except Exception as error:  # such as torch's, of a tensor that requires a gradient
            raise ValueError(f"X: cannot be read as numbers: {describe(error)}") from error

    def _rows(self, x: Any, sample_domain: Any = None) -> Any:
        """Rows as the network gets them: float32, sparse if those of the training were, standardised if they were."""
        check_is_fitted(self)
        check_device(self.device)
        x = self._checked(x, dtype=np.float32, reset=False)
        dense = isinstance(x, np.ndarray)
        sparse = self.model_.components.dataset.input.sparse
        if sparse and dense:
            from scipy.sparse import csr_matrix

            x = csr_matrix(x)
        elif not (sparse or dense):
            x = x.toarray()
        if not self.model_.scales:
            return x
        return self._standardised(x, sample_domain)

    def _standardised(self, x: Any, sample_domain: Any) -> Any:
        """Rows by the scales of their domains: those of sources that `sample_domain` names, the target's otherwise."""
        scales = self.model_.scales
        if sample_domain is None:
            return scales[TARGET](x)
        numbers = whole_numbers(sample_domain, x)
        names = np.where(numbers < 0, TARGET, numbers.astype(str))
        for name in np.setdiff1d(names, [*scales]):
            what = f"sample_domain holds {name}, no source of the training, so its mean is not known"
            raise ValueError(f"{what}; a target is negative")
        groups = [np.flatnonzero(names == name) for name in np.unique(names)]
        parts = [scales[names[rows[0]]](x[rows]) for rows in groups]
        back = np.argsort(np.concatenate(groups))
        if isinstance(x, np.ndarray):
            return np.concatenate(parts)[back]
        from scipy.sparse import vstack

        return vstack(parts, format="csr")[back]

    def _seen(self, x: Any) -> Predictions:
        """Features and outputs of `_rows`; raises ValueError if an output is not finite."""
        with _turn():
            seen = self.model_.predict(x, self.device)
        if not seen.outputs.isfinite().all():
            raise ValueError("an output is not finite; scale X as in training")
        return seen


class _Scored:
    measure: ClassVar[Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None, sample_domain: Any = None) -> float:  # noqa: N803
        """As every classifier's accuracy or regressor's R2 in scikit-learn; `sample_domain` is that of `predict`."""
        predicted = self.predict(X, sample_domain=sample_domain)  # type: ignore[attr-defined]
        return float(type(self).measure(plain_labels(y), predicted, sample_weight=sample_weight))


class MSDAClassifier(_Scored, ClassifierMixin, Estimator):  # type: ignore[misc]
    """A classifier for a target without labels, learned from several labelled sources.

    Its parameters are those of `Estimator`; `classes_` are the sources' classes, sorted.
    """

    measure = accuracy_score

    def _labels(self, y: Array) -> tuple[Array, int]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:  # noqa: PLR2004 - a single class needs no classifier
            raise ValueError(f"{type(self).__name__} needs 2 classes in the sources; y has 1 class there")
        return codes, len(self.classes_)

    def predict_proba(self, X: Any, sample_domain: Any = None) -> Array:  # noqa: N803
        """The (n, classes) float32 probabilities, in the order of `classes_`.

        `sample_domain` says which rows are of which source, and matters with `standardise` alone.
        """
        probabilities: Array = self._seen(self._rows(X, sample_domain)).outputs.softmax(-1).numpy()
        return probabilities

    def predict(self, X: Any, sample_domain: Any = None) -> Array:  # noqa: N803
        """The (n,) most probable classes; `sample_domain` as for `predict_proba`."""
        likeliest = self._seen(self._rows(X, sample_domain)).outputs.argmax(-1).numpy()
        predicted: Array = self.classes_[likeliest]
        return predicted


class MSDARegressor(_Scored, RegressorMixin, Estimator):  # type: ignore[misc]
    """A regressor for a target without labels, learned from several labelled sources.

    Its parameters are those of `Estimator`.
    """

    measure = r2_score

    def _labels(self, y: Array) -> tuple[Array, int]:
        if y.dtype.kind in "mM":
            raise ValueError("y holds dates; make them numbers, such as days since one")
        numbers = y.astype(np.float64)
        largest, spread = np.abs(numbers).max(), np.ptp(numbers)
        if largest > _LARGEST or 0 < spread < 1 / _LARGEST:
            what = f"labels up to {largest:.3g} that differ by {spread:.3g} are beyond what float64 can square"
            raise ValueError(f"y: {what}; multiply them by a number")
        return y, 0

    def predict(self, X: Any, sample_domain: Any = None) -> Array:  # noqa: N803
        """The (n,) float64 predictions.

        `sample_domain` says which rows are of which source, and matters with `standardise` alone.
        """
        outputs = self._seen(self._rows(X, sample_domain)).outputs.squeeze(-1)
        predicted: Array = self.model_.unit.restored(outputs).numpy()  # type: ignore[union-attr]
        return predicted
