"""Terminal, CSV files, page and site have one interval of a method for the same runs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.cli.main import main
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


def test_terminal_files_page_and_site_say_one_interval(folder, tmp_path, capsys):
    main(["leaderboard", str(folder)])
    main(["compare", str(folder), "--across"])
    said = " ".join(capsys.readouterr().out.split())
    for name in ("leaderboard", "report"):
        assert main([name, str(folder)]) == 0
    assert main(["site", str(folder), "--out", str(tmp_path / "site")]) == 0
    pages = [
        Page((place / name).read_text(encoding="utf-8")).said
        for place, name in ((folder, "report.html"), (tmp_path / "site", "index.html"))
    ]
    board, pairs = (pd.read_csv(folder / name) for name in ("leaderboard.csv", "comparisons.csv"))
    across = mb.across(folder).set_index("method")
    for method in GAINS:
        for place, (gain, low, high) in enumerate(intervals(method)):
            name = f"e{place}"
            if place < 2:
                (row,) = board[(board["experiment"] == name) & (board["method"] == method)].query("target == 'x'").index
                assert board.loc[row, ["gain", "gain_low", "gain_high"]].tolist() == pytest.approx(
                    [gain, low, high], rel=1e-4
                )
                both = pairs[(pairs["experiment"] == name) & (pairs["second"] == method) & (pairs["first"] == "SRC")]
                sizes = both.query("scope == 'target'")[["mean_difference", "difference_high", "difference_low"]]
                assert (-sizes.iloc[0]).tolist() == pytest.approx([gain, low, high], rel=1e-4)
            else:
                sizes = across.loc[method, ["mean_gain", "mean_gain_low", "mean_gain_high"]]
                assert sizes.tolist() == pytest.approx([gain, low, high])
                assert all(f"{low:.2f} .. {high:.2f}" in text for text in [said, *pages])
            sentence = f"{method} {gain:+.2f} [{low:+.2f}, {high:+.2f}]"
            assert all(sentence in text for text in ([said] if place == 2 else []) + pages[: 1 if place < 2 else 2])
    assert "uncorrected" not in said + " ".join(pages)
    assert "Student" not in said + " ".join(pages)
