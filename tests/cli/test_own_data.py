"""`data identify` of a table or arrays, and the page that goes from a file to a verdict."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench.cli.main import main
from msda_bench.data import LocalFiles
from msda_bench_builtin.datasets import Hospitals
from tests.reader import Reader, blocks

BLOCKS = blocks("own-data.md")


def table(folder: Path, rows: int = 60) -> Path:
    """Three sites, of which one has one class alone and one no labels; a leak, an identifier and a damaged number."""
    path = folder / "t.csv"
    lines = ["site,ill,age,name,code,dose,empty,note,visit"]
    for site in "abcd":
        for row in range(rows):
            ill = {"c": "1", "d": ""}.get(site, str(row * 7 % 5 % 2))
            dose = "much" if row == 3 else str(row % 4)
            note = f"{'good' if row % 2 else 'bad'} day"
            fields = (site, ill, row * 3.5, f"{site}{row}", "xy"[ill == "1"], dose, "", note, f"{site}{row // 3}")
            lines.append(",".join(map(str, fields)))
    path.write_text("\n".join(lines))
    return path


def test_a_table_is_looked_through_and_its_first_suite_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, suite = table(tmp_path), tmp_path / "suites" / "mine.yaml"
    suite.parent.mkdir()
    options = ["--domain", "site", "--label", "ill", "--text", "note", "--group", "visit", "--suite", str(suite)]
    assert main(["data", "identify", str(path), *options]) == 0
    said = capsys.readouterr().out
    for line in (
        "120 rows of 2 domains, classification, 2 classes",
        "leak: each value of column 'code' has one label alone, so it is in `drop`",
        "odd: column 'name' has 240 different texts, so it is in `drop`",
        "odd: column 'dose' holds numbers, but 'much' in row 4, so it is in `categories`",
        "no label: 60 rows have no label (column 'ill'): domain 'd' has no labels at all",
        "one class: domain 'c' has one class alone, '1'; this domain is left out",
        "left out: empty (empty)",
        "a: 0 60 %, 1 40 %",
    ):
        assert line in said, line
    assert 'file: "../t.csv"' in suite.read_text()
    assert main(["validate", str(suite)]) == 0
    methods = re.findall(
        r"^  (\w+) +(?:pooled|ensemble|adapt|target_only|regularised|\w+_regression|\w+_boosting|\w+_forest)",
        capsys.readouterr().out,
        re.MULTILINE,
    )
    assert methods == [
        "SRC",
        "CORAL",
        "DANN",
        "logistic",
        "boosting",
        "forest",
        "TAR",
    ]  # one source alone: nothing to weigh


def test_arrays_and_a_regression_get_a_suite_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, rng = np.repeat(["a", "b", "c"], 40), np.random.default_rng(1)
    np.savez(tmp_path / "t.npz", features=rng.normal(size=(120, 4)), y=rng.normal(size=120), site=site)
    suite = tmp_path / "mine.yaml"
    options = ["--domain", "site", "--label", "y", "--suite", str(suite)]
    assert main(["data", "identify", str(tmp_path / "t.npz"), *options]) == 0
    assert "120 rows of 3 domains, regression" in capsys.readouterr().out
    assert main(["validate", str(suite)]) == 0
    assert "BNM" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--domain", "site"], "a table or arrays need both --domain and --label"),
        (["--domain", "hospital", "--label", "ill"], "no column 'hospital' for `domain`"),
        (["--domain", "site", "--label", "age", "--text", "words"], "no column 'words' for `text`"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(
    options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "identify", str(table(tmp_path)), *options]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.glob("*.yaml"))


@pytest.mark.slow
def test_following_the_page_ends_in_a_verdict(tmp_path: Path) -> None:
    data = Hospitals()
    try:
        [LocalFiles(dataset=data.name).path(file) for file in data.files]
    except DataError as error:
        pytest.skip(str(error))
    reader = Reader(tmp_path)
    for block in BLOCKS:
        reader.follow(block)
        suite = reader.place / "mine.yaml"
        if suite.exists():  # smaller than the page's
            text = suite.read_text().replace("targets: all", "targets: [hungary]").replace("seeds: 9", "seeds: 1")
            suite.write_text(text.replace("epochs: 8, steps: 30", "epochs: 2, steps: 10"))
    said = " ".join(reader.said.split())
    assert "table: 920 rows of 4 domains, classification, 2 classes" in said
    assert "is valid: 1 experiment, 10 cells" in said
    assert "balanced accuracy in percent" in said
    assert "10 of 10 cells selected: 10 trained" in said
