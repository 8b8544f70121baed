"""Every command that cannot be carried out as it was given: one line, exit code 2, and nothing is trained or made."""

import re
import shlex
from pathlib import Path

import pytest
import torch

from msda_bench.cli.main import main
from tests.cli.test_data import PLUGIN as DATASET
from tests.cli.test_plugins import AGGREGATOR, plugin

TEXT = Path(__file__).with_name("usage.txt").read_text()
CASES = re.findall(r"^\$ (.*)\n([^$].*)$", TEXT, re.MULTILINE)
"""Commands, and a part of the line that each gets."""


def test_no_case_is_skipped():
    assert 2 * len(CASES) == TEXT.count("\n")


@pytest.mark.parametrize(("words", "line"), CASES)
def test_bad_usage_is_one_line(tiny, make_results, install, capsys, words, line):
    if words.endswith("--device cuda") and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    for name in "AB":
        make_results(name, seeds=[0])
    Path("tf32.yaml").write_text(Path("tiny.yaml").read_text().replace("epochs:", "precision: tf32, epochs:"))
    install("needy-data", DATASET.replace('name = "toy"', 'name = "needy"\n        more: int'))
    install("twice", plugin("twice") + AGGREGATOR.replace("equal_weights", "twice"))
    install("msda-bench-mine", "x = 1", version="3.2", group="others")
    assert main(shlex.split(words)) == 2
    err = capsys.readouterr().err
    (error,) = [shown for shown in err.splitlines() if "error: " in shown]
    assert line in error
    assert not [*Path("results").rglob("*.jsonl*"), *Path().glob("out")]
