"""msda-bench: a fast and fair benchmark suite for multi-source domain adaptation.

From a notebook or a script:

    import msda_bench as mb

    runs = mb.load_results("results/paper-amazon")  # a DataFrame, one row per planned run
    mb.leaderboard(runs)

What is listed in `__all__` is imported when it is first used, so that `import msda_bench` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from msda_bench.deferred import deferred

if TYPE_CHECKING:
    from msda_bench.cli.run import run as run
    from msda_bench.results.across import across as across
    from msda_bench.results.command_reports import advice as advice
    from msda_bench.results.compare import compare as compare
    from msda_bench.results.criteria import criteria as criteria
    from msda_bench.results.frame import load_curves as load_curves
    from msda_bench.results.frame import load_results as load_results
    from msda_bench.results.leaderboard import leaderboard as leaderboard
    from msda_bench.results.predictions import load_confusion as load_confusion
    from msda_bench.results.predictions import load_predictions as load_predictions
    from msda_bench.results.signed_rank import signed_rank as signed_rank
    from msda_bench.results.verify import verify as verify
    from msda_bench.running.fit import fit as fit
    from msda_bench_report import plots as plots

__version__ = "0.1.0"
_HOMES = {
    "msda_bench.cli.run": "run",
    "msda_bench.results.across": "across",
    "msda_bench.results.command_reports": "advice",
    "msda_bench.results.compare": "compare",
    "msda_bench.results.criteria": "criteria",
    "msda_bench.results.frame": "load_curves load_results",
    "msda_bench.results.leaderboard": "leaderboard",
    "msda_bench.results.predictions": "load_confusion load_predictions",
    "msda_bench.results.signed_rank": "signed_rank",
    "msda_bench.results.verify": "verify",
    "msda_bench.running.fit": "fit",
}
_imported = deferred(__name__, _HOMES)
__all__ = tuple(sorted(["plots", *" ".join(_HOMES.values()).split()]))


def __getattr__(name: str) -> Any:
    return import_module("msda_bench_report.plots") if name == "plots" else _imported(name)


def __dir__() -> list[str]:
    return list(__all__)
