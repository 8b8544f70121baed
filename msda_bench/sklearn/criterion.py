"""Validators as scorers for scikit-learn's searches, which then select settings without target labels."""

from __future__ import annotations

import math
import sys
from typing import Any, cast

import numpy as np
import torch
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from torch import Tensor

from msda_bench.api import Array, ValidationView, Validator
from msda_bench.errors import printable
from msda_bench.plugins.torch_state import neutral
from msda_bench.sklearn.cell import make_validator
from msda_bench.sklearn.estimators import Estimator
from msda_bench.sklearn.inputs import labels_of, read_domains, sound

_SEARCHING = {"sklearn.model_selection._validation", "sklearn.metrics._scorer"}
"""The modules of scikit-learn that take a scorer's exception for a score of NaN."""


class Criterion:
    """A validator as a scorer, higher is better: `GridSearchCV(DARN(), {"mu": [...]}, scoring=Criterion("dev"))`.

    From the held-out rows it uses the sources' inputs and labels and the target's inputs, never a target label.
    scikit-learn passes `sample_domain` if metadata routing is enabled:
    `sklearn.set_config(enable_metadata_routing=True)`.

    Args:
        validator: as a suite names it, such as `"source_accuracy"` or `{"importance_weighted_risk": {"ridge": 0.1}}`.
    """

    def __init__(self, validator: str | dict[str, Any] = "source_accuracy") -> None:
        self.validator = validator

    def __repr__(self) -> str:
        return f"Criterion({self.validator!r})"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_domain: Any = None) -> float:  # noqa: N803
        """The score of a fitted estimator, or of a pipeline of scikit-learn or skada that ends in one.

        A search stops at the errors below whatever its `error_score`: with NaN for every candidate, it would select
        the first.

        Raises:
            ValueError: `sample_domain` is missing, or the validator is unknown or does not support this task.
            TypeError: the estimator is not from `msda_bench.sklearn`.
        """
        try:
            validator, view = self._seen(estimator, X, y, sample_domain)
        except (TypeError, ValueError) as error:
            if sys._getframe(1).f_globals.get("__name__") in _SEARCHING:  # noqa: SLF001
                return cast("float", _Refusal(error))
            raise
        with neutral():
            score = validator.score(view)
        return score if math.isfinite(score) else math.nan

    def _seen(self, estimator: Any, x: Any, y: Any, sample_domain: Any) -> tuple[Validator, ValidationView]:
        """The validator, and what it sees of the held-out rows."""
        _check_last(estimator)
        x = sound(x)
        numbers = read_domains(sample_domain, x)
        if numbers is None:
            raise ValueError(
                f"{self!r} needs sample_domain; call sklearn.set_config(enable_metadata_routing=True) before the search"
            )
        estimator, x = _last(estimator, x, numbers)
        if not hasattr(y, "__len__") or len(y) != len(numbers):
            count = f"{len(y)} labels" if hasattr(y, "__len__") else type(y).__name__
            raise ValueError(f"y: must have a label for each of the {len(numbers)} rows of X, not {count}")
        validator = make_validator(self.validator)
        view = _view(estimator, estimator._rows(x, numbers), y, numbers)  # noqa: SLF001
        if view.task.kind not in validator.tasks:
            raise ValueError(
                f"validator {validator.name!r} scores {' and '.join(validator.tasks)}, not {view.task.kind}"
            )
        return validator, view

    def get_metadata_routing(self) -> MetadataRequest:
        """The request for `sample_domain` that scikit-learn's routing reads."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_domain", alias=True)
        return request


class _Refusal:
    """What a search gets for a score: it asks for `item` where no exception is taken for NaN."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def item(self) -> Any:
        raise self._error


def _end(estimator: Any) -> Any:
    """The last estimator of a pipeline; a plain estimator itself."""
    if not isinstance(estimator, Pipeline):
        return estimator
    return getattr(estimator[-1], "base_estimator_", estimator[-1])  # a selector of skada's holds its own


def _check_last(estimator: Any) -> None:
    last = _end(estimator)
    if not isinstance(last, Estimator):
        name = type(last).__name__
        raise TypeError(
            f"a Criterion scores estimators from msda_bench.sklearn, not {name}; search over one of these, such as "
            f"SRC, or give {name} a scorer of scikit-learn or skada"
        )


def _last(estimator: Any, x: Any, numbers: Array) -> tuple[Estimator, Any]:
    """The last estimator of a pipeline, and its input; a plain estimator and `x` unchanged."""
    if isinstance(estimator, Pipeline):
        more = {"sample_domain": numbers, "allow_source": True}  # what steps of skada ask for
        for _, _, step in estimator._iter(with_final=False):  # noqa: SLF001 - without those that pass rows through
            asked = get_routing_for_object(step).consumes("transform", more)
            x = step.transform(x, **{name: more[name] for name in asked})
    return _end(estimator), x


def _view(estimator: Estimator, x: Any, y: Any, numbers: Array) -> ValidationView:
    rows = [np.flatnonzero(numbers == source) for source in np.unique(numbers[numbers > 0])]
    target = np.flatnonzero(numbers < 0)
    scale = 1.0 if estimator.model_.unit is None else estimator.model_.unit.deviation

    def seen(x: Any) -> tuple[Tensor, Tensor]:
        all_rows = estimator._seen(x)  # noqa: SLF001
        return all_rows.features, scale * all_rows.outputs

    def mix(first: Tensor, second: Tensor, share: float) -> Tensor:
        return seen(share * x[target[first.numpy()]] + (1 - share) * x[target[second.numpy()]])[1]

    features, outputs = seen(x)
    return ValidationView(
        task=estimator.model_.components.dataset.task,
        source_features=tuple(features[one] for one in rows),
        source_outputs=tuple(outputs[one] for one in rows),
        source_labels=tuple(_labels(estimator, column_or_1d(labels_of(y, one))) for one in rows),
        target_features=features[target],
        target_outputs=outputs[target],
        mix=mix,
    )


def _labels(estimator: Estimator, y: Array) -> torch.Tensor:
    if (unit := estimator.model_.unit) is not None:
        return torch.from_numpy((y.astype(np.float64) - unit.mean).astype(np.float32))
    places = np.searchsorted(estimator.classes_, y).clip(max=len(estimator.classes_) - 1)
    unknown = y[estimator.classes_[places] != y]
    if len(unknown):
        what = f"class {printable(unknown[0])} occurs in held-out rows but in no training row"
        raise ValueError(f"{what}; use stratified folds")
    return torch.from_numpy(places)
