"""The suites of the registered measurement are one protocol, and docs/registered.md says what is in them."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "registered.md").read_text(encoding="utf-8")
REGISTERED = yaml.safe_load((ROOT / "suites" / "registered.yaml").read_text(encoding="utf-8"))
TASKS = {
    Path(name).stem: yaml.safe_load((ROOT / "suites" / name).read_text(encoding="utf-8"))
    for name in REGISTERED["include"]
}
PRIMARY = ["CORAL", "MMD", "CDAN", "MCC", "BNM", "SHOT", "DARN", "MFSAN"]


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
    assert task["compare"] == {"against": "SRC", "margin": margin, "primary": PRIMARY}
    of_task = {"steps": task["training"].pop("steps")}
    assert {**task["training"], "steps": 60} == {**first["training"], "steps": 60}
    assert (task["seeds"], task["validators"], task["keep"]) == (30, first["validators"], ["target_predictions"])
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    assert re.search(rf"\| {10 * of_task['steps']:,} \| 0.03 \|$", row)


def test_the_page_has_every_axis() -> None:

    axes = [
        (name, *method["search"].values()) for name, method in TASKS["pacs"]["methods"].items() if "search" in method
    ]
    for name, values in axes:
        listed = ", ".join(f"{value:g}" for value in values)
        assert any(f"| {listed} |" in row and re.search(rf"\b{name}\b", row) for row in PAGE.splitlines()), name
    assert "100 to 103" in PAGE and "0 to 29" in PAGE  # noqa: PT018 - both are the seeds
