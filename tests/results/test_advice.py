"""What to do after the runs: one advice, the same on the terminal, on the page and in Python."""

from dataclasses import replace

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.store.record import Outcome
from tests.results.conftest import BASE, lead, planned, plus, write_folder
from tests.results.test_measures import BALANCED, SEEDS, answers, few


def made(path, runs, kinds, dataset="toy", **options):
    """A folder of runs; of each method whether it sees the target, its steps, and the seconds of its training."""
    experiment, cells, records = planned(runs, dataset=dataset, **{"baseline": "SRC"} | options)
    known = {name: kinds.get(name, (None, 10, 1.0)) for name in runs}
    methods = tuple(replace(method, sees_target=known[method.name][0]) for method in experiment.methods)
    for cell in cells:
        _, steps, seconds = known[cell.method]
        records[cell.key] = replace(records[cell.key], timing={"train": seconds, "steps": steps})
    return write_folder(path, (replace(experiment, methods=methods), cells, records))


PLAIN, SHALLOW = (False, 0, 9.0), (True, 0, 9.0)
"""Fitted at once, without and with inputs of the target."""


def network(seconds, *, adapts=True):
    return adapts, 10, seconds


@pytest.mark.parametrize(
    ("baseline", "first", "second", "use"),
    [
        (network(1.0, adapts=False), network(0.1), PLAIN, "second"),
        (network(9.0, adapts=False), SHALLOW, network(0.1), "SRC"),
        (network(1.0), network(1.0), SHALLOW, "second"),
        (network(2.0), network(2.0), network(1.0), "second"),
        (network(1.6), network(1.4), network(1.0), "first"),  # as cheap, with the better mean
    ],
)
def test_of_equal_methods_the_simplest_and_then_the_cheapest_is_used(baseline, first, second, use, tmp_path):
    """Means differ in no steady direction, `first` has the best; `bad` is worse than all."""
    kinds = {"SRC": baseline, "first": first, "second": second}
    turns = [(-1) ** seed * 4 for seed in range(SEEDS)]
    runs = {"first": {"x": plus(*(3 + turn for turn in turns))}, "second": {"x": plus(*(2 - turn for turn in turns))}}
    runs |= {"SRC": {"x": BASE}, "bad": {"x": plus(*(-9 - seed for seed in range(SEEDS)))}}
    (row,) = mb.advice(made(tmp_path / "runs", runs, kinds)).to_dict("records")
    assert row["method"] == use
    assert {*row["equals"]} == {*kinds}


def test_one_advice_with_the_leaderboards_numbers_is_on_every_surface(tmp_path, shown):
    runs = {
        "SRC": {"x": BASE, "y": BASE},
        "up": {"x": plus(*range(20, 20 + SEEDS)), "y": plus(*range(4, 4 + SEEDS))},
    }
    folder = made(tmp_path / "runs", runs, {}, dataset="table")
    (folder / "commands.txt").write_text("msda-bench run 'my data.yaml'\nmsda-bench run 'my data.yaml' --out b.yaml\n")
    row = mb.advice(folder).iloc[0]
    board = mb.leaderboard(folder).set_index(["method", "target"])
    ends = ["mean", "mean_low", "mean_high"]
    assert (row["method"], row["worst"]) == ("up", "y")
    assert row[["mean", "low", "high"]].tolist() == board.loc[("up", "average"), ends].tolist()
    worst, low, high = row[["worst_mean", "worst_low", "worst_high"]]
    assert [worst, low, high] == board.loc[("up", "y"), ends].tolist()
    assert f"y, it was {worst:.1f} % [{low:.1f}, {high:.1f}]." in row["text"]
    assert "msda-bench predict 'my data.yaml' NEW.csv --method up --out answers.csv" in row["text"]
    assert shown("leaderboard", folder).endswith(row["text"])
    assert row["text"] in shown("report", folder)
    page = " ".join((folder / "report.html").read_text().split())
    assert row["text"].split(". ")[1] in page[page.index('id="advice"') :]


def test_where_nothing_can_be_shown_nothing_is_recommended(folder_of):
    """Few rows, few seeds, answers at chance, no labels: each says what would change that."""
    constant, good = [answers(0, 180)] * SEEDS, [answers(15, 175 + seed % 3) for seed in range(SEEDS)]
    chance, unlabelled = {"x": constant, "y": constant}, {"x": [Outcome(0)] * 3}
    texts = []
    for runs in (
        {"SRC": {"x": few(2, 0)}, "up": {"x": few(2, 8)}},
        {"SRC": lead(0, 3), "up": lead(2, 3), "more": lead(3, 3)},
        {"SRC": chance, "up": chance},
        {"SRC": unlabelled, "up": unlabelled},
    ):
        row = mb.advice(folder_of(runs, metric=BALANCED if chance in runs.values() else None)).iloc[0]
        assert row["method"] is None
        assert np.isnan(row["mean"])
        assert "Next: " in row["text"]
        texts.append(row["text"])
    assert "seeds: 7" in texts[1]
    row = mb.advice(folder_of({"SRC": {"x": constant, "y": good}, "low": chance}, metric=BALANCED)).iloc[0]
    assert (row["method"], row["at_chance"]) == ("SRC", ("x",))


def test_pairs_without_a_difference_are_named_rather_than_as_many_seeds_asked_for(tmp_path):
    runs = {"SRC": {"x": BASE}, "alike": {"x": [*BASE[:-1], BASE[-1] + 3]}}
    (row,) = mb.advice(made(tmp_path / "runs", runs, {"SRC": network(1.0), "alike": network(1.0)})).to_dict("records")
    assert row["method"] is None
    assert "seeds:" not in row["text"]
