"""The plan of the registered measurement has the settings of its suites, and the estimates are right."""

import re
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

import margins
import msda_bench as mb
import third_reading
from estimates import mean_with_errors, new_task, share_of_gap, sign_flip_p, surviving
from margins import BETTER, BETTER_BY_MORE, EQUIVALENT, UNDECIDED, WORSE, exact_tests, holm, shift
from second_reading import FAMILIES, RESULTS, Mean, mean_over_tasks, read, verdicts
from study import interval_text
from tests.reader import text_of

PLAN = text_of("studies/registered/README.md")
REGISTERED = yaml.safe_load(text_of("suites/registered.yaml"))
TASKS = {Path(name).stem: yaml.safe_load(text_of(f"suites/{name}")) for name in REGISTERED["include"]}


def test_the_plan_has_the_steps_of_each_task_and_every_axis():
    for name, task in TASKS.items():
        (row,) = [line for line in PLAN.splitlines() if line.startswith(f"| `{name}` |")]
        assert re.search(rf"\| {10 * task['training']['steps']:,} \| 0.03 \|$", row)
    axes = [
        (name, *method["search"].values()) for name, method in TASKS["pacs"]["methods"].items() if "search" in method
    ]
    for name, values in axes:
        listed = ", ".join(f"{value:g}" for value in values)
        assert any(f"| {listed} |" in row and re.search(rf"\b{name}\b", row) for row in PLAN.splitlines()), name
    assert "100 to 103" in PLAN and "0 to 29" in PLAN  # noqa: PT018 - both are the seeds


@pytest.fixture
def gains():
    """Gains of a method and of a reference in three tasks at ten seeds."""
    middles = np.array([[2.0, 3.0, -1.0], [10.0, 12.0, 5.0]])
    return np.random.default_rng(0).normal(middles[..., np.newaxis], 1.5, (2, 3, 10))


def test_flipped_signs_agree_with_students_test(gains):
    small = gains[0, :1] - gains[0, 0].mean() + 0.6
    assert sign_flip_p(small) == pytest.approx(stats.ttest_1samp(small[0], 0).pvalue, abs=0.02)


def test_the_interval_of_the_share_of_a_gap_is_fiellers(gains):
    share = share_of_gap(*gains)
    assert share.value == pytest.approx(gains[0].mean() / gains[1].mean())

    def variances(at):
        return (gains[0] - at * gains[1]).var(axis=1, ddof=1) / 10

    freedom = variances(share.value).sum() ** 2 / (variances(share.value) ** 2 / 9).sum()
    for end in share[1:]:
        t = (gains[0] - end * gains[1]).mean(axis=1).sum() / np.sqrt(variances(end).sum())
        assert abs(t) == pytest.approx(stats.t.ppf(0.975, freedom))


def test_a_mean_with_errors_is_students_of_one_task_and_welchs_of_two(gains):
    one, two = gains[0, :1] - 1.0, gains[0, :2] * [[1.0], [-3.0]]
    found = mean_with_errors(one.mean(axis=1), stats.sem(one, axis=1), np.array([9.0]), 0.5)
    assert found[1:3] == pytest.approx(stats.ttest_1samp(one[0], 0).confidence_interval())
    assert found.p == pytest.approx(stats.ttest_1samp(one[0], 0).pvalue)
    assert found.p_beyond == pytest.approx(stats.ttest_1samp(one[0], 0.5).pvalue)
    both = mean_with_errors(two.mean(axis=1), stats.sem(two, axis=1), np.array([9.0, 9.0]), 0.0)
    assert both.p == pytest.approx(stats.ttest_ind(two[0], -two[1], equal_var=False).pvalue)


def test_what_survives_is_the_ratio_of_two_mean_gains(gains):
    half = gains[1] / 2 + np.random.default_rng(1).normal(0, 0.1, (3, 10))
    left = surviving(half, gains[1], "xyz")
    assert left.value == pytest.approx(half.mean() / gains[1].mean())
    assert left.low < 0.5 < left.high < left.low + 0.1
    assert np.isnan(surviving(half, gains[1] - gains[1].mean(), "xyz")).all()  # nothing is gained


def test_the_hierarchical_model_is_that_of_a_brute_force_grid():
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


ALIKE = {
    **{name: name for name in ("SRC", "JOINT", "chance")},
    "AdaBN": "CORAL",
    "pass-through": "MMD",
    "DARN-gamma": "DARN",
    "uniform": "CDAN",
    "ensemble": "MCC",
    "best-single": "BNM",
}


@pytest.fixture(scope="module")
def first():
    return mb.load_results(RESULTS / "registered")


