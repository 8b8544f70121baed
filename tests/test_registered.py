"""The suites of the registered measurement are one protocol, and docs/registered.md says what is in them."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

import msda_bench as mb
from msda_bench.cli.main import main
from tests.reading import PRIMARY, longer_runs, power_of_the_mean, spread_at_tuning_seeds, task_table, tracks_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "registered.md").read_text(encoding="utf-8")
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
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
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


def test_the_page_has_every_axis() -> None:
    axes = [
        (name, *method["search"].values()) for name, method in TASKS["pacs"]["methods"].items() if "search" in method
    ]
    for name, values in axes:
        listed = ", ".join(f"{value:g}" for value in values)
        assert any(f"| {listed} |" in row and re.search(rf"\b{name}\b", row) for row in PAGE.splitlines()), name
    assert "100 to 103" in PAGE and "0 to 29" in PAGE  # noqa: PT018 - both are the seeds


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return mb.load_results(ROOT / "results" / "registered")


@pytest.fixture(scope="module")
def chosen(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return tracks_of(runs)


@pytest.mark.slow
def test_the_power_of_the_mean_is_that_of_the_tuning_runs(runs: pd.DataFrame) -> None:
    spreads = [spread_at_tuning_seeds(runs[runs["experiment"] == task]) for task in TASKS]
    assert power_of_the_mean(spreads) in " ".join(PAGE.split())


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_table_of_a_task_is_that_of_its_records(task: str, chosen: dict[str, pd.DataFrame]) -> None:
    section = re.search(rf"^### {task}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    lines, sentence = task_table({track: of[of["experiment"] == task] for track, of in chosen.items()})
    assert [line for line in section[1].splitlines() if line.startswith("| ")][1:] == lines
    assert sentence in " ".join(section[1].split())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["fonts", "watch"])
def test_the_table_of_longer_runs_is_that_of_their_records(task: str, runs: pd.DataFrame) -> None:
    longer = mb.load_results(ROOT / "results" / "sensitivity")
    section = re.search(rf"^### {task}, longer\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    lines, sentence, changed = longer_runs(*(of[of["experiment"] == task] for of in (runs, longer)))
    assert [line for line in section[1].splitlines() if line.startswith("| ")][1:] == lines
    assert sentence in " ".join(section[1].split())
    for page in ("docs/findings.md", "README.md"):
        assert f"{changed} on `{task}`" in " ".join((ROOT / page).read_text(encoding="utf-8").split())
