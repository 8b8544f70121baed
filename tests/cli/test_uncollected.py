from __future__ import annotations

import gc

import pytest

from msda_bench.cli.uncollected import uncollected


def test_the_collector_rests_and_comes_back() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_comes_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), uncollected():
        raise ValueError("bad")
    assert gc.isenabled()


def test_one_that_rested_before_goes_on_to_rest() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