@pytest.fixture(scope="module")
def second(first):
    """Other methods' runs under the names of the second measurement's rows; the controls' change a little by seed."""
    names, plan = first["method"].astype(str), first.results.plan
    rows = pd.concat([first[names == was].assign(method=new) for new, was in ALIKE.items()], ignore_index=True)
    rows["score"] += rows["method"].isin(["AdaBN", "pass-through"]) * rows["seed"] / 100
    tables = []
    for table in plan.experiments:
        methods = {method.name: method for method in table.methods}
        renamed = tuple(replace(methods[was], name=new) for new, was in ALIKE.items())
        tables.append(replace(table, methods=renamed, headroom=None))
    rows.results = replace(first.results, plan=replace(plan, experiments=tuple(tables)))
    return rows


@pytest.mark.slow
def test_the_reading_finds_what_an_outside_statistician_found(first, second):
    """Their means and intervals of the first measurement, by code of their own, under the names of other rows."""
    tables = read(first, second)
    over = tables["over SRC, B"]
    assert over.loc[["ensemble", "best-single", "uniform", "DARN-gamma"], "gain"].tolist() == [
        "+6.0 [+4.7, +7.3]",
        "+5.5 [+4.3, +6.7]",
        "+2.6 [+1.3, +3.9]",
        "+1.2 [+0.0, +2.3]",
    ]
    assert over.loc[["ensemble", "best-single"], "verdict"].unique().tolist() == ["better by more than the margin"]
    assert tables["over best-single, B"].loc["SRC", ["gain", "verdict"]].tolist() == ["-5.5 [-6.7, -4.3]", "worse"]
    assert tables["over AdaBN, B"].loc["CORAL", "verdict"] == "equivalent"
    assert tables["whole, B"].loc["tasks", "value"] == "10"
    assert {name: len(tables[f"{name}, B"]) for name in FAMILIES} == {
        name: len(methods) for name, (methods, _) in FAMILIES.items()
    }


@pytest.mark.slow
def test_a_task_that_is_not_recorded_whole_is_in_no_mean(first, second):
    lacking = second["experiment"].isin(["amazon", "intents"]) & (second["method"] == "uniform") & (second["seed"] == 7)
    partly = second.assign(status=second["status"].astype(str).mask(lacking, "missing"))
    tables = read(first, partly)
    assert tables["whole, B"].loc["tasks", "value"] == "8"
    assert not {"amazon", "intents"} & {*tables["over SRC, B"]}


def test_seeds_that_share_examples_widen_the_interval():
    index = pd.MultiIndex.from_product([["a", "b"], range(5)], names=["experiment", "seed"])
    differences = pd.Series([1.0, 2, 3, 4, 5, 0, 0, 1, 1, 3], index)
    found = mean_over_tasks(differences, pd.Series({"a": 0.5, "b": 2.0}))
    variances = np.array([2.5 * (0.2 + 0.5), 1.5 * (0.2 + 2.0)])
    assert found.value == 2.0
    assert found.error == pytest.approx(np.sqrt(variances.sum()) / 2)
    assert found.freedom == pytest.approx(variances.sum() ** 2 / (variances**2 / 4).sum())


def test_holms_verdicts_are_those_of_their_definitions():
    far, near, none = (Mean(value, 0.2, 100.0) for value in (3.0, 0.3, -0.1))
    p, found = verdicts({"far": far, "near": near, "none": none, "wide": Mean(0.5, 2.0, 100.0)}, 1.0)
    assert list(found.values()) == ["better by more than the margin", "equivalent", "equivalent", "undecided"]
    assert p["near"] == pytest.approx(3 * near.p_values(1.0)[0])
    _, alone = verdicts({"better": Mean(1.2, 0.4, 50.0), "worse": Mean(-2.0, 0.3, 50.0)}, 1.0)
    assert list(alone.values()) == ["better", "worse"]


THIRD = text_of("studies/registered-3/README.md")


def test_the_third_plan_has_its_suites_rows_and_counts():
    listed = yaml.safe_load(text_of("suites/registered-3.yaml"))["include"]
    order = re.findall(r"^\| `([\w-]+)` \| (\d) \| [\d,]+ \| [\d.]+ \|$", THIRD, re.MULTILINE)
    assert [name for name, _ in order] == [Path(name).stem for name in listed]
    first = {name: task["methods"] for name, task in TASKS.items()}
    for (name, targets), path in zip(order, listed, strict=True):
        task = yaml.safe_load(text_of(f"suites/{path}"))
        methods = task["methods"]
        assert {"SRC", "JOINT", "chance", *third_reading.ADAPTING, *third_reading.STANDARDISED} <= set(methods)
        assert set(methods) <= {*third_reading.DEEP, *third_reading.PLAIN, "logistic", "boosting", "JOINT", "chance"}
        assert int(targets) == (4 if task["targets"] == "all" else len(task["targets"]))
        for row in ("SRC", "MCC", "BNM", "MMD", "DARN", "JOINT"):
            assert methods[row] == first.get(name, methods)[row]
            assert methods.get(f"{row}-domain", methods[row] | {"standardise": "domain"}) == methods[row] | {
                "standardise": "domain"
            }


