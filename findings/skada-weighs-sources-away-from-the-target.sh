#!/usr/bin/env bash
# skada 0.6.0, DiscriminatorReweightAdapter.
# Density ratio weights should be large where a source's rows look like the target's. This adapter weighs by (1 - p) / p,
# p being the probability that a row is of the target, so rows that look unlike the target get the large weights. Its
# neighbour DensityReweightAdapter weighs the right way round.
# Output: mean weight of 200 rows far from the target 1.85, of 200 rows drawn like it 0.15; by density 0.09 and 1.91.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q skada==0.6.0 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from skada import DensityReweightAdapter, DiscriminatorReweightAdapter

draw = np.random.default_rng(0)
x = np.concatenate([draw.normal(0, 1, (200, 2)), draw.normal(3, 1, (400, 2))])
y = np.where(np.arange(600) < 400, draw.integers(0, 2, 600), -1)
domain = np.where(np.arange(600) < 400, 1, -2)
means = {}
for adapter in (DiscriminatorReweightAdapter(), DensityReweightAdapter()):
    weights = adapter.fit(x, y, sample_domain=domain).compute_weights(x, y, sample_domain=domain)
    means[type(adapter).__name__] = weights[:200].mean(), weights[200:400].mean()
    print(type(adapter).__name__, "far %.2f, like the target %.2f" % means[type(adapter).__name__])
far, like = means["DiscriminatorReweightAdapter"]
assert far > 10 * like
far, like = means["DensityReweightAdapter"]
assert like > 10 * far
END
