"""Libraries that a component needs beyond those of msda-bench itself."""

from __future__ import annotations

import importlib.util


def installed(*modules: str) -> bool:
    """Whether all of these can be imported; none is."""
    return all(importlib.util.find_spec(name) is not None for name in modules)


def require(libraries: str, extra: str, *modules: str) -> None:
    """Refuses to be without these libraries.

    Args:
        libraries: as a message names them.
        extra: of msda-bench, which installs them.
        modules: that they consist of.

    Raises:
        ValueError: one of the modules is missing.
    """
    if not installed(*modules):
        them = "them" if " and " in libraries else "it"
        raise ValueError(f"needs {libraries}; install {them}: pip install '.[{extra}]' in the clone")