@pytest.fixture
def scores():
    """Scores of all rows in three tasks at twenty seeds; gains halve where domains are standardised; one has no row."""
    tasks = pd.MultiIndex.from_product([["a", "b", "c"], range(20)], names=["experiment", "seed"])
    rng = np.random.default_rng(0)
    level = {"SRC": 60.0, "SRC-domain": 70.0, "MCC": 80.0, "MCC-domain": 80.0, "logistic-OT": 75.0}
    rows = [*third_reading.DEEP, *third_reading.PLAIN, "logistic", "boosting"]
    frame = pd.DataFrame({name: level.get(name, 60.0) + rng.normal(0, 1, 60) for name in rows}, tasks)
    frame.loc["c", [name for name in frame if name.startswith("boosting")]] = np.nan
    return frame


def test_the_third_reading_finds_what_was_put_into_scores(scores):
    overlaps = pd.Series(0.5, ["a", "b", "c"])
    left = third_reading.what_is_left(scores, overlaps)
    assert left.loc["MCC", "gain"].startswith(("+19.", "+20."))
    assert left.loc["MCC", "gain, standardised"].startswith(("+9.", "+10."))
    assert left.loc["MCC", "difference"].startswith(("-9.", "-10."))
    pairs = {"logistic-OT": "logistic", "boosting-OT": "boosting", "logistic-SA": "logistic"}
    found = third_reading.family(scores, pairs, overlaps)
    assert found["tasks"].tolist() == ["3", "2", "3"]
    assert found["verdict"].tolist() == ["better", "undecided", "undecided"]
    nadeau = mean_over_tasks(scores["logistic-OT"] - scores["logistic"], overlaps)
    assert found.loc["logistic-OT", "gain"] == interval_text(nadeau.ends)
    by_task = third_reading.in_each_task(scores, overlaps)
    assert by_task["shallow"].str.startswith("logistic-OT +1").all()
    above = by_task["above their plain row"].str.split(", ").map(set)
    assert all({"MCC", "MCC-domain", "SRC-domain", "logistic-OT"} <= names for names in above)


def test_the_best_shallow_row_is_the_tuning_seeds_at_the_settings_that_sources_select():
    rows = []
    for method, worth in (("logistic", (60, 90)), ("logistic-OT", (70, 50)), ("boosting", (99, 99))):
        for experiment, seed, candidate in [(e, s, c) for e in "ab" for s in range(100, 104) for c in (0, 1)]:
            if not (method == "boosting" and experiment == "b"):  # it is not in every task
                by_sources = 90 - 10 * candidate
                rows.append((experiment, method, "t", seed, candidate, by_sources, worth[candidate]))
    columns = ["experiment", "method", "target", "seed", "candidate", "validator:source_accuracy", "score"]
    assert third_reading.best_shallow(pd.DataFrame(rows, columns=columns), ["a", "b"]) == "logistic-OT"


BEST = {
    "fonts": "MCC-domain",
    "hospitals": "logistic",
    "music": "boosting-domain",
    "opinions": "logistic",
    "reactor": "boosting",
    "solubility": "boosting",
    "spoken-digits": "MCC",
    "watch": "logistic-domain",
}
"""The row with the highest mean in each recorded task, as the page says it."""


def rows_with(table, column, value):
    return table.index[table[column] == value].tolist()


