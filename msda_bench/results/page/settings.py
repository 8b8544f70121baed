"""The part on selecting settings, of experiments that do."""

from __future__ import annotations

import pandas as pd

from msda_bench.results.page.parts import Frames, Part


def settings_part(runs: pd.DataFrame, frames: Frames) -> Part | None:
    """What each criterion costs, and how the score depends on each parameter; None where nothing is selected."""
    if not frames.experiment.criteria:
        return None
    return None
