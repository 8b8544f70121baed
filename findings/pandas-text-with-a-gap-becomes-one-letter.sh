#!/usr/bin/env bash
# pandas 3.1.1 with pyarrow 26.0.1 and its default string dtype.
# `Series.to_numpy(str)` of texts of which one is missing gives an array of one letter each: the missing value counts as the
# longest text. Without a gap the texts are whole. `to_numpy(object).astype(str)` keeps them.
# Output: ['y' 'n' 'n'] of yes, no and a gap; ['yes' 'no'] without the gap.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q pandas==3.1.1 pyarrow==26.0.1 numpy
"$folder/venv/bin/python" -W ignore - <<'END'
import pandas as pd

gap, whole = pd.Series(["yes", "no", None]), pd.Series(["yes", "no"])
cut = gap.to_numpy(str)
print(gap.dtype, cut, whole.to_numpy(str))
assert cut[0] == "y"
assert cut[1] == "n"
assert whole.to_numpy(str).tolist() == ["yes", "no"]
assert gap.to_numpy(object).astype(str)[0] == "yes"
END
