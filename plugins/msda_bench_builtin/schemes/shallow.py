"""Adapters of skada before a model of scikit-learn: alignment, transport, reweighting, label propagation."""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field

from msda_bench.api import (
    Array,
    DivergedError,
    EstimatorScheme,
    FitData,
    Inputs,
    PluginError,
    Task,
    component,
)
from msda_bench.functional import LEAST, dense_rows, log_shares, on_one_thread, seeded_globals
from msda_bench_builtin.optional import require
from msda_bench_builtin.schemes.baselines import (
    Baseline,
    GradientBoosting,
    LogisticRegression,
    RandomForest,
    Ridge,
)

NONE = "none"
JDOT = "JDOT"
ESTIMATORS: Mapping[str, type[Baseline]] = MappingProxyType(
    {cls.name: cls for cls in (LogisticRegression, Ridge, GradientBoosting, RandomForest)}
)
"""What may stand behind an adapter: the plain models, with their parameters."""
_ENDING = "Adapter"
_FATAL = re.compile(
    "invalid value|numerical error|infeasible|all weights are zero|not accurate|before optimality", re.IGNORECASE
)
"""Warnings after which a number would be wrong."""
_NUMERICAL = re.compile(r"\bnan\b|\binf|not converge|positive definite|singular|not finite", re.IGNORECASE)
"""Errors that say so of numbers, not of a call."""


def _plain(given: str | dict[str, Any]) -> str | dict[str, Any]:
    """A name without parameters as text, so that each choice is written in one way."""
    if isinstance(given, str):
        return given
    ((name, params),) = given.items()
    return {name: params} if params else name


Choice: TypeAlias = Annotated[
    str | Annotated[dict[str, dict[str, Any] | None], Field(min_length=1, max_length=1)], AfterValidator(_plain)
]
"""A name, or a mapping of one name to its parameters."""


