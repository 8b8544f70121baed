"""Answers for a target without labels that differ widely from what the sources have are named."""

import random
import re

import pytest

import msda_bench as mb
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
def test_answers_unlike_the_sources_are_named_and_others_are_not(numbers, tmp_path, monkeypatch, shown):
    monkeypatch.chdir(tmp_path)
    run, folder = ("run", "s.yaml", "--executor", "inline", "--out"), tmp_path / "out" / "answers"
    table(tmp_path, shift=0, numbers=numbers)
    assert "answers for t" not in shown(*run, "alike")
    table(tmp_path, shift=30, numbers=numbers)
    said = shown(*run, "out")
    if numbers:
        assert "note: answers for t: 100 % (SRC) lie outside the sources' labels, -" in said
    else:
        assert re.search(r"answers for t: class 1 for 100 % \(SRC\) of the rows, where the sources have [5-7]", said)
        assert "note: answers for t: a mean probability above 0.99 (SRC 1.000)" in said
    shown("report", folder)
    assert "answers for t: " in (folder / "report.html").read_text()
    assert len(mb.load_predictions(folder)) == 60
    runs = mb.load_results(folder)
    store = results_of(runs).store
    sources = store.kept(store.read(runs["key"].iloc[0]), "predictions")["sources"]
    if numbers:
        labels = [float(line.split(",")[3]) for line in (tmp_path / "t.csv").read_text().splitlines()[1:121]]
        assert (sources[:, 0] < sources[:, 1]).all()
        assert min(labels) - 1e-4 <= sources.min() < sources.max() <= max(labels) + 1e-4
    else:
        assert sources.sum(axis=1).tolist() == [30, 30]  # the half that trains
