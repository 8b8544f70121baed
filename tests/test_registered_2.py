"""The second registered measurement keeps the first one's protocol and runs, and its tests are those of its plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import msda_bench as mb
from msda_bench.plugins import discover
from msda_bench.suite.expand import expand
from msda_bench.suite.load import load_suite
from second_reading import FAMILIES, NEW, RESULTS, Mean, mean_over_tasks, read, verdicts

SUITES = Path(__file__).parents[1] / "suites"
PARTS = yaml.safe_load((SUITES / "registered-2.yaml").read_text(encoding="utf-8"))["include"]
PLUGINS = {"pacs": "efficientnet-lite0", "opinions": "minilm"}


@pytest.mark.parametrize("part", PARTS)
def test_a_task_has_the_first_measurements_protocol_and_runs(part: str) -> None:
    name = Path(part).stem
    one, two = (
        yaml.safe_load((SUITES / folder / f"{name}.yaml").read_text()) for folder in ("leaderboard", "registered-2")
    )
    methods = two.pop("methods")
    shared = {"SRC", "JOINT", "chance"}
    before = one.pop("methods")
    assert methods.keys() == {*shared, *NEW}
    assert {key: methods[key] for key in shared} == {key: before[key] for key in shared}
    gamma = methods["DARN-gamma"]["search"].pop("aggregator.sharpmax.gamma")
    assert methods["DARN-gamma"] == before["DARN"]
    assert gamma == [0.1, 0.3, 0.9, 2.7]
    assert methods["uniform"] == {**before["DARN"], "aggregator": "uniform"}
    one["select"]["tracks"] = ["first", "source_accuracy"]
    del one["compare"]["headroom"]
    one["compare"]["primary"] = NEW
    one.pop("notes", None)
    two.pop("notes", None)
    assert two == one
    registry = discover()
    if PLUGINS.get(name, "mlp") not in registry.names("backbone"):
        pytest.skip("without its plugin the suite has no runs")
    first, second = (
        {(cell.method, cell.target, cell.seed, cell.candidate): cell.key for cell in expand(suite, registry).plan.cells}
        for suite in (
            load_suite(SUITES / folder / f"{name}.yaml", registry) for folder in ("leaderboard", "registered-2")
        )
    )
    reused = {place: key for place, key in second.items() if place[0] in shared}
    assert len(reused) > 1000
    assert reused.items() <= first.items()
    for (method, *place, candidate), key in second.items():
        if method == "DARN-gamma" and candidate == 0:
            assert first["DARN", *place, 0] == key


def test_all_tasks_are_in_it() -> None:
    first = yaml.safe_load((SUITES / "registered.yaml").read_text(encoding="utf-8"))["include"]
    assert {Path(name).stem for name in first} == {Path(name).stem for name in PARTS}


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
def first() -> pd.DataFrame:
    return mb.load_results(RESULTS / "registered")


@pytest.fixture(scope="module")
def second(first: pd.DataFrame) -> pd.DataFrame:
    """Other methods' runs under the names of the second measurement's rows; the controls' change a little by seed."""
    names, plan = first["method"].astype(str), first.attrs["plan"]
    rows = pd.concat([first[names == was].assign(method=new) for new, was in ALIKE.items()], ignore_index=True)
    rows["score"] += rows["method"].isin(["AdaBN", "pass-through"]) * rows["seed"] / 100
    tables = []
    for table in plan.experiments:
        methods = {method.name: method for method in table.methods}
        renamed = tuple(replace(methods[was], name=new) for new, was in ALIKE.items())
        tables.append(replace(table, methods=renamed, primary=tuple(NEW), headroom=None))
    rows.attrs = {**first.attrs, "plan": replace(plan, experiments=tuple(tables))}
    return rows


@pytest.mark.slow
def test_the_reading_finds_what_an_outside_statistician_found(first: pd.DataFrame, second: pd.DataFrame) -> None:
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
def test_a_task_that_is_not_recorded_whole_is_in_no_mean(first: pd.DataFrame, second: pd.DataFrame) -> None:
    lacking = second["experiment"].isin(["amazon", "intents"]) & (second["method"] == "uniform") & (second["seed"] == 7)
    partly = second.assign(status=second["status"].astype(str).mask(lacking, "missing"))
    partly.attrs = second.attrs
    tables = read(first, partly)
    assert tables["whole, B"].loc["tasks", "value"] == "8"
    assert not {"amazon", "intents"} & {*tables["over SRC, B"]}


def test_seeds_that_share_examples_widen_the_interval() -> None:
    index = pd.MultiIndex.from_product([["a", "b"], range(5)], names=["experiment", "seed"])
    differences = pd.Series([1.0, 2, 3, 4, 5, 0, 0, 1, 1, 3], index)
    found = mean_over_tasks(differences, pd.Series({"a": 0.5, "b": 2.0}))
    variances = np.array([2.5 * (0.2 + 0.5), 1.5 * (0.2 + 2.0)])
    assert found.value == 2.0
    assert found.error == pytest.approx(np.sqrt(variances.sum()) / 2)
    assert found.freedom == pytest.approx(variances.sum() ** 2 / (variances**2 / 4).sum())


def test_holms_verdicts_are_those_of_their_definitions() -> None:
    far, near, none = (Mean(value, 0.2, 100.0) for value in (3.0, 0.3, -0.1))
    p, found = verdicts({"far": far, "near": near, "none": none, "wide": Mean(0.5, 2.0, 100.0)}, 1.0)
    assert list(found.values()) == ["better by more than the margin", "equivalent", "equivalent", "undecided"]
    assert p["near"] == pytest.approx(3 * near.p_values(1.0)[0])
    _, alone = verdicts({"better": Mean(1.2, 0.4, 50.0), "worse": Mean(-2.0, 0.3, 50.0)}, 1.0)
    assert list(alone.values()) == ["better", "worse"]
