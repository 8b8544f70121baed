"""The resident memory of this process, as Linux reports it; without torch, whose own would add to what is measured."""

from __future__ import annotations

from pathlib import Path


def resident_now() -> float:
    """Bytes."""
    return _status("VmRSS")


def highest_resident() -> float:
    """The most so far, in bytes."""
    return _status("VmHWM")


def _status(field: str) -> float:
    """A size of this process, in bytes; Linux reports it in kB, which here are 1024 bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
