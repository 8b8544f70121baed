"""Risk on the sources, weighted as if they were the target."""

from __future__ import annotations

from msda_bench.api import Count, Positive, ValidationView, Validator, component
from msda_bench_builtin.validators.density_ratio import weighted_losses


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
        found = weighted_losses(view, ridge=self.ridge, examples=self.examples)
        return -found.mean(found.ratios * found.losses)
