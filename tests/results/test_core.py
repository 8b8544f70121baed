"""`msda-bench core`: it finds the tasks that carry the order, and is judged on seeds on which it was not chosen."""

from __future__ import annotations

import json
import shlex
from itertools import combinations
from pathlib import Path

import pytest
from scipy.stats import kendalltau

import msda_bench as mb
from msda_bench.cli.main import main
from tests.results.conftest import ordered_folder, planned, write_folder

REGISTERED = Path(__file__).parents[2] / "results" / "registered"


def core(capsys, *words):
    assert main(["core", *map(str, words), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (table,) = document["tables"]
    return table["rows"], document


def test_the_tasks_that_carry_the_order_are_chosen_before_noise(tmp_path, capsys):
    rows, document = core(capsys, ordered_folder(tmp_path / "r", {"noise": 3, "clear": 0}))
    assert [row["experiment"] for row in rows] == ["clear"]
    assert rows[0]["kept"] == rows[0]["correlation"] == 1
    assert len(document["seeds"]) == 1
    assert document["minutes"] == pytest.approx(0.5)  # five runs of six seconds
    assert document["minutes_of_all"] == pytest.approx(16.0)  # 2 experiments, 2 targets, 8 seeds
    assert document["left_out"]["kept"] == 1
    (command,) = document["commands"]
    assert shlex.split(command)[:4] == ["msda-bench", "run", "suite", "--only"]
    assert shlex.split(command)[4] in {f"experiment=clear,target={target},seed=0" for target in "xy"}


def test_what_noise_seems_to_order_does_not_stand_on_other_seeds(tmp_path, capsys):
    """Where there is little but noise, the chosen tasks look better than they are."""
    rows, document = core(capsys, ordered_folder(tmp_path / "r", {"one": 9, "two": 9, "three": 9}), "--agree", "0.7")
    assert document["left_out"]["kept"] <= rows[-1]["kept"]
    assert document["left_out"]["correlation"] < 1


@pytest.mark.slow
def test_the_registered_core_is_as_faithful_as_it_says(capsys):
    rows, document = core(capsys, REGISTERED)
    runs = mb.load_results(REGISTERED)
    assert rows[-1]["kept"] >= 0.9
    assert rows[-1]["minutes"] == pytest.approx(document["minutes"])
    assert document["minutes"] < document["minutes_of_all"] / 10
    board = mb.compare(runs).query("control == 'SRC' and scope == 'target'")
    sign = board["second"].eq("SRC").map({True: 1, False: -1})
    gains = board.assign(method=board["first"].where(sign == 1, board["second"]), gain=sign * board["mean_difference"])
    gains = gains.groupby(["experiment", "target", "method"], observed=True)["gain"].mean().unstack()
    gains = gains.drop("watch", level="experiment")[document["methods"]]  # has no headroom
    whole = gains.groupby("experiment", observed=True).mean().mean()
    places = [(row["experiment"], row["target"]) for row in rows]
    part = gains.loc[places].groupby("experiment", observed=True).mean().mean()
    assert rows[-1]["correlation"] == pytest.approx(kendalltau(part, whole).statistic, abs=1e-4)
    assert document["clear_pairs"] <= len(list(combinations(document["methods"], 2))) == 28
    assert 0.5 < document["left_out"]["kept"] < rows[-1]["kept"]
    (command,) = document["commands"]
    selection = mb.load_results(REGISTERED)  # what the command selects, by its own conditions
    wanted = dict(condition.split("=") for condition in shlex.split(command)[-1].split(","))
    chosen = selection[selection["experiment"].isin(wanted["experiment"].split("|"))]
    chosen = chosen[chosen["target"].isin(wanted["target"].split("|"))]
    assert {*chosen[["experiment", "target"]].drop_duplicates().itertuples(index=False, name=None)} == {*places}


def test_a_target_of_the_same_name_elsewhere_is_not_selected(tmp_path, capsys):
    """x of one experiment and y of another are two commands, since a single one would select both targets of both."""
    parts = []
    for name, good, levels in (("one", "x", (0, 1, 2, 3, 3)), ("two", "y", (0, 1, 1, 1, 3))):
        runs = {
            method: {target: [100 + level * (target == good) + seed % 2 for seed in range(8)] for target in "xy"}
            for method, level in zip(("SRC", "a", "b", "c", "d"), levels, strict=True)
        }
        parts.append(planned(runs, name, name, baseline="SRC"))
    _, document = core(capsys, write_folder(tmp_path / "r", *parts), "--agree", "0.99")
    conditions = [shlex.split(command)[-1] for command in document["commands"]]
    assert sorted(conditions) == ["experiment=one,target=x,seed=0", "experiment=two,target=y,seed=0"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("r --methods a,b,ee", "--methods: 'ee' is not ranked in every experiment"),
        ("r --methods a,b", "2 methods on all tasks; an order to keep takes at least 3"),
        ("r --agree 1.5", "--agree: must be a probability from 0.5 to 0.99, not '1.5'"),
        ("noise --agree 0.99", "no two methods are clearly separated here, so there is no order to keep"),
        ("few", "2 seeds on all tasks; an order to keep takes at least 4"),
        ("none", "the experiments of accuracy have no common baseline"),
        ("errors", "no experiment of accuracy counts here, by whose gains methods could be ordered"),
        ("nowhere", "nowhere: "),
    ],
)
def test_what_has_no_core_is_a_line(tmp_path, monkeypatch, capsys, words, line):
    monkeypatch.chdir(tmp_path)
    ordered_folder(tmp_path / "r")
    ordered_folder(tmp_path / "few", n_seeds=2)
    ordered_folder(tmp_path / "noise", {"noise": 80}, n_seeds=4)
    errors = planned({"a": {"x": [1.0, 2.0]}, "b": {"x": [1.0, 2.0]}}, task="regression", baseline="a")
    write_folder(tmp_path / "errors", errors)
    write_folder(tmp_path / "none", *(part for part in [planned({"a": {"x": [1, 2]}, "b": {"x": [1, 2]}})]))
    assert main(["core", *words.split()]) == 2
    assert line in capsys.readouterr().err.splitlines()[-1]
