"""The part on selecting settings, of experiments that do."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from msda_bench.results import plots
from msda_bench.results.page.figures import Figure, figure
from msda_bench.results.page.parts import Frames, Part, slugs

MOST = 8
"""Parameters that have a figure."""
_COLUMNS = ["criterion", "selects", "mean", "regret", "regret_standard_error", "rank_correlation", "n_rank_correlation"]


def settings_part(runs: pd.DataFrame, frames: Frames) -> Part | None:
    """What each criterion costs, and how the score depends on each parameter; None where nothing is selected.

    Args:
        runs: with all candidates.
        frames: of the experiment.
    """
    if not frames.experiment.criteria:
        return None
    from msda_bench.results.criteria import criteria, sensitivity
    from msda_bench.results.criteria_text import criteria_notes

    judged, points = criteria(runs), sensitivity(runs)
    own = judged[(judged["experiment"] == frames.experiment.name).to_numpy()]
    if own.empty:
        return None
    tried = points[(points["experiment"] == frames.experiment.name).to_numpy()]
    lede = (
        f"{' '.join(criteria_notes(own))} The other charts show the score on the target of every candidate by one of "
        "its parameters, with the means of equal values joined: the oracle's view, for readers and not for tuning."
    )
    return Part(f"{frames.id}-settings", "Selecting settings", lede, tuple(_figures(frames, own, tried)))


def _figures(frames: Frames, judged: pd.DataFrame, tried: pd.DataFrame) -> Iterator[Figure]:
    place = "average" if (judged["target"] == "average").any() else frames.experiment.targets[0]
    whole = judged[((judged["method"] == "all methods") & (judged["target"] == place)).to_numpy()]
    label = "Regret to the oracle of each criterion"
    name = f"{frames.id}-regret"
    yield figure(name, "Regret by criterion", label, plots.regrets(judged), whole[_COLUMNS], frames.shown, wide=True)
    parameters = slugs(dict.fromkeys(tried["parameter"]))
    for parameter, place in list(parameters.items())[:MOST]:
        rows = tried[(tried["parameter"] == parameter).to_numpy()]
        label = f"Score on the target by {parameter}"
        values = rows[["method", "value", "score"]]
        yield figure(f"{frames.id}-by-{place}", parameter, label, plots.sensitivity(rows), values, frames.shown)
