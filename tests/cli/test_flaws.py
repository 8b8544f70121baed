"""`msda-bench data leaks` on rows with flaws of each kind, whose numbers are known."""

import re

import numpy as np

from msda_bench.cli.main import main
from tests.own import suite

N = 200
PLACES = np.arange(3 * N)
KINDS = ("copies", "classes", "order", "constant", "telling")


def no_flaw(x, y):
    pass


def copies_in_a_domain(x, y):
    x[20:35], y[20:35] = x[:15], y[:15]
    x[N + 1], y[N + 1] = x[N], y[N]


def copies_with_other_labels(x, y):
    copies_in_a_domain(x, y)
    y[20:22] = 1 - y[:2]


def copies_of_another_domain(x, y):
    x[2 * N : 2 * N + 3], y[2 * N : 2 * N + 3] = x[100:103], y[100:103]


def dropped_copies(x, y):
    copies_with_other_labels(x, y)
    copies_of_another_domain(x, y)
    return {"duplicates": "drop"}


def lacking_classes_and_rows_in_order(x, y):
    y[:N] = np.repeat([0, 1, 2, 3], N // 4)
    y[N : N + 100] = 2


def constant_inputs_in_a_domain(x, y):
    x[:N, 3:5] = 7


def input_that_tells_the_domain(x, y):
    x[:, 6] += 100 * (PLACES // N)


def input_that_tells_the_class(x, y):
    y[:] = PLACES % 3 == 0
    x[:, 2] = y + (PLACES % 30 == 1)


def gaps_that_tell_the_class(x, y):
    x[np.arange(10) >= np.where(y == 1, 10, 7)[:, None]] = np.nan
    return {"signals": "channels_first"}


def copies_of_a_number(x, y):
    x[5] = x[4]
    return {"y": PLACES / 7}


def input_that_follows_a_number(x, y):
    labels = np.random.default_rng(1).permutation(PLACES / 7)
    x[:, 3] = 8 - 2 * labels
    return {"y": labels}


FLAWS = (
    *(no_flaw, copies_in_a_domain, copies_with_other_labels, copies_of_another_domain, dropped_copies),
    *(lacking_classes_and_rows_in_order, constant_inputs_in_a_domain, input_that_tells_the_domain),
    *(input_that_tells_the_class, gaps_that_tell_the_class, copies_of_a_number, input_that_follows_a_number),
)


def test_each_flaw_is_a_line_with_its_numbers(tmp_path, capsys, golden):
    """In arrays of three domains with 200 rows each."""
    said = []
    for flaw in FLAWS:
        draw = np.random.default_rng(0)
        x, y = draw.normal(size=(3 * N, 10)), draw.permutation(3 * N) % 2
        params = flaw(x, y) or {}
        labels = params.pop("y", y)
        np.savez(tmp_path / "own.npz", x=x.astype(np.float32), y=labels, domain=np.repeat(["a", "b", "c"], N))
        main(["data", "leaks", suite(tmp_path, "arrays", {"file": "own.npz", **params})])
        lines = re.sub(r"\n  +", " ", capsys.readouterr().out).splitlines()
        said += [f"{flaw.__name__}:", *(line for line in lines if line.startswith(KINDS)), ""]
    golden("flaws.txt", "\n".join(said))
