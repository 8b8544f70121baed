"""msda-bench: a fast and fair benchmark suite for multi-source domain adaptation."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "load_results": "msda_bench.results.frame",
    "load_curves": "msda_bench.results.frame",
    "leaderboard": "msda_bench.results.leaderboard",
    "compare": "msda_bench.results.compare",
    "signed_rank": "msda_bench.results.signed_rank",
    "plots": "msda_bench.results",
}
"""What the package exports, and where it is; nothing of it is imported before it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{_PUBLIC[name]}.plots") if name == "plots" else getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*_PUBLIC, "__version__"]
