"""The paper's second table on the copies at hand runs, and stands beside the published one without being compared."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.api import Dataset
from msda_bench.cli.main import main
from msda_bench.data.files import LocalFiles
from tests.builtin.suites import SUITES, loaded

TINY = {
    "train: 2000, test: 3500, made_train: 6000, made_test: 4000": "train: 8, test: 8, made_train: 8, made_test: 8",
    "epochs: 50, batch: 128, precision: tf32": "epochs: 1, batch: 8",  # a CPU has no tf32
    "channels: [64, 128, 256], hidden: [2048, 1024]": "channels: [4, 4, 4], hidden: [8]",
    "seeds: 20": "seeds: 2",
}


@pytest.mark.slow
def test_the_small_table_is_shown_beside_the_papers_and_not_compared(
    real: Callable[[Dataset], LocalFiles], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite, expansion = loaded("paper-digits-small")
    real(suite.experiments[0].dataset.component)
    assert len(expansion.cells) == 6 * 4 * 20
    text = (SUITES / "paper-digits-small.yaml").read_text()
    for whole, tiny in TINY.items():
        assert text.count(whole) == 1
        text = text.replace(whole, tiny)
    path = tmp_path / "small.yaml"
    path.write_text(text)
    assert main(["run", str(path), "--out", str(tmp_path), "--device", "cpu", "--executor", "inline"]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "paper-digits-small")]) == 0
    out = capsys.readouterr().out
    assert "verdict: paper-digits-small: not comparable" in out
    with (tmp_path / "paper-digits-small" / "verify.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["comparable"], row["difference"]) for row in rows} == {("false", "")}
    assert {row["target"] for row in rows} == {"mnist", "mnist_m", "svhn"}
    assert {row["published_mean"] for row in rows if (row["method"], row["target"]) == ("DARN", "svhn")} == {"81.58"}
    assert all(row["mean"] for row in rows)
