"""`msda-bench data leaks` on rows with flaws of each kind, whose numbers are known."""

import re

import numpy as np
import pytest

from msda_bench.cli.main import main
from tests.own import suite

N = 200
SITES = ("a", "b", "c")


@pytest.fixture
def flaws(tmp_path, capsys):
    """`flaws(x, y, ...)`: the lines on the flaws of arrays of three domains with 200 rows each."""

    def run(x, y, *, domain=None, **params):
        domain = np.repeat(SITES, N) if domain is None else domain
        np.savez(tmp_path / "own.npz", x=x.astype(np.float32), y=y, domain=domain)
        main(["data", "leaks", suite(tmp_path, "arrays", {"file": "own.npz", **params})])
        text = capsys.readouterr().out.partition("Percentages of")[0]
        lines = re.sub(r"\n  +", " ", text).splitlines()
        return [line for line in lines if line.startswith(("copies", "classes", "order", "constant", "telling"))]

    return run


def drawn(columns=10):
    draw = np.random.default_rng(0)
    return draw.normal(size=(3 * N, columns)), draw.permutation(3 * N) % 2


def test_nothing_is_said_of_rows_without_a_flaw(flaws):
    assert flaws(*drawn()) == []


def test_copies_are_counted_within_domains_and_between_them_and_their_labels_compared(flaws):
    x, y = drawn()
    x[20:35], y[20:35] = x[:15], y[:15]
    x[N + 1], y[N + 1] = x[N], y[N]
    within = "copies: rows that equal an earlier one of their domain: a 15 of 200 and b 1 of 200; "
    assert flaws(x, y) == [f"{within}equal rows have equal labels; `duplicates: drop` leaves them out"]
    y[20:22] = 1 - y[:2]
    differ = "4 of these and their originals have different labels"
    assert flaws(x, y) == [f"{within}{differ}; `duplicates: drop` leaves them out"]
    x[2 * N : 2 * N + 3], y[2 * N : 2 * N + 3] = x[100:103], y[100:103]
    between = "copies: rows that equal one of another domain: a 3 and c 3; equal rows have equal labels"
    remedy = "; if they are of one thing, name it as their group"
    assert flaws(x, y, duplicates="drop") == [between + remedy]


def test_classes_that_a_domain_lacks_and_rows_in_the_order_of_labels_are_named(flaws):
    x, y = drawn()
    y[:N] = np.repeat([0, 1, 2, 3], N // 4)
    y[N : N + 100] = 2
    lacking, order = flaws(x, y)
    where = "b class 3 and c class 2, 3"
    assert lacking == f"classes: domains without a row of some class: {where}; methods answer it there all the same"
    said = "order: rows with the label of the row before, beside those in a random order: "
    assert order == f"{said}a 98 % (25 %) and b 75 % (38 %); runs draw their splits at random, and so should you"


def test_inputs_that_do_not_vary_in_a_domain_or_tell_it_are_named(flaws):
    x, y = drawn()
    x[:N, 3:5] = 7
    (line,) = flaws(x, y)
    what = "constant: inputs that do not vary in a domain, but in another"
    assert line == f"{what}: a 2 (first 3) of 10; they tell the domain"
    x, y = drawn()
    x[:, 6] += 100 * np.repeat(range(3), N)
    assert flaws(x, y) == [
        "telling: input 6 alone tells the domain of 97 % of the rows (always the most frequent: 33 %)"
    ]
    x, y = drawn()
    y = (np.arange(3 * N) % 3 == 0).astype(int)
    x[:, 2] = y + np.where(np.arange(3 * N) % 30 == 1, 1, 0)
    assert flaws(x, y) == [
        "telling: input 2 alone tells the class of 97 % of the rows (always the most frequent: 67 %)"
    ]


def test_values_that_are_missing_may_tell_the_class(flaws):
    x, y = drawn()
    length = np.where(y == 1, 10, 7)
    x[np.arange(10) >= length[:, None]] = np.nan
    (line,) = flaws(x, y, signals="channels_first")
    share = 100 * max(y.mean(), 1 - y.mean())
    what = "telling: which values are missing alone tells the class of 100 % of the rows"
    assert line == f"{what} (always the most frequent: {share:.0f} %)"


def test_a_number_to_predict_has_no_classes_and_no_order_but_copies(flaws):
    x, _ = drawn()
    y = np.arange(3 * N) / 7
    x[5] = x[4]
    said = "copies: rows that equal an earlier one of their domain: a 1 of 200; "
    differ = "2 of these and their originals have different labels; `duplicates: drop` leaves them out"
    assert flaws(x, y) == [said + differ]
    y = np.random.default_rng(1).permutation(y)
    x[:, 3] = 8 - 2 * y
    told = "telling: input 3 puts the rows of a domain in the order of their labels (rank correlation 1.00)"
    assert flaws(x, y) == [told]
