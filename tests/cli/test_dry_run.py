"""`msda-bench run SUITE --dry-run`: what is missing, its hours, and how small a gain the suite would find."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import msda_bench as mb
from tests.results.conftest import planned, points, with_cells, write_folder

SUITE = """
schema: 1
name: stress
dataset: {stress: {train: 40}}
targets: [target]
seeds: 20
backbone: linear
training: {epochs: 2, batch: 5, steps: 3, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  a: {discrepancy: spectral_l2, mu: 0.01}
  b: {discrepancy: spectral_l2, mu: 0.02}
  c: {discrepancy: spectral_l2, mu: 0.03}
compare: {baseline: SRC, pairs: baseline}
"""


@pytest.fixture
def dry_run(tmp_path, monkeypatch, said):
    """`dry_run(gains, suite)`: the lines on a suite whose folder has earlier runs on the dataset `stress`.

    The gains over SRC at each seed are (methods, seeds); each run took 36 seconds.
    """
    monkeypatch.chdir(tmp_path)

    def run(gains, text=SUITE, steps=6):
        Path("mine.yaml").write_text(text)
        noise = np.random.default_rng(0).normal(0, 5, len(gains[0]))
        runs = {"SRC": {"target": [points(score) for score in noise]}}
        for method, gain in zip("abc", gains, strict=False):
            runs[method] = {"target": [points(score) for score in noise + gain]}
        domain = re.search(r"targets: \[(.*)\]", text)[1]  # of the same project, since a domain has the same name
        made = planned(runs, "earlier", "stress", baseline="SRC")
        experiment, cells, records = with_cells(made, lambda _: {"dataset": {"name": "stress"}, "target": domain})
        timed = {key: replace(one, timing={"train": 36.0, "steps": steps}) for key, one in records.items()}
        shutil.rmtree("results", ignore_errors=True)
        write_folder(tmp_path / "results" / re.search("name: (.*)", text)[1], (experiment, cells, timed))
        code, out, err = said("run mine.yaml --dry-run")
        assert (code, [line for line in err if "data have changed" not in line]) == (0, [])
        return out[out.index(next(line for line in out if "nothing was changed" in line)) :]

    return run


def drawn(*shape):
    return np.random.default_rng(1).normal(0, 2, shape)


def test_the_gain_that_is_said_is_found_with_the_probability_that_is_said(dry_run):
    gains = drawn(3, 8)
    found = re.fullmatch(
        r"stress: 20 seeds find a true gain of (.*) points over SRC with probability 80%", dry_run(gains)[2]
    )
    gain, deviation, draws = float(found[1]), np.median(gains.std(axis=1, ddof=1)), np.random.default_rng(7)
    tests = [mb.signed_rank(some, "two-sided").p for some in draws.normal(gain, deviation, (1000, 20)).tolist()]
    assert np.mean([p <= 0.05 / 3 for p in tests]) == pytest.approx(0.8, abs=0.07)


def test_hours_are_in_proportion_to_steps(dry_run):
    """80 runs of 36 seconds; of half of them if the stored ones had twice the steps; some methods may be unknown."""
    for methods, steps, hours in ((3, 6, 0.8), (3, 12, 0.4), (1, 6, 0.8)):
        said = dry_run(drawn(methods, 4), steps=steps)
        assert said[0].endswith("80 to train; nothing was changed")
        assert said[1] == f"80 runs take some {hours} hours of a core or GPU, as the stored ones took"


def test_what_the_stored_runs_do_not_tell_is_not_said(dry_run):
    fonts = SUITE.replace("stress", "fonts").replace("[target]", "[sans]")
    unknown = "80 runs take an unknown time: no run on their data is stored; --limit 20 trains some"
    assert dry_run(drawn(3, 4), fonts)[1:] == [unknown]
    without = SUITE.replace("compare: {baseline: SRC, pairs: baseline}", "")
    without = without.replace("{scheme: pooled}", "{discrepancy: spectral_l2, mu: 1}")
    for said in (dry_run(drawn(3, 1)), dry_run(drawn(3, 4), without)):
        assert [line[:7] for line in said[1:]] == ["80 runs"]
