"""Predictions that come with the data are a row that is shown like TAR, and neither ranked nor compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.api import DomainData
from msda_bench.cli.main import main
from msda_bench.data.splits import split
from msda_bench_builtin.datasets import Table

ROWS = 60
SITES = ("a", "b", "t")
EMPTY = dict.fromkeys(SITES, DomainData(np.empty((ROWS, 0)), np.empty(ROWS)))


def table(folder: Path, guess: Any) -> list[str]:
    """A table of three sites, of which a column holds `guess(row, label)`; its labels."""
    rng = np.random.default_rng(2)
    lines, labels = ["site,ill,age,dose,vendor"], []
    for site in SITES:
        for row in range(ROWS):
            labels.append("yes" if row % 3 else "no")
            lines.append(f"{site},{labels[-1]},{rng.normal():.3f},{rng.normal():.3f},{guess(row, labels[-1])}")
    (folder / "t.csv").write_text("\n".join(lines))
    return labels


def suite(folder: Path, dataset: str, method: str = "{scheme: given, reference: true}") -> Path:
    path = folder / "s.yaml"
    path.write_text(
        f"""\
schema: 1
name: s
dataset: {dataset}
targets: [t]
seeds: 6
backbone: {{mlp: {{hidden: [4]}}}}
training: {{epochs: 1, steps: 2, batch: 4, optimizer: adam}}
keep: [predictions]
methods:
  SRC: {{scheme: pooled}}
  theirs: {method}
"""
    )
    return path


TABLE = "{table: {file: t.csv, domain: site, label: ill, predictions: vendor}}"


def test_a_vendors_answers_are_counted_on_the_test_of_every_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = table(tmp_path, lambda row, label: label if row % 4 else "yes")
    path = suite(tmp_path, TABLE)
    assert main(["validate", str(path)]) == 0
    assert "vendor" not in capsys.readouterr().out  # it is no input
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--executor", "inline"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Predictions that come with the data, not trained here: theirs." in said
    runs = mb.load_results(tmp_path / "out" / "s")
    mine = runs[runs["method"] == "theirs"]
    assert mine["reference"].all()
    for seed, right, tested in zip(mine["seed"], mine["n_correct"], mine["n_test"], strict=True):
        rows = split(Table(train=0.5), "t", EMPTY, seed=seed)["t"].test
        assert tested == len(rows)
        assert right == sum(bool(row % 4) or labels[2 * ROWS + row] == "yes" for row in rows)
    assert mb.compare(runs).empty  # SRC alone is left to compare
    assert main(["report", str(tmp_path / "out" / "s")]) == 0
    assert main(["store", "verify", "--strict", str(tmp_path / "out" / "s")]) == 0


@pytest.mark.parametrize(
    ("dataset", "method", "says"),
    [
        (TABLE, "{scheme: given}", "given shows predictions of another's model; add reference: true"),
        (TABLE.replace(", predictions: vendor", ""), None, "table names none (`predictions`)"),
        (TABLE.replace("vendor", "maker"), None, "no column 'maker' for `predictions`"),
        (TABLE.replace("vendor", "ill"), None, "column 'ill' is both label and predictions; name two columns"),
        (TABLE.replace("vendor", "age"), None, "which is none of the classes no, yes; correct it, or leave it empty"),
        (TABLE, "{scheme: given, reference: true, prior_correction: em}", "given changes no prediction; remove it"),
    ],
)
def test_a_suite_that_cannot_show_predictions_gets_one_line(
    dataset: str, method: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(tmp_path, lambda _, label: label)
    path = suite(tmp_path, dataset, *([] if method is None else [method]))
    assert main(["validate", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_test_row_without_a_prediction_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(tmp_path, lambda row, label: label if row else "")
    path = suite(tmp_path, TABLE)
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--executor", "inline"]) in {1, 2}
    assert "1 of 30 test examples of target 't' have no prediction" in capsys.readouterr().err
