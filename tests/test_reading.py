"""The measurement is read as it was registered: on recorded tasks, with the names of their methods exchanged."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import msda_bench as mb
from tests.reading import PRIMARY, TRACKS, B, C, Reading, Selection, over_targets, tracks_of
from tests.results.conftest import holm, pooled

RECORDED = Path(__file__).parents[1] / "results" / "registered"
TASKS = ("music", "fonts", "reactor", "watch")
"""The last has no headroom."""
pytestmark = pytest.mark.slow


def exchanged(chosen: pd.DataFrame) -> pd.DataFrame:
    """The runs of the tasks with each primary method called by the name of another, in each task of a different one."""
    mine = chosen[chosen["experiment"].isin(TASKS)]
    names = {
        (task, name): PRIMARY[(place + shift) % len(PRIMARY)]
        for shift, task in enumerate(TASKS, start=1)
        for place, name in enumerate(PRIMARY)
    }
    places = zip(mine["experiment"], mine["method"], strict=True)
    methods = [names.get(place, place[1]) for place in places]
    return mine.assign(experiment=mine["experiment"].astype(object), method=methods)


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return mb.load_results(RECORDED)


@pytest.fixture(scope="module")
def reading(runs: pd.DataFrame) -> Reading:
    return Reading({track: exchanged(chosen) for track, chosen in tracks_of(runs).items()})


def gains(reading: Reading, track: str) -> pd.DataFrame:
    """Gains over SRC by (experiment, seed) and method, of the tasks that count."""
    scores = over_targets(reading.chosen[track])
    return scores.sub(scores["SRC"], axis=0).loc[[*TASKS[:3]], [*PRIMARY, "JOINT"]]


def cells(table: list[str]) -> dict[str, list[str]]:
    return {first: rest for first, *rest in ([cell.strip() for cell in line.split("|")[1:-1]] for line in table[2:])}


def test_a_task_without_headroom_leaves_the_questions_over_tasks(reading: Reading) -> None:
    intervals = reading.headroom
    assert [name for name, (_, low, high) in intervals.items() if low <= 0 <= high] == ["watch"]
    assert set(reading.counted) == {*intervals} - {"watch"} == {*TASKS[:3]}
    assert len({line.split("|")[1] for line in reading.targets()[2:]}) == len(TASKS)


def test_the_decision_table_has_the_registered_estimates(reading: Reading) -> None:
    of_tracks = {track: gains(reading, track).groupby("experiment") for track in TRACKS}
    shown = cells(reading.decision_table())
    p_values = {}
    for method in PRIMARY:
        means = {track: of[method].mean().mean() for track, of in of_tracks.items()}
        _, low, high, p_values[method] = pooled(gains(reading, B)[method])
        standing, gain, _, left, closed, *others = shown[method]
        assert gain == f"{means[B]:+.1f} [{low:+.1f}, {high:+.1f}]"
        assert [other.split()[0] for other in others] == [f"{means[track]:+.1f}" for track in TRACKS if track != B]
        assert closed.startswith(f"{100 * means[B] / of_tracks[B]['JOINT'].mean().mean():.0f} %")
        assert not left or left.startswith(f"{100 * means[B] / means[C]:.0f} %")
        if means[B] - 2 * (means[B] - low) > 1:
            assert standing == "better by more than the margin"
    corrected = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    for method, p in corrected.items():
        assert shown[method][2] == (f"{p:.3f}" if p >= 0.001 else "< 0.001")
    assert sum(bool(row[3]) for row in shown.values()) > 1
    ordered = [float(row[1].split()[0]) for row in shown.values()]
    assert ordered == sorted(ordered, reverse=True)


def test_sentences_say_what_the_tables_do(reading: Reading) -> None:
    shown, opening = cells(reading.decision_table()), reading.opening()
    groups = dict(
        re.findall(r"(better by more than the margin|better|equivalent|worse|undecided)[^:;]*: ([^;]*)", opening)
    )
    for method, (standing, gain, _, left, _, first, infomax, oracle) in shown.items():
        assert re.search(rf"\b{method}\b", groups[standing])
        where, what = reading.what_survives().split("No share can be given for")
        assert f"{method} {left}" in where if left else method in what.split(":")[0]
        (own,) = re.findall(rf"{re.escape(gain)}: {standing}\..*", reading.of_method(method))
        assert re.findall(r"[-+][\d.]+ \[.*?\]", own) == [gain, first, infomax, oracle]
    assert sum(int(of.split()[0]) for of in re.findall(r"(\d+ (?:is|are)) ", opening)) == len(PRIMARY)
    assert "over the 3 of 4 tasks with headroom, 20 seeds each" in opening
    assert f"{np.median([float(row[0]) for row in cells(reading.checks_table()).values()]):.1f}" in opening
    assert reading.without_headroom().startswith("watch (-0.4 [")
    assert reading.on_a_new_task().endswith("show a gain of no method.")  # three tasks cannot
    best = next(iter(shown))
    assert (
        f"On a new one {best} is expected to gain {cells(reading.checks_table())[best][3]}," in reading.on_a_new_task()
    )


def test_the_checks_are_of_the_same_gains(reading: Reading) -> None:
    mine, flips = gains(reading, B), np.random.default_rng(0).choice([-1.0, 1.0], size=(4_000, 3, 20))
    shown = cells(reading.checks_table())
    assert list(shown) == list(cells(reading.decision_table()))
    for method, (detectable, by_flips, by_ranks, expected, spread, beyond, within) in shown.items():
        of_tasks = np.stack([mine[method].loc[task] for task in TASKS[:3]])
        scale = np.sqrt((of_tasks.var(axis=1, ddof=1) / 20).sum()) / 3
        # Level 0.05 / 8 and power 0.8 of a normal test; Student's is wider by a little.
        least = scale * (stats.norm.ppf(1 - 0.05 / 16) + stats.norm.ppf(0.8))
        assert least < float(detectable) + 0.005 < 1.5 * least + 0.01
        flipped = (abs((flips * of_tasks).mean(axis=(1, 2))) >= abs(of_tasks.mean()) - 1e-12).mean()
        assert float(by_flips.removeprefix("< ")) == pytest.approx(flipped, abs=0.03)
        assert by_ranks == "1.000"  # three tasks cannot reach less after the correction
        middle, low, high = map(float, re.findall(r"[-+][\d.]+", expected))
        assert low < middle < high
        assert float(spread) > 0
        assert 0 < int(beyond.split()[0]) + int(within.split()[0]) <= 100


def test_leaving_a_task_out_leaves_the_mean_of_the_others(reading: Reading) -> None:
    means = gains(reading, B).groupby("experiment").mean()
    for method, (with_all, fewer) in cells(reading.without("fonts")).items():
        assert with_all.startswith(f"{means[method].mean():+.1f} [")
        assert fewer.startswith(f"{means[method].drop('fonts').mean():+.1f} [")
        assert f"{method} {fewer.rpartition(' ')[0]}" in reading.without_in_words("fonts")


def test_the_targets_average_to_their_tasks(reading: Reading) -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in reading.targets()[2:]]
    mine = pd.DataFrame(rows, columns=["task", "target", *PRIMARY]).set_index(["task", "target"])
    points = mine.map(lambda cell: float(re.sub(r"[\\*!]", "", cell))).groupby("task").mean()
    expected = gains(reading, B).groupby("experiment").mean()
    assert np.allclose(points.loc[[*TASKS[:3]]], expected.loc[[*TASKS[:3]], [*PRIMARY]], atol=0.06)
    found, lost = (int(mine.map(lambda cell, mark=mark: cell.endswith(mark)).to_numpy().sum()) for mark in "*!")
    assert (
        f"Of {mine.size} tests at single targets {found} find a gain and {lost} a loss." == reading.targets_in_words()
    )
    assert found > lost > 0


def test_seconds_are_ratios_to_src(reading: Reading) -> None:
    shown = dict(reading.seconds())
    assert set(shown) == {*PRIMARY}
    runs = reading.chosen[B].query("method in ['SRC', 'DARN']")
    means = np.log(runs.groupby(["experiment", "method"])["train_seconds"].mean().unstack())
    assert np.log(shown["DARN"]) == pytest.approx((means["DARN"] - means["SRC"]).mean())


def test_selection_loses_what_the_tracks_lack(runs: pd.DataFrame) -> None:
    music = runs[runs["experiment"] == "music"]
    selection = Selection(music, ["music"])
    shown = cells(selection.table())
    scores = {
        track: over_targets(chosen).drop(columns=["TAR", "JOINT", "chance"])
        for track, chosen in tracks_of(music).items()
    }
    for track in TRACKS[:3]:
        lost = (scores[C] - scores[track]).mean().mean()
        assert shown[track][2] == f"{lost:.2f}"
    assert shown["oracle"][0] == "0.00"
    tracks = [shown[track] for track in (B, "source_accuracy+infomax", "first")]
    numbers = [number for lost, _, evaluated in tracks for number in (lost, evaluated)]
    assert re.findall(r"-?\d+\.\d+", selection.in_words()) == numbers
