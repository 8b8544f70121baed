"""Validators as scorers for scikit-learn's searches, which then select settings without target labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from torch import Tensor

from msda_bench.api import Array, ValidationView
from msda_bench.errors import printable
from msda_bench.plugins.process_state import neutral
from msda_bench.sklearn.cell import make_validator
from msda_bench.sklearn.estimators import Estimator
from msda_bench.sklearn.inputs import labels_of, read_domains, sound


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

        Raises:
            ValueError: `sample_domain` is missing, or the validator is unknown or does not support this task.
            TypeError: the estimator is not from `msda_bench.sklearn`.
        """
        X = sound(X)  # noqa: N806
        numbers = read_domains(sample_domain, X)
        if numbers is None:
            raise ValueError(
                f"{self!r} needs sample_domain; call sklearn.set_config(enable_metadata_routing=True) before the search"
            )
        estimator, X = _last(estimator, X, numbers)  # noqa: N806
        if not hasattr(y, "__len__") or len(y) != len(numbers):
            count = f"{len(y)} labels" if hasattr(y, "__len__") else type(y).__name__
            raise ValueError(f"y: must have a label for each of the {len(numbers)} rows of X, not {count}")
        validator = make_validator(self.validator)
        view = _view(estimator, estimator._rows(X, numbers), y, numbers)  # noqa: SLF001
        if view.task.kind not in validator.tasks:
            raise ValueError(
                f"validator {validator.name!r} scores {' and '.join(validator.tasks)}, not {view.task.kind}"
            )
        with neutral():
            score = validator.score(view)
        return score if math.isfinite(score) else math.nan

    def get_metadata_routing(self) -> MetadataRequest:
        """The request for `sample_domain` that scikit-learn's routing reads."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_domain", alias=True)
        return request


def _last(estimator: Any, x: Any, numbers: Array) -> tuple[Estimator, Any]:
    """The last estimator of a pipeline, and its input; a plain estimator and `x` unchanged."""
    if isinstance(estimator, Pipeline):
        more = {"sample_domain": numbers, "allow_source": True}  # what steps of skada ask for
        for _, _, step in estimator._iter(with_final=False):  # noqa: SLF001 - without those that pass rows through
            asked = get_routing_for_object(step).consumes("transform", more)
            x = step.transform(x, **{name: more[name] for name in asked})
        estimator = getattr(estimator[-1], "base_estimator_", estimator[-1])  # a selector of skada's holds its own
    if not isinstance(estimator, Estimator):
        raise TypeError(f"a Criterion scores estimators from msda_bench.sklearn, not {type(estimator).__name__}")
    return estimator, x


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
