"""The suites of the registered measurement are one protocol, that of its plan, and its estimates are right."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from estimates import mean_with_errors, new_task, share_of_gap, sign_flip_p, surviving
from msda_bench.cli.main import main
from reading import PRIMARY

ROOT = Path(__file__).parents[1]
PLAN = (ROOT / "studies" / "registered" / "README.md").read_text(encoding="utf-8")
REGISTERED = yaml.safe_load((ROOT / "suites" / "registered.yaml").read_text(encoding="utf-8"))
TASKS = {
    Path(name).stem: yaml.safe_load((ROOT / "suites" / name).read_text(encoding="utf-8"))
    for name in REGISTERED["include"]
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_of_the_protocol(name: str) -> None:
    task, first = TASKS[name], TASKS["pacs"]
    gamma = 0.9 if name in {"amazon", "opinions"} else 0.1
    assert task["methods"]["DARN"].pop("aggregator") == {"sharpmax": {"gamma": gamma}}
    methods = {key: value for key, value in task["methods"].items() if key not in {"boosting", "DARN"}}
    assert methods == {key: value for key, value in first["methods"].items() if key != "DARN"}
    ((network, params),) = task["backbone"].items()
    space = {"training.optimizer.sgd.lr": [0.01, 0.03, 0.1]}
    if network != "convnet":
        space |= {f"backbone.{network}.dropout": [0.2, 0.5]}
    assert (params["norm"], params["weight_norm"]) == ("batch", True)
    assert task["select"] == {**first["select"], "space": space}
    margin = 1.5 if name == "digits" else 1.0
    assert task["compare"] == {"against": "SRC", "margin": margin, "primary": [*PRIMARY], "headroom": "JOINT"}
    of_task = {"steps": task["training"].pop("steps")}
    assert {**task["training"], "steps": 60} == {**first["training"], "steps": 60}
    assert (task["seeds"], task["validators"]) == (20, first["validators"])
    row = next(line for line in PLAN.splitlines() if line.startswith(f"| `{name}` |"))
    assert re.search(rf"\| {10 * of_task['steps']:,} \| 0.03 \|$", row)


@pytest.mark.parametrize("name", ["fonts", "watch"])
def test_the_sensitivity_runs_have_four_times_the_steps_and_all_else_alike(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task = yaml.safe_load((ROOT / "suites" / "leaderboard" / f"{name}.yaml").read_text(encoding="utf-8"))
    task["description"] += " With four times the steps."
    task["training"]["steps"] *= 4
    task["seeds"] = 5
    task["select"] |= {"seeds": [100], "tracks": ["first", "source_accuracy"]}
    del task["compare"]["headroom"]  # of the oracle's track; each task is read alone here
    assert yaml.safe_load((ROOT / "suites" / "sensitivity" / f"{name}.yaml").read_text(encoding="utf-8")) == task
    candidates = []
    for suite in ("leaderboard", "sensitivity"):
        assert main(["validate", f"{suite}/{name}"]) == 0
        candidates.append(re.findall(r"^ +\d: .*$", capsys.readouterr().out, re.MULTILINE))
    assert candidates[0] == candidates[1]
    assert len(candidates[0]) > 80


def test_the_plan_has_every_axis() -> None:
    axes = [
        (name, *method["search"].values()) for name, method in TASKS["pacs"]["methods"].items() if "search" in method
    ]
    for name, values in axes:
        listed = ", ".join(f"{value:g}" for value in values)
        assert any(f"| {listed} |" in row and re.search(rf"\b{name}\b", row) for row in PLAN.splitlines()), name
    assert "100 to 103" in PLAN and "0 to 29" in PLAN  # noqa: PT018 - both are the seeds


@pytest.fixture
def gains() -> np.ndarray:
    """Gains of a method and of a reference in three tasks at ten seeds."""
    middles = np.array([[2.0, 3.0, -1.0], [10.0, 12.0, 5.0]])
    return np.random.default_rng(0).normal(middles[..., np.newaxis], 1.5, (2, 3, 10))


def test_flipped_signs_agree_with_students_test(gains: np.ndarray) -> None:
    small = gains[0, :1] - gains[0, 0].mean() + 0.6
    assert sign_flip_p(small) == pytest.approx(stats.ttest_1samp(small[0], 0).pvalue, abs=0.02)


def test_the_interval_of_the_share_of_a_gap_is_fiellers(gains: np.ndarray) -> None:
    share = share_of_gap(*gains)
    assert share.value == pytest.approx(gains[0].mean() / gains[1].mean())

    def variances(at: float) -> np.ndarray:
        return (gains[0] - at * gains[1]).var(axis=1, ddof=1) / 10

    freedom = variances(share.value).sum() ** 2 / (variances(share.value) ** 2 / 9).sum()
    for end in share[1:]:
        t = (gains[0] - end * gains[1]).mean(axis=1).sum() / np.sqrt(variances(end).sum())
        assert abs(t) == pytest.approx(stats.t.ppf(0.975, freedom))


def test_a_mean_with_errors_is_students_of_one_task_and_welchs_of_two(gains: np.ndarray) -> None:
    one, two = gains[0, :1] - 1.0, gains[0, :2] * [[1.0], [-3.0]]
    found = mean_with_errors(one.mean(axis=1), stats.sem(one, axis=1), np.array([9.0]), 0.5)
    assert found[1:3] == pytest.approx(stats.ttest_1samp(one[0], 0).confidence_interval())
    assert found.p == pytest.approx(stats.ttest_1samp(one[0], 0).pvalue)
    assert found.p_beyond == pytest.approx(stats.ttest_1samp(one[0], 0.5).pvalue)
    both = mean_with_errors(two.mean(axis=1), stats.sem(two, axis=1), np.array([9.0, 9.0]), 0.0)
    assert both.p == pytest.approx(stats.ttest_ind(two[0], -two[1], equal_var=False).pvalue)


def test_what_survives_is_the_ratio_of_two_mean_gains(gains: np.ndarray) -> None:
    half = gains[1] / 2 + np.random.default_rng(1).normal(0, 0.1, (3, 10))
    left = surviving(half, gains[1], "xyz")
    assert left.value == pytest.approx(half.mean() / gains[1].mean())
    assert left.low < 0.5 < left.high < left.low + 0.1
    assert np.isnan(surviving(half, gains[1] - gains[1].mean(), "xyz")).all()  # nothing is gained


def test_the_hierarchical_model_is_that_of_a_brute_force_grid() -> None:
    gains, errors = np.array([1.5, -0.2, 0.8, 3.0]), np.array([0.4, 0.3, 0.5, 0.6])
    found = new_task(gains, errors, 1.0)
    expected, tau = np.meshgrid(np.linspace(-30, 30, 1501), np.exp(np.linspace(-6, 5, 301)), indexing="ij")
    spread = np.sqrt(errors**2 + tau[..., np.newaxis] ** 2)
    logs = stats.norm.logpdf(gains, expected[..., np.newaxis], spread).sum(axis=-1)
    weight = np.exp(logs - logs.max()) * stats.halfcauchy.pdf(tau, scale=5) * tau  # equal steps of log tau
    weight /= weight.sum()
    of_expected = weight.sum(axis=1).cumsum()
    ends = [expected[np.searchsorted(of_expected, level), 0] for level in (0.025, 0.975)]
    assert found[:3] == pytest.approx([(weight * expected).sum(), *ends], abs=0.05)
    assert found.spread == pytest.approx(tau[0, np.searchsorted(weight.sum(axis=0).cumsum(), 0.5)], rel=0.02)
    assert found.beyond == pytest.approx((weight * stats.norm.sf(1, expected, tau)).sum(), abs=0.003)
    within = stats.norm.cdf(1, expected, tau) - stats.norm.cdf(-1, expected, tau)
    assert found.within == pytest.approx((weight * within).sum(), abs=0.003)