def test_the_numbers_of_the_recorded_tasks_are_those_of_the_records():
    results = mb.load_results(RESULTS / "registered-3")
    found = third_reading.read(results)
    means, seconds = found["each task"], found["seconds"]
    assert found["tasks"]["value"].tolist() == [
        ", ".join(BEST),
        "fonts, music, solubility, spoken-digits",
        "music, solubility, spoken-digits",
    ]
    assert means.drop("JOINT").astype(float).idxmax().to_dict() == BEST
    section = THIRD.partition("## What is recorded")[2].partition("## Deviations")[0]
    known = {text for table in found.values() for text in table.astype(str).to_numpy().ravel()}
    chosen = third_reading.select(results, third_reading.BY)
    over_src, overlaps = third_reading.gains_of(chosen)["JOINT"], third_reading.overlaps_of(chosen)
    for task in BEST:
        paragraph = section.partition(f"* `{task}`, on ")[2].partition("\n* ")[0]
        headroom = interval_text(mean_over_tasks(over_src.loc[[task]], overlaps.loc[[task]]).ends)
        assert headroom in paragraph
        known.add(headroom)
        scores = re.findall(r"(\d+\.\d)(?=(?: (?:to|and) \d+\.\d)? %)", paragraph)
        assert {means.loc[BEST[task], task], *scores} <= {*means[task]} & {*scores}, task
        assert {*re.findall(r"(\d+\.\d+) s\b", paragraph)} <= {*seconds[task]}, task
    intervals = re.findall(r"[-+]\d+\.\d \[[^\]]+\]", section)
    assert {*intervals} <= known
    assert len(intervals) > 15

    assert rows_with(found["Q2"], "verdict", "better") == ["MCC-domain", "BNM-domain", "MMD-domain", "AdaBN-domain"]
    assert rows_with(found["Q3"], "verdict", "better") == [*third_reading.LOGISTIC, "boosting-domain", "boosting-OT"]
    assert found["best shallow row"]["value"].item() == "logistic-domain"
    standardised = [*third_reading.STANDARDISED[:3], "AdaBN-domain"]
    assert rows_with(found["Q4"], "verdict", "better") == ["MCC", "BNM", "MMD", *standardised]
    assert rows_with(found["Q4"], "verdict", "worse") == ["SRC", "DARN"]
    without_gain = ["hospitals", "opinions", "reactor", "solubility", "watch"]
    assert rows_with(found["Q5"], "above their plain row", "none") == without_gain
    assert found["Q5"].loc["fonts", "above their plain row"] == "MCC-domain"
    times = found["over logistic"]["times"].astype(float)
    assert round(times["SRC"] / times["logistic-domain"]) == 9  # a ninth of SRC's time
    on_reactor = means["reactor"].astype(float)
    assert f"{on_reactor['boosting'] - on_reactor['boosting-OT']:.1f} points" in section
    own = text_of("docs/own-data.md").partition("Elsewhere it depends on the data")[2]
    assert {*found["by task"].loc["logistic-domain less logistic", ["music", "solubility"]]} <= {
        *re.findall(r"[-+]\d+\.\d \[[^\]]+\]", own)
    }
    assert all(f"{seconds.loc[row, 'music']} s" in own for row in ("logistic-domain", "MMD"))


def around(middle, width, n):
    """Gains of this mean and standard deviation, which tie in part."""
    noise = np.random.default_rng(n).normal(0, 1, n)
    return np.round(middle + width * (noise - noise.mean()) / noise.std(), 2)


@pytest.mark.parametrize("middle", [-1.9, -0.6, 0.1, 0.8, 1.3])
def test_exact_tests_against_the_margin_are_those_of_shifted_gains(middle):
    values = np.random.default_rng(0).normal(middle, 1, 14)

    def above(values):
        return stats.wilcoxon(values, alternative="greater", method="exact").pvalue

    beyond = min(1, 2 * min(above(values - 1), above(-values - 1)))
    expected = 2 * min(above(values), above(-values)), beyond, max(above(values + 1), above(1 - values))
    assert exact_tests(values, 1.0) == pytest.approx(expected)
    size = shift(values)
    walsh = [(a + b) / 2 for a, b in combinations_with_replacement(values, 2)]
    assert size.value == pytest.approx(np.median(walsh))
    assert (beyond <= 0.05) == (size.low > 1 or size.high < -1)


FIVE = {
    "large": (around(2, 0.5, 20), BETTER_BY_MORE),
    "small": (around(0.3, 0.2, 20), EQUIVALENT),  # also shown to differ from 0, by less than the margin
    "some": (around(1.0, 0.5, 20), BETTER),
    "loss": (around(-1.2, 0.5, 20), WORSE),
    "noise": (around(0.5, 4, 20), UNDECIDED),
}


def test_a_method_is_one_of_five_things_after_the_correction_of_its_family():
    tests = {name: exact_tests(gains, 1.0) for name, (gains, _) in FIVE.items()}
    means = {name: gains.mean() for name, (gains, _) in FIVE.items()}
    found = margins.verdicts(means, tests)
    assert found["standing"].to_dict() == {name: verdict for name, (_, verdict) in FIVE.items()}
    assert found["p_corrected"].tolist() == pytest.approx(holm([of.differs for of in tests.values()]))
    exploring = margins.verdicts(means, tests, margins.benjamini_hochberg)
    assert (exploring["p_corrected"] <= found["p_corrected"]).all()
