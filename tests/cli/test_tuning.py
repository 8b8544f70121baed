"""A suite whose settings are chosen once on tuning seeds, end to end with the real engine.

Of the candidates the first hardly learns, the second does, and the third diverges.
"""

import collections
import re
import shutil
from pathlib import Path

import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.results.model_selection import select
from msda_bench.store import Store
from tests.cli.conftest import INLINE
from tests.cli.conftest import SUITE as TINY
from tests.logs import contents, relog

SUITE = TINY.replace("epochs: 2", "epochs: 5").replace("steps: 3", "steps: 10").partition("  DARN:")[0]
SUITE += """  TAR: {scheme: target_only, reference: true}
select:
  how: grid
  budget: 3
  seeds: [100, 101]
  by: source_risk
  space: {training.optimizer.adam.lr: [0.000001, 0.1, 1.0e+30]}
validators: [source_risk]
"""
TRACKS = SUITE.replace("  by:", "  tracks: [first, source_risk, oracle]\n  by:")
TUNING, CHOSEN = 2 * 3 * 2 * 2, 2 * 2 * 2  # methods, candidates, targets, tuning seeds; methods, targets, seeds


@pytest.fixture
def run(capsys):
    """`run(suite, ...)`: the counts in a run's summary, and what it says beside it."""

    def run(text, *options):
        Path("tiny.yaml").write_text(text)
        capsys.readouterr()
        assert main([*INLINE, *options]) == 0
        said = capsys.readouterr()
        (line,) = [line for line in said.out.splitlines() if " runs selected: " in line]
        counts = {what: int(count) for count, what in re.findall(r"(\d+) ([a-z -]*[a-z])", line)}
        counts["of"] = int(line.split(" of ")[1].split()[0])
        return collections.defaultdict(int, counts), " ".join(said.err.split())

    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("tiny.yaml").write_text(SUITE)
        assert main([*INLINE]) == 0
    return folder / "results" / "tiny"


@pytest.fixture
def here(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(trained, Path("results") / "tiny"))


def test_only_what_the_tuning_seeds_choose_trains_on_the_others(here, shown):
    runs = mb.load_results(here)
    assert len(runs) == len(Store(here).refresh().results) == TUNING + CHOSEN
    assert set(runs["status"]) == {"ok", "diverged"}
    chosen = select(runs)
    assert set(chosen["seed"]) == {0, 1}
    assert set(chosen["candidate"]) == {1}
    assert (chosen["status"] == "ok").all()
    assert set(mb.leaderboard(runs)["n_planned"]) == {2}
    assert set(mb.load_curves(runs)["seed"]) == {0, 1}
    shown("store", "verify", "--strict", here)
    printed = shown("leaderboard", here)
    on = "Settings chosen once for each method and target on tuning seeds 100-101"
    assert f"{on} by source_risk, without target labels, among 3 candidates." in printed
    assert "candidates that diverged, which cannot be selected: SRC 2 of 6, TAR 2 of 6" in printed
    absent = "what first chooses was not trained for 8 of 8 runs; add it to select.tracks and run the suite again"
    assert shown("leaderboard", here, "--by", "first", code=2) == f"msda-bench: error: tiny: {absent}"


def test_another_track_trains_what_it_chooses_and_is_shown_on_request(here, run, shown):
    Path("tiny.yaml").write_text(TRACKS)
    assert f"{CHOSEN} to train; nothing was changed" in shown(*INLINE, "--dry-run")
    counts, said = run(TRACKS)
    assert (counts["trained"], counts["stored before"], counts["of"]) == (CHOSEN, TUNING + CHOSEN, TUNING + 2 * CHOSEN)
    assert "settings chosen on tuning seeds (source_risk, first, oracle)" in said
    runs = mb.load_results(here)
    assert {by: set(select(runs, by)["candidate"]) for by in ("first", "source_risk", "oracle")} == {
        "first": {0}, "source_risk": {1}, "oracle": {1},
    }  # fmt: skip
    files = contents(here, "*.csv")
    for command in ("leaderboard", "compare"):
        note = "Settings: candidate 0 of each method, without any selection."
        assert shown(command, here, "--by", "first").count(note) == 1
    shown("report", here, "--by", "first")
    assert "candidate 0 of each method" in (here / "report.html").read_text()
    assert contents(here, "*.csv") == files
    first, best = (mb.leaderboard(select(runs, by)).query("target == 'average'")["mean"] for by in ("first", "oracle"))
    assert (first.to_numpy() > best.to_numpy()).all()
    assert run(TRACKS)[0]["trained"] == 0


def test_a_shard_without_all_tuning_cells_says_what_waits_and_a_rerun_goes_on(here, run, shown):
    plan = Store(here).read_plan()
    lost = next(cell for cell in plan.cells if (cell.method, cell.seed, cell.candidate) == ("SRC", 101, 0))
    relog(here, {lost.key: b""})
    its_shard = sorted({cell.key for cell in plan.cells}).index(lost.key) % 2
    _, said = run(TRACKS, "--shard", f"{1 - its_shard}/2")
    assert re.search("[12] runs? must wait for tuning runs without a result; train these, then run again", said)
    incomplete = "incomplete candidates; their runs count as missing: SRC 1 of 6"
    assert incomplete in shown("leaderboard", here, code=1)
    counts, said = run(TRACKS)
    assert counts["trained"] > 0
    assert "wait" not in said
    assert run(TRACKS)[0]["trained"] == 0


def test_a_limit_stops_between_tuning_and_the_choice(tmp_path, monkeypatch, run, shown):
    monkeypatch.chdir(tmp_path)
    one = SUITE.replace("target_0, target_1", "target_0").replace("[0.000001, 0.1, 1.0e+30]", "[0.000001, 0.1]")
    Path("tiny.yaml").write_text(one)
    assert "8 to train; 4 runs must wait for what is chosen on tuning seeds" in shown(*INLINE, "--dry-run")
    assert run(one, "--limit", "7")[0]["trained"] == 7
    counts, _ = run(one, "--limit", "2")
    assert (counts["trained"], counts["skipped by --limit"]) == (2, 3)
    assert run(one)[0]["trained"] == 3
