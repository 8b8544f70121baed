"""How much more likely each source example is in the target than among the sources, from a domain classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, ValidationView
from msda_bench_builtin.validators.held_out import losses

FOLDS = 2


@dataclass(frozen=True, eq=False)
class Weighted:
    """The source examples that a validator sees, source after source; (n,) float64 each.

    Attributes:
        losses: of the model under test.
        ratios: estimates of p_target(features) / p_sources(features).
        shares: the weight of each example, such that every source counts equally; they add up to 1.
    """

    losses: Array
    ratios: Array
    shares: Array

    def mean(self, values: Array) -> float:
        """The weighted mean of a number for each example; every source counts equally."""
        return float((self.shares * values).sum())


def weighted_losses(view: ValidationView, *, ridge: float, examples: int) -> Weighted:
    """Losses on held-out source examples with their density ratios.

    No example influences its own ratio: each comes from a classifier fitted on the other half, every second example, so
    that a flexible one that memorises its examples does not find the domains further apart than they are.

    Args:
        view: the data that a validator may see.
        ridge: of the domain classifier.
        examples: the maximum number for the fit, from all sources together and from the target.

    Raises:
        ValueError: a domain has fewer than two examples.
    """
    sources = [_numpy(features) for features in view.source_features]
    target = _numpy(view.target_features)
    if min(len(features) for features in (*sources, target)) < FOLDS:
        raise ValueError("a density ratio needs two examples of every source and of the target")
    parts = zip(view.source_outputs, view.source_labels, strict=True)
    return Weighted(
        losses=np.concatenate([losses(view.task, outputs, labels).numpy() for outputs, labels in parts]),
        ratios=np.concatenate(_ratios(sources, target, ridge, examples)),
        shares=_shares(sources),
    )


def log_ratio(sources: Sequence[Array], target: Array, ridge: float) -> tuple[Array, float]:
    """Fits a logistic regression that distinguishes the target from the sources.

    Both sides weigh 1/2 and the sources equally, so that the logit itself is the logarithm of the density ratio
    (Bickel, Brueckner, Scheffer, 2007). Minimises the mean loss + ridge / 2 |coefficients|^2.

    Args:
        sources: (n_i, d) each.
        target: (n, d).
        ridge: above 0.

    Returns:
        Coefficients (d,) and intercept.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    x = np.concatenate([*sources, target])
    columns = np.ascontiguousarray(x.T)
    side = np.ones(len(x))
    side[: -len(target)] = -1
    shares = np.concatenate([_shares(sources), np.full(len(target), 1 / len(target))]) / 2

    def loss(parameters: Array) -> tuple[float, Array]:
        w = parameters[:-1]
        margins = side * (_product(x, w) + parameters[-1])
        slope = -shares * side * expit(-margins)
        value = (shares * np.logaddexp(0, -margins)).sum() + ridge / 2 * (w * w).sum()
        return float(value), np.append(_product(columns, slope) + ridge * w, slope.sum())

    options = {"maxiter": 200, "gtol": 1e-8, "ftol": 1e-12}
    fitted = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", options=options)
    return fitted.x[:-1], float(fitted.x[-1])


def _ratios(
    sources: Sequence[Array],
    target: Array,
    ridge: float,
    examples: int,
) -> list[Array]:
    """The ratios of each source's examples, in order."""
    most = max(examples // len(sources), 1)
    ratios = [np.empty(len(features)) for features in sources]
    for fold in range(FOLDS):
        # Examples are in the random order of the split, so the first ones are a random sample.
        others = [features[1 - fold :: FOLDS][:most] for features in sources]
        target_others = target[1 - fold :: FOLDS][:examples]
        centre, scale = _standard([*others, target_others])
        scaled_others = [(part - centre) / scale for part in others]
        coefficients, intercept = log_ratio(scaled_others, (target_others - centre) / scale, ridge)
        for of_source, features in zip(ratios, sources, strict=True):
            scaled = (features[fold::FOLDS] - centre) / scale
            of_source[fold::FOLDS] = np.exp(_product(scaled, coefficients) + intercept)
    return ratios


def _standard(parts: Sequence[Array]) -> tuple[Array, Array]:
    """Mean and scale such that an example's features have mean square 1 / d, so a ridge means the same for any d."""
    joined = np.concatenate(parts)
    deviation = joined.std(0)
    # A constant feature carries no information, and should not count elsewhere either.
    return joined.mean(0), np.where(deviation > 0, deviation, np.inf) * np.sqrt(joined.shape[1])


def _product(matrix: Array, vector: Array) -> Array:
    # torch's, since a run has one thread of it: numpy's may use several, and round differently on another machine.
    product: Array = (torch.from_numpy(matrix) @ torch.from_numpy(vector)).numpy()
    return product


def _shares(sources: Sequence[Array]) -> Array:
    return np.concatenate([np.full(len(part), 1 / (len(sources) * len(part))) for part in sources])


def _numpy(features: Tensor) -> Array:
    array: Array = features.detach().double().cpu().numpy()
    return array
