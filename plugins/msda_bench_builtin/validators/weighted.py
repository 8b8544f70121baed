"""Risks on held-out source examples that count as much as their likelihood at the target."""

from __future__ import annotations

from msda_bench.api import Count, Positive, ValidationView, Validator, component
from msda_bench_builtin.validators.density_ratio import weighted_losses

_ROUND_OFF = 1e-12
"""Below this the variance of density ratios counts as zero."""


@component
class Dev(Validator):
    """Minus the importance-weighted risk with a control variate, deep embedded validation.

    With L = w l and the density ratio w, whose mean is known to be 1, mean L + eta (mean w - 1) has the least variance
    at eta = -Cov(L, w) / Var(w). If all weights are equal there is nothing to control: eta is 0.

    Parameters:
        ridge: as of `importance_weighted_risk`.
        examples: as of `importance_weighted_risk`.

    You, Wang, Long, Jordan. Towards accurate model selection in deep unsupervised domain adaptation. ICML, 2019.
    """

    name = "dev"

    ridge: Positive = 0.01
    examples: Count = 2000

    def score(self, view: ValidationView) -> float:
        """Minus the controlled risk, each source counting equally."""
        weighed = weighted_losses(view, ridge=self.ridge, examples=self.examples)
        w = weighed.ratios
        weighted = weighed.ratios * weighed.losses
        mean = weighed.mean(w)
        risk = weighed.mean(weighted)
        variance = weighed.mean((w - mean) ** 2)
        covariance = weighed.mean((w - mean) * (weighted - risk))
        eta = -covariance / variance if variance > _ROUND_OFF else 0.0
        return -(risk + eta * (mean - 1))


@component
class ImportanceWeightedRisk(Validator):
    """Minus the risk on held-out source examples, weighted by how much more likely their features are in the target.

    The mean of w(x) l(x, y), w = p_target / p_sources, is the target's risk if labels depend on features in the same
    way and the target lies within the sources. w comes from a logistic regression on the features, each half of the
    examples with the one fitted on the other half.

    Parameters:
        ridge: of the regression, on features scaled to mean square 1 / d; a large one makes all weights 1.
        examples: the maximum number for the regression, from all sources together and from the target.

    Sugiyama, Krauledat, Mueller. Covariate shift adaptation by importance weighted cross validation. JMLR, 2007.
    """

    name = "importance_weighted_risk"

    ridge: Positive = 0.01
    examples: Count = 2000

    def score(self, view: ValidationView) -> float:
        """Minus the weighted mean loss, each source counting equally."""
        weighed = weighted_losses(view, ridge=self.ridge, examples=self.examples)
        return -weighed.mean(weighed.ratios * weighed.losses)
