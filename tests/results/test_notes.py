"""Notes on how runs were made, from their records."""

from dataclasses import replace

import pytest

from msda_bench.results.notes import folder_lines, note_lines, notes, problem_lines, problems
from msda_bench.store.record import Record
from msda_bench.suite.plan import Method, Plan
from tests.results.conftest import frame, frame_of, planned

SOUND = {"device": "cpu", "numba": "0.61", "torch": "2.11", "stack": 1, "distributions": {"msda-bench": "0.1.0"}}


def lines(change):
    """Of methods a and b, targets x and y, seeds 0 to 5, with records altered by `change`."""
    experiment, cells, records = planned({name: {"x": [5] * 6, "y": [5] * 6} for name in ("a", "b")})
    methods = tuple(Method(name, False, "recipe", ("msda-bench 0.1.0",)) for name in ("a", "b"))
    for cell in cells:
        sound = replace(records[cell.key], provenance=SOUND)
        records[cell.key] = change(sound, cell.method, cell.target, cell.seed) or sound
    runs = frame(Plan("suite", (replace(experiment, methods=methods),), tuple(cells)), records)
    return tuple(note.line for note in notes(runs))


def made(record, **provenance):
    return replace(record, provenance=SOUND | provenance)


def fails(record, method, target, seed):
    return replace(record, message=f"validator 'v' raised {seed}\x1b[31m") if target == "y" else None


def changes(record, method, *_):
    return made(record, put_back=["torch's default dtype", "a\x1b[31m"]) if method == "b" else None


def mixed(record, method, target, seed):
    more = {"distributions": {"msda-bench": "0.1.0", "their-data": f"1.{target == 'y'}"}}
    return made(record, device="cpu" if seed else "cuda", **more)


def spread(record, method, target, seed):
    return replace(record, validation={"source_accuracy": [0.9, 0.5, 0.7, 0.6, 0.8, 0.4][seed]})


OLD = {"distributions": {"msda-bench": "0.0.9"}}
SLOW = "trained without numba, by plain loops, which are slower and round differently"
AT_0, AT_3 = (f"2 of 12 runs, first at target x, seed {seed}" for seed in (0, 3))
AT_X, AT_Y = (f"6 of 12 runs, first at target {target}, seed 0" for target in "xy")
MOST = "; ".join(f"{name}, 10 of 12 runs, first at target x, seed 1" for name in "ab")
HERE = "an unnamed system with torch 2.11"
VALIDATOR = f"{AT_Y}: validator 'v' raised 0 [31m"
VALIDATOR += "; `run` makes these runs again once it is mended and its `version` raised"
OTHER = "made with another msda-bench than the plan's 0.1.0: 0.0.9"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda *_: None, [], id="sound"),
        pytest.param(lambda record, *_: replace(record, provenance={}), [], id="made by nobody knows what"),
        pytest.param(lambda record, *_: made(record, numba=None), [f"{SLOW}: all runs"], id="plain loops"),
        pytest.param(
            lambda record, method, target, seed: made(record, numba=None) if seed == 3 else None,
            [f"{SLOW}: a, {AT_3}; b, {AT_3}"], id="plain loops of a seed",
        ),
        pytest.param(lambda record, *_: made(record, numba=None, device="cuda"), [], id="no loops on a GPU"),
        pytest.param(fails, [f"without a validator's score: {name}, {VALIDATOR}" for name in "ab"], id="validator"),
        pytest.param(
            lambda record, *_: Record(record.key, {}, "failed", message="no", provenance=SOUND), [], id="failed",
        ),
        pytest.param(spread, [], id="a low run within a wide spread"),
        pytest.param(
            changes,
            ["a component changed torch's default dtype and a [31m, which was restored after its run: b, all runs"],
            id="process state",
        ),
        pytest.param(lambda record, *_: made(record, **OLD), [f"{OTHER} (all runs)"], id="older"),
        pytest.param(
            lambda record, method, *_: made(record, **OLD) if method == "a" else None,
            [f"{OTHER} (a, all runs)"], id="a method older",
        ),
        pytest.param(
            mixed,
            [
                f"made with more than one system: {HERE} ({MOST}); {HERE} and cuda (a, {AT_0}; b, {AT_0})",
                f"made with more than one their-data: 1.False (a, {AT_X}; b, {AT_X}); 1.True (a, {AT_Y}; b, {AT_Y})",
            ],
            id="mixed",
        ),
    ],
)  # fmt: skip
def test_how_runs_were_made_is_noted(change, expected):
    assert list(lines(change)) == expected


