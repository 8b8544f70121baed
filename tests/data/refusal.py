"""The error of a call that must fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from msda_bench.errors import DataError


def only_line(call: Callable[..., object], *args: Any, **options: Any) -> str:
    """The single line of the DataError that the call raises."""
    with pytest.raises(DataError) as caught:
        call(*args, **options)
    (line,) = caught.value.lines
    assert "\n" not in line
    return line
