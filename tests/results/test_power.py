"""`msda-bench plan`: the seeds that it promises find the gain."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.store.record import Outcome
from tests.results.conftest import planned, write_folder

N_TEST = 10**6
METHODS = ("SRC", "a", "b", "c")
SUITE = """
schema: 1
name: NAME
dataset: {DATASET: {train: 40}}
targets: [TARGET]
seeds: 20
backbone: linear
training: {epochs: 2, batch: 5, steps: 3, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  a: {discrepancy: spectral_l2, mu: 0.01}
  b: {discrepancy: spectral_l2, mu: 0.02}
  c: {discrepancy: spectral_l2, mu: 0.03}
compare: {baseline: SRC, against: SRC}
"""
PLACES = {"stress": "target", "fonts": "sans"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with the suite `both`, of the suites `stress` and `fonts`."""
    monkeypatch.chdir(tmp_path)
    for name, target in PLACES.items():
        text = SUITE.replace("NAME", name).replace("DATASET", name).replace("TARGET", target)
        Path(f"{name}.yaml").write_text(text)
    Path("both.yaml").write_text("schema: 1\nname: both\ninclude: [stress.yaml, fonts.yaml]\n")
    return tmp_path


def pilot(folder, points, *, steps=6, **options):
    """A result folder in which the methods' gains at each seed are `points[dataset]`, (methods, seeds)."""
    parts = []
    for name, gains in points.items():
        noise = np.random.default_rng(0).normal(50, 5, len(gains[0]))
        scores = dict(zip(METHODS, [noise, *(noise + gain for gain in gains)], strict=False))
        runs = {
            method: {PLACES[name]: [Outcome(N_TEST, n_correct=round(score * N_TEST / 100)) for score in values]}
            for method, values in scores.items()
        }
        experiment, cells, records = planned(runs, f"my-{name}", name, baseline="SRC", **options)
        timed = {key: replace(one, timing={"train": 36.0, "steps": steps}) for key, one in records.items()}
        parts.append((experiment, cells, timed))
    return write_folder(folder, *parts)


def plan(capsys, *words, code=0):
    """The rows by experiment, and what is said beside them."""
    assert main(["plan", *map(str, words)]) == code
    said = " ".join(capsys.readouterr().out.split())
    assert main(["plan", *map(str, words), "--format", "csv"]) == code
    frame = pd.read_csv(io.StringIO(capsys.readouterr().out)).convert_dtypes().astype(object)
    return {row["experiment"]: row for row in frame.where(frame.notna(), None).to_dict("records")}, said


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(0, 1, shape)


@pytest.mark.parametrize(("detect", "power"), [(1.0, 0.8), (2.5, 0.8), (1.5, 0.9)])
def test_the_promised_seeds_find_the_gain_with_the_promised_probability(here, capsys, detect, power):
    folder = pilot(here / "pilot", {"stress": 2 * drawn(1, 3, 8)})
    rows, _ = plan(capsys, "stress.yaml", "--pilot", folder, "--detect", detect, "--power", power)
    row = rows["stress"]
    draws = np.random.default_rng(7)

    def found(seeds, size):
        shown = (
            mb.signed_rank(differences, "two-sided").p <= 0.05 / 3
            for differences in draws.normal(size, row["standard_deviation"], (2000, seeds)).tolist()
        )
        return sum(shown) / 2000

    assert found(row["needed"], detect) > power - 0.03
    assert found(row["needed"] - 1, detect) < power + 0.03
    assert found(20, row["finds"]) == pytest.approx(power, abs=0.03)


def test_a_standard_deviation_of_four_seeds_is_at_most_so_large(here, capsys):
    gains = 2 * drawn(4, 3, 4)
    rows, _ = plan(capsys, "stress.yaml", "--pilot", pilot(here / "one", {"stress": gains}))
    limit = np.sqrt(3 / stats.chi2.ppf(0.2, 3))
    larger, _ = plan(capsys, "stress.yaml", "--pilot", pilot(here / "two", {"stress": limit * gains}))
    assert larger["stress"]["needed"] == pytest.approx(rows["stress"]["at_most"], rel=0.01)


def test_hours_are_in_proportion_to_steps_and_cells_and_only_of_what_is_missing(here, capsys):
    """80 cells of 36 seconds; of half of them if the pilot's had twice the steps, and some methods may be unknown."""
    for methods, steps, hours in ((3, 6, 0.8), (3, 12, 0.4), (1, 6, 0.8)):
        folder = pilot(here / f"{methods} {steps}", {"stress": drawn(1, methods, 4)}, steps=steps)
        row = plan(capsys, "stress.yaml", "--pilot", folder)[0]["stress"]
        assert (row["to_train"], row["hours"]) == (80, pytest.approx(hours))
        assert row["hours_needed"] == pytest.approx(hours * row["needed"] / 20, rel=1e-5)


def test_tuning_seeds_cost_once_and_their_candidates_not_at_other_seeds(here, capsys):
    """4 methods: 2 candidates at 5 tuning seeds, at most one choice of each at 20 seeds; 36 seconds each."""
    space = "{training.optimizer.adam.lr: [0.01, 0.1]}"
    select = f"{{how: grid, budget: 2, seeds: [100, 101, 102, 103, 104], by: source_risk, space: {space}}}"
    Path("tuned.yaml").write_text(f"{Path('stress.yaml').read_text()}select: {select}\nvalidators: [source_risk]\n")
    row = plan(capsys, "tuned.yaml", "--pilot", pilot(here / "pilot", {"stress": drawn(1, 3, 4)}))[0]["stress"]
    assert (row["to_train"], row["hours"]) == (120, pytest.approx(1.2))
    assert row["hours_needed"] == pytest.approx(0.4 + 0.04 * row["needed"], rel=1e-5)


def test_what_the_pilot_does_not_tell_is_said(here, capsys):
    folder = pilot(here / "pilot", {"stress": drawn(1, 3, 4)})
    rows, said = plan(capsys, "both.yaml", "--pilot", folder, code=1)
    assert rows["stress"]["needed"] > 1
    assert rows["fonts"]["needed"] is rows["fonts"]["hours"] is None
    assert "fonts: no timed run on fonts" in said
    assert "160 runs will train, 0.8 core-hours." in said
    single = pilot(here / "single", {"stress": drawn(1, 3, 1)})
    rows, said = plan(capsys, "stress.yaml", "--pilot", single, code=1)
    assert rows["stress"]["hours"] == pytest.approx(0.8)
    assert "no method has two seeds in common with SRC" in said
    text = Path("stress.yaml").read_text().replace("{scheme: pooled}", "{discrepancy: spectral_l2, mu: 1}")
    Path("plain.yaml").write_text(text.replace("compare: {baseline: SRC, against: SRC}", ""))
    rows, said = plan(capsys, "plain.yaml", "--pilot", folder)
    assert rows["stress"]["needed"] is None
    assert "no baseline, or a metric without points" in said


def test_equal_results_need_the_fewest_seeds_and_a_tiny_gain_more_than_anyone_has(here, capsys):
    rows, _ = plan(capsys, "stress.yaml", "--pilot", pilot(here / "equal", {"stress": np.zeros((3, 4))}))
    assert rows["stress"]["needed"] == rows["stress"]["at_most"] == 7  # 2 * 0.5**7 is below 0.05 / 3
    folder = pilot(here / "noisy", {"stress": drawn(1, 3, 4)})
    assert plan(capsys, "stress.yaml", "--pilot", folder, "--detect", "0.001")[0]["stress"]["needed"] is None


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--detect 0", "--detect: must be a number of points above 0, not '0'"),
        ("--detect nan", "--detect: must be a number of points above 0, not 'nan'"),
        ("--power 1", "--power: must be a probability from 0.5 to 0.99, not '1'"),
        ("--pilot nowhere", "nowhere: "),
        ("--pilot pilot", "pilot: has no finished run on a data set of suite fonts; train some by `msda-bench run"),
        ("", "results/fonts: "),
    ],
)
def test_what_cannot_be_planned_is_a_line(here, capsys, words, line):
    pilot(here / "pilot", {"stress": drawn(1, 3, 2)})
    assert main(["plan", "fonts.yaml", *words.split()]) == 2
    assert line in capsys.readouterr().err.splitlines()[-1]
