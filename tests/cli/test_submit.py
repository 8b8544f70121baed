"""`submit`, and `run --repeat`, by which a maintainer trains some of its runs again and marks the folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.store import Outcome
from tests.cli.conftest import INLINE, SUITE, texts

REPEAT = ("--device", "cpu", "--executor", "inline", "--as", "A. Maintainer", "--out", "again", "--repeat")


@pytest.fixture
def submitted(tiny, monkeypatch) -> Path:
    """A submission of a method that was trained in the protocol of another suite."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    (tiny / "parts").mkdir()
    (tiny / "parts/tiny.yaml").write_text(SUITE.replace("seeds: 2", "seeds: 8"))
    (tiny / "whole.yaml").write_text("schema: 1\nname: whole\ninclude: [parts/tiny.yaml]\n")
    (tiny / "mine.yaml").write_text("methods:\n  Mine: {discrepancy: coral, mu: 1.0e-3}\n")
    assert main(["run", "whole.yaml", *INLINE[2:], "--methods", "mine.yaml", "--quiet"]) == 0
    assert main(["submit", "results/whole-mine", "whole.yaml", "--methods", "mine.yaml"]) == 0
    return tiny / "submission/whole-mine"


def again(folder: Path, *words: str) -> int:
    return main(["run", str(folder / "suite.yaml"), *REPEAT, str(folder), *words])


