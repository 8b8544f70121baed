#!/usr/bin/env bash
# skada 0.6.0, JDOTClassifier around a gradient boosting or a tree of scikit-learn.
# JDOT's loss multiplies log probabilities by the classes' indicators; a base whose first fit answers a probability of zero,
# as a tree's leaf does, makes 0 times minus infinity, a cost that is not a number, and a transport plan without mass. The
# error comes later and elsewhere, and does not name the cause.
# Output: LogisticRegression passes; a tree of depth 3 raises ValueError (no sample is left).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q skada==0.6.0 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from skada import JDOTClassifier

draw = np.random.default_rng(0)
source, target = draw.normal(size=(200, 2)), draw.normal(size=(200, 2)) + [1.5, 0]
x = np.concatenate([source, target])
y = np.concatenate([source[:, 0] > 0, np.full(200, -1)]).astype(int)
domain = np.repeat([1, -2], 200)
found = []
for base in (LogisticRegression(), DecisionTreeClassifier(max_depth=3)):
    try:
        JDOTClassifier(base).fit(x, y, sample_domain=domain)
        found.append("passes")
    except (AttributeError, ValueError) as error:
        found.append(f"{type(error).__name__}: {str(error)[:60]}")
    print(type(base).__name__, found[-1])
assert found[0] == "passes"
assert found[1].startswith("ValueError")
END
