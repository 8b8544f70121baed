"""A worker's memory."""

from __future__ import annotations

import ctypes

import pytest

from msda_bench.running.executors import worker


def test_is_no_error_where_the_library_has_no_such_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    worker.keep_freed_memory()


def test_both_thresholds_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, what: int, value: int) -> None:
            told.append((what, value))

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    worker.keep_freed_memory()
    assert told == [(-3, 1 << 30), (-1, 1 << 30)]
