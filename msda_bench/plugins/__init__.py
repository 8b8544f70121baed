"""The plugin host."""

from msda_bench.plugins.registry import KINDS, BrokenPlugin, Entry, Registry, discover

__all__ = ["KINDS", "BrokenPlugin", "Entry", "Registry", "discover"]
