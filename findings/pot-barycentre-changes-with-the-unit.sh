#!/usr/bin/env bash
# POT 0.9.7.post1, ot.bregman.free_support_sinkhorn_barycenter.
# It stops when the support moves by less than an absolute threshold, so the same data in another unit (with `reg` in that
# unit) give another barycentre: metres and micrometres differ. The spread of the support shrinks where the loop stops
# early, without a warning.
# Output: spread of the support 0.779 in the first unit, 0.727 in one 100,000 times as large, in multiples of the unit.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q POT==0.9.7.post1
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from ot.bregman import free_support_sinkhorn_barycenter

draw = np.random.default_rng(0)
clouds = [draw.normal(0, 1, (40, 2)), draw.normal(4, 1, (40, 2))]
start = np.concatenate(clouds)[::8]
spreads = []
for unit in (1.0, 1e-5):
    given = [cloud * unit for cloud in clouds]
    weights = [np.full(40, 1 / 40)] * 2
    found = free_support_sinkhorn_barycenter(given, weights, start * unit, reg=0.5 * unit**2, numItermax=100)
    spreads.append(found.std(0)[0] / unit)
print("spread %.3f and %.3f" % tuple(spreads))
assert spreads[0] > 1.05 * spreads[1]
END
