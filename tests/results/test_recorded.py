"""What frames and tables of a folder say is what its records say, as they are now."""

import pickle
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.results.files import result_files
from msda_bench.results.leaderboard import analyse
from msda_bench.results.predictions import per_class
from msda_bench.store import Outcome, Store
from tests.logs import lines_of, records_of, relog
from tests.results.conftest import frame, frame_of, planned, write_folder

RECORDED = Path(__file__).parents[2] / "results"
RESULTS = RECORDED / "ablation-digits-scale"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(RESULTS, tmp_path / "results")


def test_the_frame_has_what_the_records_say_and_loading_changes_no_file(folder):
    before = sorted(folder.rglob("*"))
    runs = mb.load_results(folder).set_index("key")
    assert sorted(folder.rglob("*")) == before
    for key, record in records_of(folder).items():
        run = runs.loc[key]
        assert (run["status"], run["n_test"], run["n_correct"]) == (
            "ok", record.outcome.n_test, record.outcome.n_correct,
        )  # fmt: skip
        assert (run["steps"], run["train_seconds"]) == (record.timing["steps"], record.timing["train"])
        assert (run["torch"], run["stack"]) == (record.provenance["torch"], record.provenance["stack"])
        assert bool(run["target_labels"]) == record.target_labels
        assert {f"version:{name}": run[f"version:{name}"] for name in record.provenance["distributions"]} == {
            f"version:{name}": version for name, version in record.provenance["distributions"].items()
        }
        assert {name: run[f"validator:{name}"] for name in record.validation} == record.validation


def test_damage_is_reported_until_the_cell_is_trained_again(folder):
    record = [*records_of(folder).values()][2]
    relog(folder, {record.key: lines_of(folder)[record.key].replace(b'"n_test":', b'"n_test":1')})
    Store(folder).publish(replace(record, status="failed", outcome=None, message="no memory"))  # hides nothing
    for _ in range(2):
        runs = mb.load_results(folder)
        assert runs.results.damaged == (record.key,)
        assert runs.set_index("key").loc[record.key, ["status", "message"]].tolist() == ["failed", "no memory"]
    Store(folder).publish(record)
    runs = mb.load_results(folder)
    assert (runs["status"] == "ok").all()
    assert not runs.results.damaged


FIRST = Outcome(10, 7, confusion=((0, 0, 4), (0, 2, 1), (2, 0, 2), (2, 2, 3)))
SECOND = Outcome(10, 10, confusion=((0, 0, 5), (2, 2, 5)))


def test_every_run_with_confusion_counts_is_listed(tmp_path):
    runs = {"A": {"t": [FIRST, SECOND]}, "B": {"t": [Outcome(10, 5), "failed: why"]}}
    counts = mb.load_confusion(write_folder(tmp_path / "suite", planned(runs)))
    assert list(counts) == ["experiment", "target", "method", "seed", "true", "predicted", "count"]
    assert counts[["method", "seed"]].drop_duplicates().to_numpy().tolist() == [["A", 0], ["A", 1]]
    pairs = counts.loc[counts["seed"] == 0, ["true", "predicted", "count"]]
    assert tuple(pairs.itertuples(index=False, name=None)) == FIRST.confusion
    classes = per_class(counts)
    assert classes[["class", "n", "taken_for"]].values.tolist() == [[0, 10, 2], [2, 10, 0]]
    assert classes["accuracy"].tolist() == [(80 + 100) / 2, (60 + 100) / 2]


_LEVEL = {"SRC": 300, "ref-TAR": 350, "MDAN-hard": 309, "DARN": 312}


def sample():
    """Diverged, failed and missing runs, a reference, a failing method, a recipe like a formula, few seeds."""
    targets = ("books", "dvd", "electronics", "kitchen")
    reviews = {
        name: {target: [_review(name, target, seed) for seed in range(8)] for target in targets}
        for name in ("SRC", "ref-TAR", "MDAN-hard", "DARN", "NEW")
    }
    waves = {"mmd": 0.00234, "spectral": 0.00221}
    sine = {
        name: {"left": [Outcome(100, sum_squared_error=100 * error * (1 + seed / 16)) for seed in range(3)]}
        for name, error in waves.items()
    }
    notes = ("train reduced to 500, not the paper's 2000",)
    first, *rest = planned(reviews, "reviews", "amazon", notes=notes, baseline="SRC")
    first = replace(first, methods=(replace(first.methods[0], recipe="=pooled"), *first.methods[1:]))
    errors = {"SRC": {"x": [0.5]}, "DARN": {"x": [0.25]}, "ref": {"x": [0.125]}}
    less = planned(errors, "less", "less", "regression", baseline="SRC")
    return frame_of((first, *rest), planned(sine, "sine", "sine", "regression"), less)


