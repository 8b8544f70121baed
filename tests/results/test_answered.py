"""Answers for a target without labels that differ widely from what the sources have are named."""

import random
import re

import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.results.runs import results_of

SUITE = """
schema: 1
name: answers
dataset: {{table: {{file: t.csv, domain: site, label: y, unlabelled: target, protocol: transductive{task}}}}}
targets: [t]
seeds: 1
backbone: linear
training: {{epochs: 4, steps: 40, batch: 20, optimizer: {{adam: {{lr: 0.1}}}}}}
keep: [predictions]
validators: [{validator}]
methods:
  SRC: {{scheme: pooled}}
"""


def table(folder, *, shift, numbers):
    """Two sites with labels, half of them yes, and one without, whose column x lies higher by a shift."""
    draw = random.Random(5)
    lines = ["site,x,z,y"]
    for site in "abt":
        for row in range(60):
            yes = row % 2
            x = yes + draw.gauss(0, 0.5)
            label = f"{x:.3f}" if numbers else ("no", "yes")[yes]
            lines.append(f"{site},{x + shift * (site == 't'):.3f},{draw.random():.3f},{'' if site == 't' else label}")
    (folder / "t.csv").write_text("\n".join(lines))
    task = ", task: regression" if numbers else ""
    validator = "source_risk" if numbers else "source_accuracy"
    (folder / "s.yaml").write_text(SUITE.format(task=task, validator=validator))


@pytest.mark.parametrize("numbers", [False, True])
def test_answers_unlike_the_sources_are_named_and_others_are_not(numbers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = {}
    for shift in (0, 30):
        table(tmp_path, shift=shift, numbers=numbers)
        assert main(["run", "s.yaml", "--executor", "inline", "--out", f"out{shift}"]) == 0
        said[shift] = " ".join(capsys.readouterr().out.split())
    assert "answers for t" not in said[0]
    if numbers:
        assert "note: answers for t: 100 % (SRC) lie outside the sources' labels, -" in said[30]
    else:
        assert re.search(
            r"answers for t: class 1 for 100 % \(SRC\) of the rows, where the sources have [5-7]", said[30]
        )
        assert "note: answers for t: a mean probability above 0.99 (SRC 1.000)" in said[30]
    assert main(["report", "out30/answers"]) == 0
    assert "answers for t: " in (tmp_path / "out30/answers/report.html").read_text()
    answers = mb.load_predictions("out30/answers")
    assert len(answers) == 60
    runs = mb.load_results("out30/answers")
    store = results_of(runs).store
    sources = store.kept(store.read(runs["key"].iloc[0]), "predictions")["sources"]
    if numbers:
        labels = [float(line.split(",")[3]) for line in (tmp_path / "t.csv").read_text().splitlines()[1:121]]
        assert (sources[:, 0] < sources[:, 1]).all()
        assert min(labels) - 1e-4 <= sources.min() < sources.max() <= max(labels) + 1e-4
    else:
        assert sources.sum(axis=1).tolist() == [30, 30]  # the half that trains
