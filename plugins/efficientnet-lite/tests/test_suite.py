"""The installed plugin is listed, and runs on some real images under its own distribution's name."""

import csv
import os
import subprocess
import sysconfig
import tarfile
from pathlib import Path

import pytest
import yaml

import msda_bench as mb

DISTRIBUTION = ("msda-bench-efficientnet-lite", "1.0.0")
PROGRAM = Path(sysconfig.get_path("scripts")) / "msda-bench"
DOMAINS = ["art_painting", "cartoon", "photo", "sketch"]
CLASSES = ("dog", "house")
EACH = 12


def msda_bench(*words, **variables):
    environment = {**os.environ, **variables}
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_is_listed():
    rows = [line.split() for line in msda_bench("plugins").splitlines()]
    (row,) = [row for row in rows if row[:2] == ["backbone", "efficientnet-lite0"]]
    assert tuple(row[3:5]) == DISTRIBUTION


@pytest.fixture
def images(tmp_path):
    archive = Path(os.environ.get("MSDA_BENCH_DATA", ""), "pacs/pacs_q72.tar")
    if not archive.is_file():
        pytest.skip("no pacs/pacs_q72.tar below MSDA_BENCH_DATA")
    folder, left = tmp_path / "some", {}
    with tarfile.open(archive) as tar:
        for member in tar:
            kind = Path(member.name).parts[-3:-1]
            if member.isfile() and kind[-1] in CLASSES and left.setdefault(kind, EACH):
                left[kind] -= 1
                path = folder.joinpath(*kind, Path(member.name).name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())
    return folder


def test_distinguishes_real_dogs_from_houses(images, tmp_path):
    suite = tmp_path / "suite.yaml"
    msda_bench("data", "identify", images, "--suite", suite)
    plan = yaml.safe_load(suite.read_text())
    ((_, params),) = plan["dataset"].items()
    backbone = {"efficientnet-lite0": {"trainable": "none"}}
    dataset = {"image_folder": {**params, "domains": DOMAINS, "classes": len(CLASSES), "side": 224, "train": 16}}
    training = {"epochs": 30, "batch": 10, "optimizer": {"adam": {"lr": 0.001}}}
    changes = {"backbone": backbone, "dataset": dataset, "training": training, "seeds": 1, "targets": ["photo"]}
    suite.write_text(yaml.safe_dump({**plan, **changes}))
    out, folders = tmp_path / "out", {"MSDA_BENCH_DATA": str(tmp_path), "MSDA_BENCH_CACHE": str(tmp_path / "cache")}
    msda_bench("run", suite, "--out", out, "--executor", "inline", **folders)
    (results,) = out.iterdir()
    with (results / "leaderboard.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["target"] == "photo"]
    assert {row["method"] for row in rows} >= {"SRC", "DARN"}
    assert all(float(row["mean"]) >= 70 for row in rows)
    assert mb.load_results(results)["distributions"].str.contains(" ".join(DISTRIBUTION), regex=False).all()
