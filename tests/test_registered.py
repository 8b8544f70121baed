"""The suites of the registered measurement are one protocol, and docs/registered.md says what is in them."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from scipy import stats

import msda_bench as mb
from msda_bench.analysis import listed, select
from msda_bench.cli.main import main

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
    assert (task["seeds"], task["validators"], task["keep"]) == (20, first["validators"], ["target_predictions"])
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
    task["select"]["tracks"] = ["first", "source_accuracy"]
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


TRACKS = ("first", "source_accuracy", "source_accuracy+infomax", "oracle")
RECORDED = re.findall(r"^### (\S+)$", PAGE, re.MULTILINE)


def interval(*numbers: float) -> str:
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*numbers)


def gains_over_src(chosen: pd.DataFrame) -> pd.DataFrame:
    """Each method's gain over SRC on the mean over targets, with both intervals; the pair is SRC less it."""
    pairs = mb.compare(chosen)
    pairs = pairs[(pairs["scope"] == "average") & (pairs["control"] == "SRC")].set_index("second")
    assert list(pairs.index) in (PRIMARY, [*PRIMARY, "boosting"])
    turned = 0.0 - pairs[["hodges_lehmann", "hl_high", "hl_low", "corrected_t_high", "corrected_t_low"]]
    turned.columns = ["gain", "low", "high", "corrected_low", "corrected_high"]
    return pairs[["standing", "detectable", "n_paired"]].join(turned)


def interim(task: str) -> tuple[list[str], str]:
    """The rows of a task's table, gains over SRC in each track, and the sentences below them."""
    runs = mb.load_results(ROOT / "recording" / task)
    chosen = [select(runs, track) for track in TRACKS]
    tracks = [*map(gains_over_src, chosen)]
    first, main, *_ = tracks
    lines = []
    for method in main["gain"].sort_values(ascending=False).index:
        cells = [interval(*track.loc[method, ["gain", "low", "high"]]) for track in tracks]
        secondary = "" if method in PRIMARY else ", secondary"
        lines.append([method + secondary, *cells, main.loc[method, "standing"]])
    for reference in ("TAR", "JOINT"):
        of_seeds = [of.groupby(["seed", "method"])["score"].mean().unstack().dropna() for of in chosen]
        over = [means[reference] - means["SRC"] for means in of_seeds]
        cells = [
            interval(gain.mean(), *stats.t.interval(0.95, len(gain) - 1, gain.mean(), stats.sem(gain))) for gain in over
        ]
        lines.append([reference, *cells, "reference"])

    def which(are: pd.Series) -> str:
        return listed(main.index[are]) or "none"

    (seeds,) = {*main["n_paired"]}
    assert main["corrected_low"].notna().all()
    size = f"{main.loc[PRIMARY, 'detectable'].median():.1f} points (the median of the methods)"
    shared = f"above 0 for {which(main['corrected_low'] > 0)}, below 0 for {which(main['corrected_high'] < 0)}"
    less = f"{which(main['high'] < first['low'])}; with InfoMax added, for {which(tracks[2]['high'] < first['low'])}"
    text = (
        f"Seeds 0 to {seeds - 1}. In track B a true gain of {size} would be found with a probability of 80 %. "
        f"Nadeau and Bengio's interval, which allows for examples that seeds share, is {shared}. "
        "Settings that accuracy on the sources chooses gain less than the authors' own, interval below interval, for "
        f"{less}."
    )
    return [f"| {' | '.join(line)} |" for line in lines], text


MARKS = {"better by more than the margin": "++", "better": "+", "equivalent": "=", "worse": "-", "undecided": "?"}


def overview() -> list[str]:
    """The rows of the table of all recorded tasks in track B, with JOINT's mean gain over SRC as the last."""
    of_tasks = {}
    for task in RECORDED:
        chosen = select(mb.load_results(ROOT / "recording" / task), "source_accuracy")
        main = gains_over_src(chosen)
        cells = {method: f"{main.loc[method, 'gain']:+.1f} {MARKS[main.loc[method, 'standing']]}" for method in PRIMARY}
        means = chosen.groupby("method", observed=True)["score"].mean()
        of_tasks[task] = cells | {"JOINT": f"{means['JOINT'] - means['SRC']:+.1f}"}
    return [f"| {' | '.join([name, *(of_tasks[task][name] for task in RECORDED)])} |" for name in [*PRIMARY, "JOINT"]]


@pytest.mark.slow
def test_the_overview_of_recorded_tasks_is_that_of_their_records() -> None:
    section = PAGE.split("### All in track B")[1].split("###")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    assert rows == [f"| method | {' | '.join(RECORDED)} |", "|---" * (len(RECORDED) + 1) + "|", *overview()]
    assert "\n".join(rows) in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("task", RECORDED)
def test_the_interim_table_of_a_recorded_task_is_that_of_its_records(task: str) -> None:
    section = re.search(rf"^### {task}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    lines, sentence = interim(task)
    assert [line for line in section[1].splitlines() if line.startswith("| ")][1:] == lines
    assert sentence in " ".join(section[1].split())
