"""The plugin host."""

from msda_bench.plugins.discover import discover
from msda_bench.plugins.registry import KINDS, Broken, Entry, Registry

__all__ = ["KINDS", "Broken", "Entry", "Registry", "discover"]
