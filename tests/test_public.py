"""Public functions run from Python as from the command line, and refuse in a line what they cannot use."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.errors import BenchError, SuiteError
from msda_bench.results.predictions import per_class
from msda_bench_report.plots.parts import KINDS
from tests.cli.conftest import SUITE

RESULTS = Path(__file__).parents[1] / "results" / "paper-amazon"


def test_each_function_says_what_it_returns():
    """Ruff and mypy see to the rest of each docstring and to the types."""
    assert [name for name in mb.__all__ if name != "plots" and "Returns:" not in getattr(mb, name).__doc__] == []


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'runs'"):
        mb.runs  # noqa: B018
    assert dir(mb) == sorted(mb.__all__)


def test_a_run_from_python_equals_the_commands_and_returns_the_frame(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SUITE)
    runs = mb.run("tiny.yaml", only="seed=0", device="cpu", workers=1, quiet=True)
    assert set(runs["status"]) <= {"ok", "missing", "failed"}
    assert (runs[runs["seed"] == 0]["status"] != "missing").all()
    assert Path("results/tiny/runs.csv").exists()
    again = mb.run(Path("tiny.yaml"), only="seed=0", device="cpu", quiet=True)
    assert again["score"].tolist() == pytest.approx(runs["score"].tolist(), nan_ok=True)
    with pytest.raises(SuiteError, match=r"absent\.yaml"):
        mb.run("absent.yaml")


RECORDED = Path(__file__).parents[1] / "results" / "ablation-digits-scale"
FUNCTIONS = {
    **{name: getattr(mb, name) for name in mb.__all__ if name != "plots"},
    **{f"plots.{name}": getattr(mb.plots, name) for name in mb.plots.__all__},
}
PARAMETERS = [
    (name, parameter) for name, function in FUNCTIONS.items() for parameter in inspect.signature(function).parameters
]
OF_FRAMES = [(name, parameter) for name, parameter in PARAMETERS if parameter in KINDS]
OBJECTS = (None, 3, -1, 1.5, float("nan"), True, b"x", [], {}, object(), len, np.zeros((2, 2)), "a\0b", [RECORDED])
"""Wrong for every parameter, but for those that `RIGHT` has them for."""
RIGHT = {
    **dict.fromkeys(("table", "to", "only", "methods", "against", "target"), (type(None),)),
    **dict.fromkeys(("most", "limit", "workers", "seed"), (type(None), int)),
    **dict.fromkeys(("repair", "fetch", "quiet", "keep_going", "trust_files", "no_shift"), (bool,)),
    **dict.fromkeys(("metric", "differences"), (list,)),
}
"""The types of `OBJECTS` that a parameter takes; -1 and [RECORDED] are wrong all the same."""


@pytest.fixture(scope="module")
def frames():
    """A right frame for each parameter that takes one."""
    runs = mb.load_results(RECORDED)
    return {
        "runs": runs,
        "curves": mb.load_curves(runs),
        "comparisons": mb.compare(runs),
        "leaderboard": mb.leaderboard(runs),
        "per_class": per_class(mb.load_confusion(runs)),
        "criteria": pd.DataFrame(columns=[*KINDS["criteria"].columns]),
        "candidates": pd.DataFrame(columns=[*KINDS["candidates"].columns]),
    }


def wrong_frames(parameter, frames):
    kind, frame = KINDS[parameter], frames[parameter]
    yield "an empty frame", pd.DataFrame()
    yield "a transposed frame", frame.T
    yield "columns twice", pd.concat([frame, frame], axis=1)
    yield "other names of columns", frame.rename(columns=str.upper)
    yield from ((f"without {name}", frame.drop(columns=name)) for name in kind.columns)
    yield from ((f"a frame from {KINDS[other].maker}", frames[other]) for other in frames if other != parameter)
    if len(frame):
        yield from ((f"a number in {name}", frame.assign(**{name: 3})) for name in kind.texts)
        yield from ((f"a text in {name}", frame.assign(**{name: "x"})) for name in kind.numbers)


def wrong_runs(runs):
    bare = pd.DataFrame(runs)
    yield "without a plan", bare
    yield "merged", bare.merge(bare[["key"]], on="key")
    yield "concatenated with itself", pd.concat([runs, runs])
    yield "concatenated with itself anew", pd.concat([runs, runs], ignore_index=True)
    yield "all texts", runs.astype(str)
    for name in ("experiment", "dataset", "task", "target", "method", "status", "seed", "score", "n_test", "n_correct"):
        yield f"x in {name}", runs.assign(**{name: "x"})
        yield f"nothing in {name}", runs.assign(**{name: None})
    yield "without keys", runs.assign(key=None)
    yield "more right than tested", runs.assign(n_correct=runs["n_test"] + 1)


def refusal(function, **arguments):
    """The line of the refusal, or what was wrong instead."""
    try:
        function(**arguments)
    except (TypeError, ValueError, BenchError) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - any is what is tested
        return f"\n{type(error).__name__}: {error}"
    return "\nnothing was refused"


@pytest.mark.parametrize(("name", "parameter"), OF_FRAMES)
def test_wrong_frames_are_refused_in_a_line_with_the_parameter(name, parameter, frames):
    wrong = dict(wrong_frames(parameter, frames))
    wrong |= dict(wrong_runs(frames["runs"])) if parameter == "runs" else {}
    said = {what: refusal(FUNCTIONS[name], **{parameter: value}) for what, value in wrong.items()}
    impossible = said.pop("more right than tested", "without a possible outcome")
    assert {what: line for what, line in said.items() if not line.startswith(f"{parameter}: ") or "\n" in line} == {}
    assert "without a possible outcome" in impossible
    if parameter == "runs":
        assert "plan" in said["without a plan"]
        assert said["without a plan"].endswith("give one from load_results, or some of its rows")


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_wrong_objects_are_refused_in_a_line_with_the_parameter(name, parameter, frames):
    first = PARAMETERS[[function for function, _ in PARAMETERS].index(name)][1]
    given = (
        {} if parameter == first else {first: frames.get(first, {"folder": RECORDED, "differences": [1]}.get(first))}
    )
    if parameter == "path":
        given = {"chart": mb.plots.points(frames["runs"])}
    elif parameter == "chart":
        given = {"path": "chart.svg"}
    if name in {"run", "fit"}:
        given = {"suite": "no-such-suite"} | ({"out": "."} if name == "run" else {"method": "SRC"})
    right = RIGHT.get(parameter, ())
    wrong = [value for value in OBJECTS if type(value) not in right or value in (-1, [RECORDED])]
    said = {repr(value): refusal(FUNCTIONS[name], **{**given, parameter: value}) for value in wrong}
    assert {value: line for value, line in said.items() if f"{parameter}: " not in line or "\n" in line} == {}


@pytest.mark.parametrize(("name", "parameter"), [*OF_FRAMES, ("load_results", "folder")])
def test_a_path_that_is_no_result_folder_is_one_line(name, parameter, tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "none", tmp_path / "file", str(tmp_path / ("x" * 300))):
        line = refusal(FUNCTIONS[name], **{parameter: path})
        assert str(path)[:200] in line
        assert "\n" not in line


@pytest.mark.parametrize(("name", "parameter"), OF_FRAMES)
def test_a_path_gives_what_its_frame_gives(name, parameter, frames):
    def outcome(value):
        try:
            made = FUNCTIONS[name](**{parameter: value})
        except (ValueError, BenchError) as error:
            return type(error), str(error)
        return made.to_csv() if isinstance(made, pd.DataFrame) else made.to_dict(validate=False)

    assert outcome(RECORDED) == outcome(str(RECORDED)) == outcome(frames[parameter])


def test_some_rows_of_a_frame_are_a_frame():
    runs = mb.load_results(RECORDED)
    board = mb.leaderboard(runs[runs["method"] == "DARN-text"])
    assert set(board["method"]) == {"DARN-text"}
    assert mb.leaderboard(runs.iloc[:0]).empty


def test_differences_from_a_method_that_is_not_there(frames):
    line = "to: no pair here has the method 'DARN-txt' (did you mean 'DARN-text'?)"
    assert refusal(mb.plots.differences, comparisons=frames["comparisons"], to="DARN-txt") == line
