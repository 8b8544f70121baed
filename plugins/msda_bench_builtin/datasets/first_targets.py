"""Chooses the targets of the first suite that `data identify` writes."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

_MOST = 20
"""Of more domains not all are targets."""
_CHOSEN = 8


def first_targets(domains: Sequence[str]) -> tuple[str, list[str]]:
    """What a suite says of its targets: all domains, or a few of many; and a line on that choice."""
    if len(domains) <= _MOST:
        return "all # each domain in turn, from all others", []
    chosen = {*random.Random(0).sample(sorted(domains), _CHOSEN)}  # noqa: S311 - a choice that anyone can repeat
    names = json.dumps([name for name in domains if name in chosen], ensure_ascii=False)
    what = f"{_CHOSEN} of {len(domains)} domains, drawn at random"
    line = f"targets: {what}, since each adds runs with {len(domains) - 1} sources; `targets: all` takes every domain"
    return f"{names} # {what}; all: every domain in turn", [line]