def test_a_submission_stands_alone_and_is_repeated(submitted, capsys):
    capsys.readouterr()
    assert main(["submit", "results/whole-mine", "whole.yaml", "--methods", "mine.yaml", "--out", "other"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("other/whole-mine: 16 results, ")
    assert out.count("  tiny: Mine at target target_") == 12
    assert {path.name for path in submitted.iterdir()} >= {"plan.json", "cells", "suite.yaml", "parts", "lock.txt"}
    assert not (submitted / "commands.txt").exists()
    assert any(line.startswith("msda-bench==") for line in (submitted / "lock.txt").read_text().splitlines())
    shutil.rmtree("results")
    Path("mine.yaml").unlink()
    assert main(["store", "verify", "--strict", str(submitted)]) == 0
    assert again(submitted) == 0
    assert len(list(Path("again").rglob("cells/*/*.json"))) == 12
    mark = json.loads((submitted / "repeated.json").read_text())
    assert (mark["by"], mark["of"], set(mark["runs"].values())) == ("A. Maintainer", 16, {0.0})
    assert main(["store", "verify", "--strict", str(submitted)]) == 0
    capsys.readouterr()
    assert main(["leaderboard", str(submitted), "--json"]) == 0
    (note,) = [note for note in texts(json.loads(capsys.readouterr().out), "notes") if note.startswith("repeated")]
    assert note.startswith("repeated by A. Maintainer on 20")
    assert note.endswith("): 12 of 16 runs, drawn by their results; 12 equal")
    assert main(["site", str(submitted), "--out", "site"]) == 0
    assert any(
        "12 of 16 runs, drawn by their results; 12 equal" in page.read_text() for page in Path("site").rglob("*.html")
    )


def test_a_mark_is_of_the_results_that_drew_it(submitted, capsys):
    assert again(submitted) == 0
    path, mark = submitted / "repeated.json", json.loads((submitted / "repeated.json").read_text())
    key = next(iter(mark["runs"]))
    for change, line in (
        ({"results": "0" * 64}, "is not of these results, which have changed or draw other runs; repeat them again"),
        ({"of": 99}, "is not of these results"),
        ({"runs": mark["runs"] | {"f" * 64: 0.0}}, "runs: must have at most 12 items, not 13"),
        ({"runs": {key: 0.0}}, "is not of these results"),
        ({"by": ""}, "is damaged: by: "),
        ({"more": 1}, "is damaged: more: unknown key"),
        ({"schema": 2}, "is damaged: schema: "),
    ):
        path.write_text(json.dumps(mark | change))
        capsys.readouterr()
        assert main(["store", "verify", "--strict", str(submitted)]) == 1
        assert f"{path}: {line}" in capsys.readouterr().out.replace("is damaged: runs", "runs")
        assert main(["leaderboard", str(submitted), "--quiet"]) == 0  # says so, and shows the tables
    path.write_bytes(b"\xff{")
    assert main(["store", "verify", "--strict", str(submitted)]) == 1
    assert f"{path}: is damaged" in capsys.readouterr().out


def test_other_results_draw_other_runs_and_differences_are_counted(make_results, tmp_path, monkeypatch):
    from msda_bench.results.repeated import compared, drawn

    def other(record, method, target, seed):
        return record if seed else record.__class__(**{**vars(record), "outcome": Outcome(100, n_correct=7)})

    ours, theirs = (
        mb.load_results(make_results(name, records=of)) for name, of in (("a", lambda one, *_: one), ("b", other))
    )
    assert len(set(drawn(ours))) == 12
    assert set(drawn(ours)) != set(drawn(theirs))
    mark = compared(ours, theirs, "me", "2026-11-23")
    differences = {key: abs(a - b) for key, a, b in zip(ours["key"], ours["score"], theirs["score"], strict=True)}
    assert mark.runs == {key: differences[key] for key in drawn(ours)}
    changed = [size for size in mark.runs.values() if size]
    assert changed
    assert f"; {12 - len(changed)} equal, the largest difference in the score {max(changed):.3g}" in str(mark)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("submit results/tiny other.yaml", "results/tiny: has other runs than the suite asks for; name its suite, and"),
        ("submit results/tiny tiny.yaml --out .", "is there already; move it away, or name another folder with --out"),
        ("submit results/tiny tiny.yaml --out results/tiny", "--out results/tiny: would write into the result folder"),
        ("submit results/none tiny.yaml", "results/none: is missing; name a result folder"),
        ("run tiny.yaml --repeat results/tiny", "--repeat and --as need each other: --repeat DIR --as NAME"),
        ("run tiny.yaml --as me", "--repeat and --as need each other: --repeat DIR --as NAME"),
        ("run tiny.yaml --repeat results/tiny --as=", "--as: needs the name of who trains again"),
        ("run tiny.yaml --repeat results/tiny --as me --limit 2", "--repeat draws the runs itself; remove --only,"),
        ("run tiny.yaml --repeat results/tiny --as me", "--out results: holds the runs that are to be trained again"),
        ("run other.yaml --repeat results/tiny --as me --out new", "--repeat results/tiny: its runs are not those of"),
    ],
)
def test_bad_usage_is_one_line(tiny, words, line, capsys):
    assert main([*INLINE, "--quiet"]) == 0
    Path("other.yaml").write_text(SUITE.replace("lr: 0.01", "lr: 0.02"))
    Path("tiny").mkdir()
    capsys.readouterr()
    assert main(words.split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert line in error


def test_after_an_edit_of_the_suite_only_what_it_asks_for_is_submitted(tiny, capsys):
    assert main([*INLINE, "--quiet"]) == 0
    Path("results/tiny/tables/mine.tex").write_text("% of the user\n")
    Path("parts.yaml").write_text(SUITE.replace("seeds: 2", "seeds: 1").replace("name: tiny", "name: other"))
    Path("tiny.yaml").write_text("schema: 1\nname: tiny\ninclude: [parts.yaml]\n")
    assert main([*INLINE, "--quiet"]) == 0
    assert {path.name for path in Path("results/tiny/tables").iterdir()} == {
        *(f"other{what}.tex" for what in ("", "-pairs", "-summary")),
        "mine.tex",
    }
    assert main(["store", "verify", "--strict", "results/tiny"]) == 1
    capsys.readouterr()
    assert main(["submit", "results/tiny", "tiny.yaml"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("results/tiny: records of 4 cells that the suite no longer asks for are left out\n")
    assert "submission/tiny: 4 results, " in out
    assert main(["store", "verify", "--strict", "submission/tiny"]) == 0


def test_a_folder_that_is_not_fit_is_not_submitted(tiny, capsys):
    assert main([*INLINE, "--quiet"]) == 0
    for name, line in (("leaderboard.csv", "is not what the records give"), ("repeated.json", "is a maintainer's")):
        Path("results/tiny", name).write_text("")
        assert main(["submit", "results/tiny", "tiny.yaml"]) == 2
        assert line in capsys.readouterr().err
    assert not Path("submission").exists()
