"""`msda-bench new` as a user runs it."""

from __future__ import annotations

import pytest

from msda_bench.cli import new
from msda_bench.cli.main import main
from msda_bench.plugins import KINDS


def run(*argv: str) -> int:
    return main(["new", *argv])


def test_the_next_commands_are_reported(capsys, tmp_path):
    assert run("aggregator", "inverse", "--out", str(tmp_path)) == 0
    folder = tmp_path / "msda-bench-inverse"
    assert (folder / "src" / "msda_bench_inverse.py").is_file()
    assert capsys.readouterr().out.splitlines() == [
        f"{folder}: the aggregator inverse, ready to install. Next:",
        f"  pip install {folder}",
        "  msda-bench check inverse --kind aggregator",
        f"  msda-bench run {folder / 'suite.yaml'}",
    ]


def test_a_folder_here_is_printed_as_pip_expects_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("aggregator", "inverse") == 0
    assert "  pip install ./msda-bench-inverse" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["aggregator", "Sharpmax"], "aggregator 'sharpmax' of msda-bench"),
        (["scheme", "discrepancy"], "Discrepancy is a name of msda_bench.api, which the code imports"),
        (["scheme", "class"], "class is a Python keyword"),
        (["scheme", "a/b"], "'a/b' cannot name both a component and a module"),
    ],
)
def test_bad_names_are_refused_and_nothing_is_written(tmp_path, words, line, capsys):
    assert run(*words, "--out", str(tmp_path)) == 2
    assert line in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_distribution_that_is_installed_is_not_written_again(tmp_path, install, capsys):
    install("msda-bench-mine", "x = 1", version="3.2")
    assert run("dataset", "mine", "--out", str(tmp_path / "out")) == 2
    assert "msda-bench-mine 3.2 is already installed; choose another name" in capsys.readouterr().err


def test_only_known_kinds_can_be_written(capsys):
    assert set(new._KINDS) == set(KINDS)
    assert main(["new", "optimizer", "mine"]) == 2
    assert "invalid choice: 'optimizer'" in capsys.readouterr().err
