"""Which texts count as one, as missing, or as so alike that someone should look."""

from __future__ import annotations

import pytest

from msda_bench.functional import alike, plain_texts


@pytest.mark.parametrize(
    ("texts", "plain"),
    [
        (["yes", " yes\t", "y\u00a0 es", "Yes"], ["yes", "yes", "y es", "Yes"]),
        (["caf\u00e9", "cafe\u0301"], ["caf\u00e9", "caf\u00e9"]),
        (["101", "101.0", "101 ", "00101", "+1.01e2", ""], ["101"] * 5 + [""]),
        (["-0.0", "0", "NaN"], ["0", "0", ""]),
        (["007", "010", ""], ["007", "010", ""]),
        (["0.50", ".5", "1"], ["0.5", "0.5", "1"]),
        (["101", "101.0", "A7"], ["101", "101.0", "A7"]),
        ([str(2**53), str(2**53 + 1)], [str(2**53), str(2**53 + 1)]),
        (["1", "1e999"], ["1", "1e999"]),
        (["None", "<NA>", "#N/A", "n/a", "-nan", "NaT", "NA ", "?", " ", "none"], [""] * 9 + ["none"]),
    ],
)
def test_texts_that_mean_the_same_are_one(texts: list[str], plain: list[str]) -> None:
    assert plain_texts(texts) == plain


def test_a_text_is_missing_only_if_the_list_names_it() -> None:
    assert plain_texts(["NA", "-1", "-1.0", ""], ["-1"]) == ["NA", "", "-1.0", ""]
    assert plain_texts(["-1.0", "-1", "1.0"], ["-1"]) == ["", "", "1"]


def test_texts_that_look_alike_are_named_together() -> None:
    apart = ["A", "b", "a", "b.", "c", "caf\u00e9", "Cafe\u0301", "x\u00ady", "xy", "101", "101.0", "A7"]
    assert alike(apart) == [("A", "a"), ("b", "b."), ("caf\u00e9", "Cafe\u0301"), ("x\u00ady", "xy"), ("101", "101.0")]
