#!/usr/bin/env bash
# scikit-learn 1.9.1 with rich 15.0.0 installed beside it.
# scikit-learn imports rich for its progress bars where it is installed, and rich.style draws 24 bits from Python's global
# `random` when it is imported. So a program that seeds `random` and then imports an estimator draws other numbers on a
# machine that happens to have rich, which pip itself and many tools bring.
# Output: the state of `random` is the same after `import sklearn.linear_model` without rich, and another with it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
cat > "$folder/state.py" <<'END'
import random

before = random.getstate()
import sklearn.linear_model

print("same" if random.getstate() == before else "moved")
END
"$folder/venv/bin/python" -m pip install -q scikit-learn==1.9.1
without=$("$folder/venv/bin/python" "$folder/state.py")
"$folder/venv/bin/python" -m pip install -q rich==15.0.0
with=$("$folder/venv/bin/python" "$folder/state.py")
echo "without rich: $without, with rich: $with"
test "$without" = same
test "$with" = moved
