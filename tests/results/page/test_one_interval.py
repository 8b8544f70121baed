"""Terminal, CSV files, page and site have one interval of a method for the same runs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.store import Outcome
from tests.results.conftest import planned, with_cells, write_folder
from tests.results.page.conftest import Page

SEEDS, N_TEST, N_TRAIN = 10, 1000, 250
GAINS = {"up": 12.0, "near": 1.0, "down": -9.0}


def right(method, place):
    """Right answers by seed: those of SRC, and a gain that differs by seed."""
    noise = np.random.default_rng([place, *method.encode()]).normal(0, 8, SEEDS)
    base = 500 + 10 * np.arange(SEEDS)
    return [round(of) for of in base + (0 if method == "SRC" else 10 * GAINS[method] + noise)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    parts = []
    for place in range(2):
        runs = {name: {"x": [Outcome(N_TEST, n_correct=n) for n in right(name, place)]} for name in ("SRC", *GAINS)}
        part = planned(runs, f"e{place}", f"d{place}", baseline="SRC", pairs="baseline")
        cell = {"dataset": {"name": "toy", "version": 1, "params": {"train": N_TRAIN}}, "target": "x"}
        parts.append(with_cells(part, lambda _, cell=cell: cell))
    return write_folder(tmp_path_factory.mktemp("one") / "runs", *parts)


def intervals(method):
    """The mean gain and its interval in each experiment, and over both, by the formulae of docs/statistics.md."""
    gains = [(np.array(right(method, place)) - right("SRC", place)) / N_TEST * 100 for place in range(2)]
    errors = [np.sqrt((1 / SEEDS + N_TEST / N_TRAIN) * of.var(ddof=1)) for of in gains]
    of_each = [
        (of.mean(), *stats.t.interval(0.95, SEEDS - 1, of.mean(), e)) for of, e in zip(gains, errors, strict=True)
    ]
    variances = np.square(errors)
    freedom = variances.sum() ** 2 / (variances**2 / (SEEDS - 1)).sum()
    mean, error = np.mean([of.mean() for of in gains]), np.sqrt(variances.sum()) / 2
    return [*of_each, (mean, *stats.t.interval(0.95, freedom, mean, error))]


def test_terminal_files_page_and_site_say_one_interval(folder, tmp_path, shown):
    said = shown("leaderboard", folder) + shown("compare", folder, "--across")
    shown("report", folder)
    shown("site", folder, "--out", tmp_path / "site")
    page, site = (Page(path.read_text()).said for path in (folder / "report.html", tmp_path / "site" / "index.html"))
    board = pd.read_csv(folder / "leaderboard.csv").set_index(["experiment", "method", "target"])
    pairs = pd.read_csv(folder / "comparisons.csv").query("scope == 'target' and first == 'SRC'")
    pairs = pairs.set_index(["experiment", "second"])
    across = mb.across(folder).set_index("method")
    for method in GAINS:
        *of_each, (gain, low, high) = intervals(method)
        assert across.loc[method, ["mean_gain", "mean_gain_low", "mean_gain_high"]].tolist() == pytest.approx(
            [gain, low, high]
        )
        for text in (said, page, site):
            assert f"{method} {gain:+.2f} [{low:+.2f}, {high:+.2f}]" in text
            assert f"{low:.2f} .. {high:.2f}" in text
        for place, (gain, low, high) in enumerate(of_each):
            found = board.loc[(f"e{place}", method, "x"), ["gain", "gain_low", "gain_high"]]
            tested = -pairs.loc[(f"e{place}", method), ["mean_difference", "difference_high", "difference_low"]]
            assert [*found, *tested] == pytest.approx([gain, low, high] * 2, rel=1e-4)
            assert f"{method} {gain:+.2f} [{low:+.2f}, {high:+.2f}]" in page
    for word in ("uncorrected", "Student"):
        assert word not in said + page + site
