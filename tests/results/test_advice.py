"""What to do after the runs: one advice, the same on the terminal, on the page and in Python."""

from dataclasses import replace

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.store.record import Outcome
from tests.results.conftest import lead, planned, plus, write_folder
from tests.results.test_measures import BALANCED, SEEDS, answers, few

STEADY = [0] * SEEDS


def made(path, runs, kinds, dataset="toy", **options):
    """A folder of runs; of each method whether it sees the target, its steps, and the seconds of its training."""
    experiment, cells, records = planned(runs, dataset=dataset, **{"baseline": "SRC"} | options)
    methods = tuple(
        replace(method, sees_target=kinds[method.name][0] if method.name in kinds else None)
        for method in experiment.methods
    )
    whose = {cell.key: cell.method for cell in cells}
    for key, record in records.items():
        _, steps, seconds = kinds.get(whose[key], (None, 10, 1.0))
        records[key] = replace(record, timing={"train": seconds, "steps": steps})
    return write_folder(path, (replace(experiment, methods=methods), cells, records))


def said(capsys, *words):
    capsys.readouterr()
    assert main([*map(str, words)]) == 0
    return " ".join(capsys.readouterr().out.split())


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
    runs |= {"SRC": {"x": plus(*STEADY)}, "bad": {"x": plus(*(-9 - seed for seed in range(SEEDS)))}}
    (row,) = mb.advice(made(tmp_path / "runs", runs, kinds)).to_dict("records")
    assert row["method"] == use
    assert {*row["equals"]} == {*kinds}


def test_one_advice_with_the_leaderboards_numbers_is_on_every_surface(tmp_path, capsys):
    runs = {
        "SRC": {"x": plus(*STEADY), "y": plus(*STEADY)},
        "up": {"x": plus(*(20 + seed for seed in range(SEEDS))), "y": plus(*(4 + seed for seed in range(SEEDS)))},
    }
    folder = made(tmp_path / "runs", runs, {}, dataset="table")
    (folder / "commands.txt").write_text("msda-bench run 'my data.yaml'\nmsda-bench run 'my data.yaml' --out b.yaml\n")
    row = mb.advice(folder).iloc[0]
    board = mb.leaderboard(folder).set_index(["method", "target"])
    ends = ["mean", "mean_low", "mean_high"]
    assert (row["method"], row["worst"]) == ("up", "y")
    np.testing.assert_array_equal(row[["mean", "low", "high"]].astype(float), board.loc[("up", "average"), ends])
    worst = row[["worst_mean", "worst_low", "worst_high"]].astype(float)
    np.testing.assert_array_equal(worst, board.loc[("up", "y"), ends])
    low, high = (f"{end:.1f}" for end in worst[1:])
    assert f"y, it was {worst.iloc[0]:.1f} % [{low}, {high}]." in row["text"]
    assert "msda-bench predict 'my data.yaml' NEW.csv --method up --out answers.csv" in row["text"]
    assert said(capsys, "leaderboard", folder).endswith(row["text"])
    assert row["text"] in said(capsys, "report", folder)
    page = " ".join((folder / "report.html").read_text().split())
    assert row["text"].split(". ")[1] in page[page.index('id="advice"') :]


def test_where_nothing_can_be_shown_nothing_is_recommended(tmp_path):
    """Few rows, few seeds, answers at chance: each says what would change that."""
    rows = {"SRC": {"x": few(2, 0)}, "up": {"x": few(2, 8)}}
    seeds = {"SRC": lead(0, 3), "up": lead(2, 3), "more": lead(3, 3)}
    constant, good = [answers(0, 180)] * SEEDS, [answers(15, 175 + seed % 3) for seed in range(SEEDS)]
    chance = {"SRC": {"x": constant, "y": constant}, "up": {"x": constant, "y": constant}}
    unlabelled = {"SRC": {"x": [Outcome(0)] * 3}, "up": {"x": [Outcome(0)] * 3}}
    for name, runs in {"rows": rows, "seeds": seeds, "chance": chance, "unlabelled": unlabelled}.items():
        metric = BALANCED if name == "chance" else None
        row = mb.advice(made(tmp_path / name, runs, {}, metric=metric)).iloc[0]
        assert row["method"] is None, name
        assert np.isnan(row["mean"]), name
        assert "Next: " in row["text"], name
    assert "seeds: 7" in mb.advice(tmp_path / "seeds").iloc[0]["text"]
    some = {"SRC": {"x": constant, "y": good}, "low": {"x": constant, "y": constant}}
    row = mb.advice(made(tmp_path / "some", some, {}, metric=BALANCED)).iloc[0]
    assert (row["method"], row["at_chance"]) == ("SRC", ("x",))


def test_pairs_without_a_difference_are_named_rather_than_as_many_seeds_asked_for(tmp_path):
    runs = {"SRC": {"x": plus(*STEADY)}, "alike": {"x": plus(*STEADY[1:], 3)}}
    (row,) = mb.advice(made(tmp_path / "runs", runs, {"SRC": network(1.0), "alike": network(1.0)})).to_dict("records")
    assert row["method"] is None
    assert "seeds:" not in row["text"]
