from __future__ import annotations

import re

import pytest

from msda_bench.report.pairs import print_comparisons
from msda_bench.store.record import Outcome

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_golden_plain_text(sample, golden, printed):
    golden("comparisons.txt", printed(print_comparisons, *sample))


def test_fits_in_100_columns(sample, printed):
    lines = printed(print_comparisons, *sample).splitlines()
    assert max(len(line) for line in lines if not line.startswith("problem:")) <= 100


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_number_is_cut_on_a_narrow_terminal(sample, printed, width):
    text = ESCAPE.sub("", printed(print_comparisons, *sample, width=width, terminal=True))
    lines = [line for line in text.splitlines() if " > " in line and not line.startswith("a > b")]
    assert len(lines) == 3 * 6 + 1
    assert "…" not in text
    for line in lines:
        assert len(re.findall(r"\d\.\d{4}|<\.0001", line)) == 3
        assert ("interval" in text) == (width >= 98 or "left out" in text)


def test_the_better_one_stands_first_with_its_own_numbers(make_sample, printed):
    def second_better(name: str, target: str, seed: int) -> Outcome:
        return Outcome(200, n_correct=100 + (seed + 1 if name == "b" and seed else 0))

    text = printed(print_comparisons, *make_sample(second_better, targets=("x",), seeds=8))
    (line,) = (line for line in text.splitlines() if line.startswith("b > a"))
    assert line.split() == ["b", ">", "a", "+2.25", "1.00", "..", "3.50", "0.0078", "0.0156", "0.0156*", "7/1/0", "8/8"]


def test_equal_methods(make_sample, printed):
    text = printed(print_comparisons, *make_sample(lambda *_: Outcome(4, n_correct=2), targets=("x",)))
    (line,) = (line for line in text.splitlines() if line.startswith("a = b"))
    assert line.split()[3:4] == ["+0.00"]
    assert line.endswith("0/6/0  6/6  no_differences")


def test_one_method_has_no_other_to_compare_with(make_sample, printed):
    text = printed(print_comparisons, *make_sample(lambda *_: Outcome(4, n_correct=2), methods=("a", "ref")))
    assert "nothing to compare" in text
