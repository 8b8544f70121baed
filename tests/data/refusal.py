"""The error of a call that must fail."""

import pytest

from msda_bench.errors import DataError


def only_line(call, *args, **options):
    """The single line of the DataError that the call raises."""
    with pytest.raises(DataError) as caught:
        call(*args, **options)
    (line,) = caught.value.lines
    assert "\n" not in line
    return line
