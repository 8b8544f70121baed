#!/usr/bin/env bash
# skada 0.6.0 with scikit-learn 1.9.1.
# Importing skada turns on scikit-learn's metadata routing for the whole process. From then on calls that worked in code
# that has nothing to do with skada raise: `groups=` of cross_val_score, and `step__sample_weight=` of a pipeline's fit.
# Output: both calls pass before the import; after it ValueError and TypeError.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q skada==0.6.0 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

x = np.random.default_rng(0).normal(size=(60, 3))
y = (x[:, 0] > 0).astype(int)
groups = np.repeat(range(6), 10)
model = make_pipeline(StandardScaler(), LogisticRegression())
calls = {
    "groups": lambda: cross_val_score(model, x, y, cv=GroupKFold(3), groups=groups),
    "weights": lambda: model.fit(x, y, logisticregression__sample_weight=np.ones(60)),
}


def outcomes():
    found = {}
    for name, call in calls.items():
        try:
            call()
            found[name] = "passes"
        except (TypeError, ValueError) as error:
            found[name] = type(error).__name__
    return found


before = outcomes()
import skada

after = outcomes()
print(before, after)
assert before == {"groups": "passes", "weights": "passes"}
assert after == {"groups": "ValueError", "weights": "TypeError"}
END
