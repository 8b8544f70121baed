#!/usr/bin/env bash
# skada 0.6.0, TransferSubspaceLearningAdapter.
# Its n_components is None by default: the learned projection has as many directions as there are columns. A square
# orthogonal matrix changes neither of the traces whose ratio is minimised, and the search begins at the identity, which
# it never leaves: all rows come out as they went in, after the time of a fit, for each of its three base methods.
# Output (largest change of a number): flda, pca and lpp 0; with n_components=2 of 4 columns flda 9.0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q skada==0.6.0 scikit-learn==1.9.1 torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from skada import TransferSubspaceLearningAdapter

draw = np.random.default_rng(0)
x = draw.normal(size=(120, 4))
y = np.where(x[:, 0] + x[:, 1] > 0, 1, 0)
x[80:] = 2 * x[80:] + 1
y[80:] = -1
domain = np.repeat([1, -2], [80, 40])
for base in ("flda", "pca", "lpp"):
    moved = TransferSubspaceLearningAdapter(base_method=base).fit_transform(x, y, sample_domain=domain)
    change = np.abs(moved - x).max()
    print(base, change)
    assert change == 0
two = np.asarray(TransferSubspaceLearningAdapter(n_components=2).fit_transform(x, y, sample_domain=domain))
change = np.abs(two - x[:, :2]).max()
print("flda, two components", change)
assert change > 0.1
END