def _parts(choice: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(choice, str):
        return choice, {}
    ((name, params),) = choice.items()
    return name, params


@component
class Skada(EstimatorScheme):
    """A shallow adapter of skada before a model of scikit-learn, fitted to all sources and the unlabelled target.

    skada (https://scikit-adaptation.github.io) pools the sources: its adapters map or weigh them as one domain. Only
    MultiLinearMongeAlignment and JCPOTLabelProp tell them apart. Without an adapter (`none`) the same pipeline shows
    what the adapter gains.

    Parameters:
        adapter: one of the installed skada's, as it is called there without `Adapter`; or `{NAME: {its parameters}}`.
        estimator: logistic_regression, ridge, gradient_boosting or random_forest, or one of them with its parameters.
        scale: whether each column first gets mean 0 and variance 1 over all training rows, the target's too.
        components: how many principal components of all training rows, the target's too, go on to the adapter, at most
            as many as there are columns; 0 for all columns.
    """

    name = "skada"
    needs_target = True
    dense = True

    adapter: Choice = "CORAL"
    estimator: Choice = "logistic_regression"
    scale: bool = True
    components: Annotated[int, Field(ge=0)] = 0

    def __post_init__(self) -> None:
        """Refuses to be without skada, and names and parameters that neither it nor the models have."""
        require("skada", "skada", "skada", "ot", "sklearn")
        name, params = _parts(self.adapter)
        task = "regression" if self._behind.tasks == ("regression",) else "classification"
        with seeded_globals(0):
            cls = _adapter_class(name, task)
            if cls is not None:
                _refuse_unknown(name, cls, params)
            elif params:
                raise ValueError(f"adapter {NONE!r} has no parameters")
        if not self.tasks:
            raise ValueError(f"adapter {name!r} needs classes, and {self._behind.name} predicts numbers; change one")

    @property
    def tasks(self) -> tuple[str, ...]:  # type: ignore[override]
        """The tasks of both the adapter and the model."""
        kinds = self._behind.tasks
        if _parts(self.adapter)[0] in _CLASSES_ONLY:
            return tuple(kind for kind in kinds if kind == "classification")
        return kinds

    @property
    def _behind(self) -> Baseline:
        name, params = _parts(self.estimator)
        if name not in ESTIMATORS:
            raise ValueError(f"no estimator {name!r}{_hint(name, ESTIMATORS)}")
        model = ESTIMATORS[name](**params)
        if model.labels != "sources":
            raise ValueError("estimator: the target has no labels to learn from; remove `labels`")
        return model

    def fit(self, rows: FitData, task: Task, seed: int) -> Callable[[Inputs], Array]:
        """Fits the pipeline in double precision.

        Raises:
            DivergedError: it met numbers that are not finite, or did not solve its problem.
        """
        name = _parts(self.adapter)[0]
        if not task.has_classes and np.array_equal(rows.y, np.round(rows.y)):
            raise PluginError("skada takes labels that are all whole numbers for classes; standardise the labels")
        with _sound(name):
            prepare = self._preparation(rows, seed)
            x = prepare(rows.x)
            target = prepare(rows.target)
            predict = super().fit(rows._replace(x=x, target=target), task, seed)

        def outputs(given: Inputs) -> Array:
            with _sound(name):
                answers = predict(prepare(given))
            if not np.isfinite(answers).all():
                raise DivergedError(f"skada's {name}: a prediction is not finite")
            return answers

        return outputs

    def _preparation(self, rows: FitData, seed: int) -> Callable[[Inputs], Array]:
        """Scales and reduces inputs as all training rows ask for."""
        from sklearn.decomposition import PCA
        from sklearn.preprocessing import StandardScaler

        every = np.concatenate([dense_rows(rows.x), dense_rows(rows.target)]).astype(np.float64)
        steps: list[Any] = [StandardScaler()] if self.scale else []
        if 0 < self.components < min(every.shape):
            steps.append(PCA(self.components, random_state=seed))
        with on_one_thread():
            for step in steps:
                every = step.fit_transform(every)

        def prepare(given: Inputs) -> Array:
            x = dense_rows(given).astype(np.float64)
            with on_one_thread():
                for step in steps:
                    x = step.transform(x)
            return x

        return prepare

    def make(self, task: Task, seed: int) -> Any:
        """The pipeline of skada."""
        import skada
        from sklearn.preprocessing import FunctionTransformer

        name, params = _parts(self.adapter)
        model = self._behind.make(task, seed)
        cls = _adapter_class(name, task.kind)
        if cls is None:
            return skada.make_da_pipeline(model)
        if name == JDOT:
            model = _bounded(model) if task.has_classes else model
            return skada.make_da_pipeline(cls(base_estimator=model, **params))
        model.set_fit_request(sample_weight=True)
        ours: dict[str, Any] = dict(_INSTEAD.get(name, {}))
        if "random_state" in inspect.signature(cls).parameters:
            ours["random_state"] = seed
        return skada.make_da_pipeline(cls(**(ours | params)), FunctionTransformer(_finite), model)


_PIVOTS = MappingProxyType({"n_iter_max": 1_000_000})
_INSTEAD: Mapping[str, Mapping[str, Any]] = MappingProxyType({"OTLabelProp": _PIVOTS})
"""Defaults that replace skada's. Its exact plans end after 200 pivots; a few hundred rows need thousands."""
_NEEDS_COMPONENTS = ("TransferSubspaceLearning",)
_CLASSES_ONLY = ("ClassRegularizerOTMapping", "JCPOTLabelProp")
_LEFT_OUT = MappingProxyType(
    {"DASVM": "is of two classes, and its probabilities in skada 0.6.0 are those of the model before adaptation"}
)


def _adapter_class(name: str, kind: str) -> Any:
    """The installed skada's class of an adapter, None for none.

    Raises:
        ValueError: it has no such adapter.
    """
    import skada

    if name == NONE:
        return None
    if name in _LEFT_OUT:
        raise ValueError(f"adapter {name!r} {_LEFT_OUT[name]}; use another")
    if name == JDOT:
        return skada.JDOTRegressor if kind == "regression" else skada.JDOTClassifier
    cls = getattr(skada, f"{name}{_ENDING}", None)
    if not (inspect.isclass(cls) and issubclass(cls, skada.BaseAdapter) and cls is not skada.BaseAdapter):
        found = [other.removesuffix(_ENDING) for other in dir(skada) if other.endswith(_ENDING)]
        known = sorted({NONE, JDOT, *found} - {"Base"})
        raise ValueError(f"skada {skada.__version__} has no adapter {name!r}{_hint(name, known)}")
    return _by_ratio(cls) if name == "DiscriminatorReweight" else cls


def _bounded(model: Any) -> Any:
    """The classifier with finite logarithms: JDOT multiplies them by 0, which of minus infinity is NaN."""

    class Bounded(type(model)):  # type: ignore[misc]
        def predict_log_proba(self, X: Array) -> Array:  # noqa: N803
            return log_shares(self.predict_proba(X))

    return Bounded(**model.get_params(deep=False))


def _by_ratio(cls: Any) -> Any:
    """The adapter with the ratio of the target's density to the sources', which skada 0.6.0 turns upside down."""

    class DiscriminatorReweight(cls):  # type: ignore[misc]
        def compute_weights(self, X: Array, y: Any = None, *, sample_domain: Array, **params: Any) -> Array:  # noqa: N803
            shares = np.clip(self.domain_classifier_.predict_proba(X), LEAST, None)
            ratio = np.where(sample_domain < 0, 0.0, shares[:, 1] / shares[:, 0])
            weights: Array = ratio / ratio[sample_domain >= 0].mean()
            return weights

    return DiscriminatorReweight


def _finite(x: Array) -> Array:
    """The adapted inputs; some models would take NaN for a gap.

    Raises:
        ValueError: one of them is not finite.
    """
    if not np.isfinite(x).all():
        raise ValueError("the adapted inputs are not finite")
    return x


def _refuse_unknown(name: str, cls: Any, params: Mapping[str, Any]) -> None:
    declared = inspect.signature(cls).parameters.items()
    known = {key: param for key, param in declared if key != "base_estimator" and param.kind is not param.VAR_KEYWORD}
    for given in params:
        if given not in known:
            raise ValueError(f"adapter {name} has no parameter {given!r}{_hint(given, known)}")
    lacking = [key for key, param in known.items() if param.default is param.empty and key not in params]
    if name in _NEEDS_COMPONENTS and not params.get("n_components"):
        raise ValueError(
            f"adapter {name} changes nothing if it keeps all columns, as skada does by default; "
            f"give fewer, such as {{{name}: {{n_components: 5}}}}"
        )
    if lacking:
        raise ValueError(f"adapter {name} needs {' and '.join(lacking)}, such as {{{name}: {{{lacking[0]}: 0.1}}}}")


def _hint(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(known)}"


@contextmanager
def _sound(name: str) -> Iterator[None]:
    """Turns numbers that are not finite, and problems that were not solved, into a run that diverged, with its line.

    Raises:
        DivergedError: one of them was met.
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, np.linalg.LinAlgError, FloatingPointError) as error:
            if isinstance(error, ValueError) and not _NUMERICAL.search(str(error)):
                raise
            raise DivergedError(f"skada's {name}: {str(error).splitlines()[0]}") from error
    for warning in heard:
        if _FATAL.search(str(warning.message)):
            raise DivergedError(f"skada's {name}: {warning.message}")
