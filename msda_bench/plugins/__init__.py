"""The plugin host."""

from msda_bench.plugins.discover import discover
from msda_bench.plugins.registry import KINDS, BrokenPlugin, Entry, Registry

__all__ = ["KINDS", "BrokenPlugin", "Entry", "Registry", "discover"]