def _review(name, target, seed):
    if name == "NEW":
        return f"failed: RuntimeError: bad\x1b[31m shape in seed {seed}\nsecond line" if seed < 5 else "oom"
    if (name, target, seed) == ("DARN", "dvd", 2):
        return "diverged: loss is nan in epoch 3"
    if (name, target) == ("MDAN-hard", "kitchen") and seed in {1, 4, 5, 7}:
        return None
    draw, shared = random.Random(f"{name} {target} {seed}"), random.Random(f"{target} {seed}")
    return Outcome(400, n_correct=_LEVEL[name] + shared.randrange(20) + draw.randrange(8))


COMMITTED = sorted(path.parent for path in RECORDED.glob("*/leaderboard.csv"))


def test_files_match_the_golden_files(golden):
    for name, text in result_files(analyse(sample())).items():
        golden(name.replace("/", "-"), text)
        assert "\x1b" not in text


@pytest.mark.slow
@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_committed_folders_match_their_records_and_claim_only_what_their_pairs_can_show(folder):
    files = result_files(analyse(mb.load_results(folder)))
    assert {name: (folder / name).read_text() for name in files} == files
    rows = pd.read_csv(folder / "comparisons.csv")
    differ, tested = rows["outcome"].isin(["better", "worse"]), rows["reason"] == "not significant"
    assert len(rows.columns) <= 18
    assert differ.equals(rows["p_holm"] <= 0.05)
    assert (rows["reason"].notna() == (rows["outcome"] == "unknown")).all()
    assert (rows.loc[rows["outcome"] == "same", ["p", "p_holm"]] == 1).all(axis=None)
    assert rows.loc[~differ & ~tested, "detectable"].isna().all()


def test_the_order_of_cells_and_records_changes_no_byte():
    folder = RESULTS
    plan, records = Store(folder).read_plan(), records_of(folder)
    turned = frame(replace(plan, cells=plan.cells[::-1]), dict(reversed(records.items())))
    assert result_files(analyse(frame(plan, records))) == result_files(analyse(turned))


def written(runs):
    """Frames as users write them: from each function, and what pandas derives from these."""
    board = mb.leaderboard(runs)
    yield from (runs, board, mb.compare(runs), mb.load_curves(runs), mb.load_confusion(runs), mb.criteria(runs))
    yield runs.groupby(["method", "target"], as_index=False, observed=True)["score"].mean()
    yield runs["score"].to_frame()
    yield board.pivot(index=["experiment", "method"], columns="target", values="mean").reset_index()
    yield board.melt(id_vars=["method", "target"], value_vars=["mean", "gain"])


def test_frames_are_written_and_read_by_other_libraries_and_a_part_still_has_its_plan(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    runs = mb.load_results(RESULTS)
    part = runs[runs["seed"] < 2]
    for made in written(part):
        assert not made.attrs  # libraries write these beside the columns
        made.to_parquet(tmp_path / "frame.parquet", index=False)
        made.reset_index(drop=True).to_feather(tmp_path / "frame.feather")
        for read in (pd.read_parquet(tmp_path / "frame.parquet"), pd.read_feather(tmp_path / "frame.feather")):
            assert [read.shape, [*read]] == [made.shape, [*map(str, made)]]
        assert arrow.Table.from_pandas(made).num_rows == len(made)
    for known in (
        part,
        part.copy(deep=True),
        part.query("seed < 2").sort_values("seed"),
        pickle.loads(pickle.dumps(part)),  # noqa: S301 - our own
    ):
        assert mb.leaderboard(known)["n_planned"].max() == 2
    for lost in (pd.concat([part, runs[runs["seed"] > 2]]), part.merge(part[["key"]]), pd.DataFrame(part)):
        with pytest.raises(ValueError, match="runs: the frame has lost its plan"):
            mb.leaderboard(lost)
