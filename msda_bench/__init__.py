"""msda-bench: a fast and fair benchmark suite for multi-source domain adaptation."""

__version__ = "0.1.0"
