"""What a record was made on, in a few words: the system and torch, and the device where it is not a CPU."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from msda_bench.errors import printable

_MACHINE = re.compile(r"(?<![a-z0-9_])(x86_64|amd64|arm64|aarch64|armv7l|i[3-6]86|ppc64le|riscv64|s390x)(?![a-z0-9_])")
_LONG = 60


def made_on(provenance: Mapping[Any, Any]) -> str | None:
    """Such as `macOS arm64 with torch 2.11.0`; None where a record says nothing of it.

    Args:
        provenance: of a record, or its row of a frame of runs, with None for what it does not say.
    """
    return _words(*map(provenance.get, ("platform", "torch", "device", "device_name")))


@functools.lru_cache(maxsize=1000)
def _words(platform: str | None, torch: str | None, device: str | None, device_name: str | None) -> str | None:
    if not (platform or torch):
        return None
    found = _system(platform) if platform else "an unnamed system"
    found += f" with torch {printable(torch, _LONG)}" if torch else ""
    return found + (f" and {printable(device_name or device, _LONG)}" if device not in {None, "cpu"} else "")


def _system(platform: str) -> str:
    """The system and the machine of what `platform.platform()` says, without the releases of kernels and libraries."""
    # The last one named is the machine: before it a kernel's release may name another.
    machines = _MACHINE.findall(platform.lower())
    return " ".join([printable(platform.partition("-")[0], _LONG), *machines[-1:]])
