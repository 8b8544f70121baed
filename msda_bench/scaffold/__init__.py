"""Writes complete distributions as starting points for plugin authors."""

from msda_bench.scaffold.names import Names
from msda_bench.scaffold.write import render, write

__all__ = ["Names", "render", "write"]
