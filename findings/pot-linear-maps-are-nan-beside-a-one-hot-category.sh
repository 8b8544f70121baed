#!/usr/bin/env bash
# POT 0.9.7.post1, ot.da.LinearTransport and ot.da.LinearGWTransport.
# A category written as one-hot columns makes covariances singular, since those columns add up to one. Rounding then
# makes an eigenvalue of about 0 negative, its square root is NaN, and so is every row that is moved; mostly nothing is
# raised. The default regulariser of 1e-8 prevents it in some data only, in single precision hardly ever.
# Output, pairs of 20 whose moved rows are finite: numbers alone 20 each; with a category of three values beside them
# LinearTransport 14 in double and 1 in single precision, LinearGWTransport 3 and 4.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q POT==0.9.7.post1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from ot.da import LinearGWTransport, LinearTransport

draw = np.random.default_rng(0)


def rows(scale):
    numbers = scale * draw.normal(size=(100, 3))
    category = np.eye(3)[draw.integers(0, 3, 100)]
    return np.hstack([numbers, category])


pairs = [(rows(1), rows(2)) for _ in range(20)]
finite = {}
for cls in (LinearTransport, LinearGWTransport):
    for dtype in (np.float64, np.float32):
        count = 0
        for source, target in pairs:
            try:
                moved = cls().fit(Xs=source.astype(dtype), Xt=target.astype(dtype)).transform(Xs=source.astype(dtype))
            except ValueError:
                continue
            count += bool(np.isfinite(moved).all())
        finite[cls.__name__, dtype.__name__] = count
        print(cls.__name__, dtype.__name__, count)
    numbers = [cls().fit(Xs=a[:, :3], Xt=b[:, :3]).transform(Xs=a[:, :3]) for a, b in pairs]
    assert np.isfinite(numbers).all()
assert all(count < 20 for count in finite.values())
assert finite["LinearTransport", "float32"] < finite["LinearTransport", "float64"]
END
