"""Suites with hundreds of domains: work that grows with their number, lists that stay readable, hours that are said."""

import os
import re
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.running import forecast


@pytest.fixture
def table(tmp_path, monkeypatch):
    """`table(n)`: the suite that `data identify` writes for a table of n domains, and the lines that it prints."""
    monkeypatch.chdir(tmp_path)

    def made(number, capsys, classes=2):
        places = [(domain, row) for domain in range(number) for row in range(2 * classes)]
        rows = [f"S{domain:03d},{(domain * 37 + row * 53) % 101 / 8},c{row % classes}" for domain, row in places]
        (tmp_path / f"t{number}.csv").write_text("\n".join(["site,x,y", *rows]))
        suite = Path(f"t{number}.yaml")
        words = [f"t{number}.csv", "--domain", "site", "--label", "y", "--suite", str(suite)]
        assert main(["data", "identify", *words]) == 0
        return suite, capsys.readouterr().out.splitlines()

    return made


def test_hundreds_of_domains_take_work_in_proportion_and_readable_lines(table, capsys, monkeypatch):
    calls = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda *args, **more: calls.append(args) or stat(*args, **more))
    work = {}
    for number in (40, 160):
        suite, out = table(number, capsys)
        chosen = re.search(r"targets: (.*?) #", suite.read_text())[1]
        assert chosen.count("S") == 8
        line = f"targets: 8 of {number} domains, drawn at random, since each adds runs with {number - 1} sources"
        assert any(line in said for said in out)
        suite.write_text(suite.read_text().replace(chosen, "all"))
        calls.clear()
        assert main(["validate", str(suite)]) == 0
        work[number] = len(calls)
        said = capsys.readouterr().out.splitlines()
        assert max(map(len, [*said, *out])) < 250
        assert f"... ({number} in all); seeds" in said[0]
    assert work[160] < 5 * work[40]
    rows = [line.split() for line in out]
    at = rows.index(["(120", "others)", "240", "240", "480"])
    assert (rows[at - 1], rows[at + 1]) == (["S039", "2", "2", "4"], ["all", "320", "320", "640"])
    assert "sources each may take hours or days: `msda-bench run" in said[-2]


def test_the_table_of_many_classes_and_domains_counts_both(table, capsys):
    _, out = table(13, capsys, classes=15)
    rows = [line.split() for line in out]
    assert rows[rows.index(["all", "15", "390"]) - 1] == ["S012", "15", "30"]


def test_the_hours_of_many_runs_are_said_before_they_begin(table, capsys, monkeypatch):
    suite, _ = table(3, capsys)
    text = suite.read_text().replace("epochs: 8, steps: 30", "epochs: 1, steps: 2")
    text = re.sub(r"(?m)^  (?!SRC:|TAR:|table:)[\w-]+: .*\n", "", re.sub("seeds: [0-9]+", "seeds: 1", text))
    suite.write_text(text)
    monkeypatch.setattr(forecast, "_MANY", 2)
    run = ["run", str(suite), "--executor", "inline"]
    assert main([*run, "--limit", "3"]) == 0
    assert "3 runs with 2 sources each may take hours or days" in capsys.readouterr().err
    assert main(run) == 0
    said = capsys.readouterr().err
    assert re.search(r"3 runs with 2 sources each take some [\d.e-]+ hours of a core or GPU, as the stored ones", said)