@pytest.mark.parametrize(("score", "named"), [(0.6, True), (0.75, False)])
def test_a_run_far_from_its_siblings_is_named(score, named):
    """One of a method's seeds at a target no longer classifies the sources; only their labels show it."""

    def falls(record, method, target, seed):
        lost = (method, target, seed) == ("b", "y", 3)
        return replace(record, validation={"source_accuracy": score if lost else 0.82 + seed / 100})

    found = lines(falls)
    assert len(found) == named
    assert all(line.endswith(": b at target y, seed 3 (60, median 83.5)") for line in found)


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("Linux-6.1.0-18-amd64-x86_64-with-glibc2.36", "Linux x86_64"),
        ("Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35", "Linux x86_64"),
        ("Linux-6.8.0-1008-nvidia-64k-aarch64-with-glibc2.39", "Linux aarch64"),
        ("macOS-15.5-arm64-arm-64bit-Mach-O", "macOS arm64"),
        ("Windows-11-10.0.26100-SP0", "Windows"),
        ("\x1b[31mOS" + 99 * "x", "[31mOS" + 51 * "x" + "..."),
    ],
)
def test_systems_are_named_without_their_releases(platform, words):
    """A new kernel release is not another system."""

    def two(record, method, target, seed):
        release = f"{platform}-{seed}" if platform.startswith("W") else platform
        return made(record, platform=release if seed else "Plan9", device="cuda", device_name="H\x07")

    assert f"{words} with torch 2.11 and H (a, 10 of 12 runs" in lines(two)[0]


def test_methods_with_unequal_numbers_of_steps_are_noted(table, sample):
    runs = table({"SRC": {"x": [1], "y": [1]}, "a": {"x": [1], "y": [1]}, "ref": {"x": [1], "y": [1]}})
    # Targets of different sizes take different numbers of steps; methods are still treated equally.
    assert notes(runs.assign(steps=[10, 30] * 3)) == []
    uneven = runs.assign(steps=[30, 90, 10, 30, 10, 30])
    unequal = (
        "different numbers of training steps per run: SRC 30 to 90; a, ref 10 to 30; ref need not be an upper bound"
    )
    assert [note.line for note in notes(uneven)] == [unequal]
    # A run that diverged stopped early.
    early = runs.assign(steps=[10, 30, 10, 30, 5, 30], status=["ok"] * 4 + ["diverged", "ok"])
    assert not any("training steps" in note.line for note in notes(early))
    # What is fitted at once takes none.
    assert notes(runs.assign(steps=[10, 30, 10, 30, 0, 0])) == []
    # The suite's own come first.
    assert note_lines(sample) == {"reviews": ["train reduced to 500, not the paper's 2000"]}


def test_problems_are_grouped_by_severity_and_methods_with_equal_problems_share_a_line(table):
    lost = {"x": [1, 1, None]}
    runs = table({"a": {"x": ["failed: no\x1b[31m\nway", "diverged", 1]}, "b": lost, "c": lost})
    assert problems(runs)[["method", "status", "runs", "planned", "seed"]].values.tolist() == [
        ["a", "diverged", 1, 3, 1],
        ["a", "failed", 1, 3, 0],
        ["b", "missing", 1, 3, 2],
        ["c", "missing", 1, 3, 2],
    ]
    assert list(problem_lines(runs)) == [
        "table: a: 1 of 3 runs diverged, first at target x, seed 1",
        "table: a: 1 of 3 runs failed, first at target x, seed 0: no [31m way",
        "table: b, c: 1 of 3 runs each missing, first at target x, seed 2",
    ]


def test_a_note_is_told_once_with_the_experiments_that_have_it(table):
    own = {"SRC": {"x": [1, 2]}}
    parts = [planned(own, name, notes=("for all", *more)) for name, more in (("one", ()), ("two", ("for one",)))]
    assert [line.text for line in folder_lines(frame_of(*parts))] == ["for all", "two: for one"]


def test_outlying_scores_are_named(table):
    runs = table(
        {"SRC": {"x": [100, 103, 98, 110, 95, 104, 99, 20]}, "DARN": {"x": [104, 103, 98, 110, 95, 104, 99, 96]}}
    )
    (note,) = notes(runs)
    assert note.line.endswith(": SRC at target x, seed 7 (10, median 49.75)")
