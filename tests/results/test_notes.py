"""Notes on how runs were made, from their records."""

from dataclasses import replace

from msda_bench.results.notes import folder_lines, notes
from msda_bench.results.problems import problem_lines
from msda_bench.store.record import Record
from msda_bench.suite.plan import Method, Plan
from tests.results.conftest import BASE, frame, frame_of, planned

SOUND = {"device": "cpu", "numba": "0.61", "torch": "2.11", "stack": 1, "distributions": {"msda-bench": "0.1.0"}}


def lines(change):
    """Of methods a and b, targets x and y, seeds 0 to 5, with records altered by `change`."""
    experiment, cells, records = planned({name: {"x": [5] * 6, "y": [5] * 6} for name in ("a", "b")})
    methods = tuple(Method(name, False, "recipe", ("msda-bench 0.1.0",)) for name in ("a", "b"))
    for cell in cells:
        sound = replace(records[cell.key], provenance=SOUND)
        records[cell.key] = change(sound, cell.method, cell.target, cell.seed) or sound
    runs = frame(Plan("suite", (replace(experiment, methods=methods),), tuple(cells)), records)
    return [note.line for note in notes(runs)]


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


def falls(to):
    """One of a method's seeds at a target no longer classifies the sources; only their labels show it."""

    def change(record, method, target, seed):
        lost = (method, target, seed) == ("b", "y", 3)
        return replace(record, validation={"source_accuracy": to if lost else 0.82 + seed / 100})

    return change


def on(platform):
    """Two systems, of which one has several releases: a new kernel release is not another system."""

    def change(record, method, target, seed):
        release = f"{platform}-{seed}" if platform.startswith("W") else platform
        return made(record, platform=release if seed else "Plan9", device="cuda", device_name="H\x07")

    return change


CHANGES = {
    "sound": lambda *_: None,
    "made by nobody knows what": lambda record, *_: replace(record, provenance={}),
    "failed": lambda record, *_: Record(record.key, record.cell, "failed", message="no", provenance=SOUND),
    "plain loops": lambda record, *_: made(record, numba=None),
    "no loops on a GPU": lambda record, *_: made(record, numba=None, device="cuda"),
    "a validator": fails,
    "process state": changes,
    "older": lambda record, *_: made(record, distributions={"msda-bench": "0.0.9"}),
    "mixed": mixed,
    "a low run within a wide spread": spread,
    "a run far from its siblings": falls(0.6),
    "a run near its siblings": falls(0.75),
    "Debian": on("Linux-6.1.0-18-amd64-x86_64-with-glibc2.36"),
    "WSL": on("Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35"),
    "Arm": on("Linux-6.8.0-1008-nvidia-64k-aarch64-with-glibc2.39"),
    "macOS": on("macOS-15.5-arm64-arm-64bit-Mach-O"),
    "Windows": on("Windows-11-10.0.26100-SP0"),
    "hostile": on("\x1b[31mOS" + 99 * "x"),
}


def test_notes_on_how_runs_were_made_match_the_golden_file(golden):
    said = []
    for name, change in CHANGES.items():
        said += [f"{name}:", *lines(change), ""]
    golden("notes.txt", "\n".join(said))


def test_methods_with_unequal_numbers_of_steps_are_noted(table):
    runs = table({name: {"x": [1], "y": [1]} for name in ("SRC", "a", "ref")})
    line = "different numbers of training steps per run: SRC 30 to 90; a, ref 10 to 30; ref need not be an upper bound"
    for of_runs, lines in (
        ([10, 30] * 3, []),  # by target, whose sizes differ, and not by method
        ([10, 30, 10, 30, 0, 0], []),  # what is fitted at once takes none
        ([30, 90, 10, 30, 10, 30], [line]),
    ):
        assert [note.line for note in notes(runs.assign(steps=of_runs))] == lines
    # A run that diverged stopped early.
    early = runs.assign(steps=[10, 30, 10, 30, 5, 30], status=["ok"] * 4 + ["diverged", "ok"])
    assert not any("training steps" in note.line for note in notes(early))


def test_problems_are_grouped_by_severity_and_methods_with_equal_problems_share_a_line(table):
    lost = {"x": [1, 1, None]}
    runs = table({"a": {"x": ["failed: no\x1b[31m\nway", "diverged", 1]}, "b": lost, "c": lost})
    assert list(problem_lines(runs)) == [
        "table: a: 1 of 3 runs diverged, first at target x, seed 1",
        "table: a: 1 of 3 runs failed, first at target x, seed 0: no [31m way",
        "table: b, c: 1 of 3 runs each missing, first at target x, seed 2",
    ]


def test_a_note_is_told_once_with_the_experiments_that_have_it():
    own = {"SRC": {"x": [1, 2]}}
    parts = planned(own, "one", notes=("for all",)), planned(own, "two", notes=("for all", "for one"))
    assert [line.text for line in folder_lines(frame_of(*parts))] == ["for all", "two: for one"]


def test_outlying_scores_are_named(table):
    (note,) = notes(table({"SRC": {"x": [*BASE[:-1], 20]}, "DARN": {"x": [104, *BASE[1:-1], 96]}}))
    assert note.line.endswith(": SRC at target x, seed 7 (10, median 49.75)")
