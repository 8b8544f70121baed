"""What is left of mean gains when settings are selected without labels of the target."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from msda_bench.results.across import Across, across_of
from msda_bench.results.frame import runs_of
from msda_bench.results.gains import SURVIVES, ratio_of_gains


def survives(tuned: str | Path | pd.DataFrame, oracle: str | Path | pd.DataFrame) -> pd.DataFrame:
    """What is left of each method's mean gain when its settings are selected without labels of the target.

    Args:
        tuned: runs of settings that are selected without labels of the target, such as `select(runs, by=...)` gives.
        oracle: runs of settings that are selected with them.

    Returns:
        One row per method: `method, gain_tuned, gain_oracle` (means over the experiments that both have), their ratio
        `survives` and its bootstrap interval over experiments and seeds, `survives_low` and `survives_high`, all three
        empty for fewer than three experiments, and where the oracle's gain is not shown to be above 0.

    Raises:
        ValueError: there are fewer than two datasets of accuracy.
    """
    tracks = []
    for name, runs in (("tuned", tuned), ("oracle", oracle)):
        if (comparison := across_of(runs_of(runs))) is None:
            what = "there are fewer than two datasets of accuracy, with any headroom asked for"
            raise ValueError(f"{name}: nothing to compare: {what}")
        tracks.append(comparison)
    return survival(*tracks)


def survival(first: Across, second: Across) -> pd.DataFrame:
    """The frame that `survives` returns, of known comparisons."""
    rows = [
        {"method": name} | ratio_of_gains(first.strata(name), second.strata(name), first.alpha)
        for name in first.methods
        if name in second.methods and name != first.baseline
    ]
    return pd.DataFrame(rows, columns=["method", *SURVIVES])
