"""`msda-bench validate`, on the components that come with the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench.cli.main import main

SUITES = Path(__file__).parents[2] / "suites"


def run(*argv: str) -> int:
    return main(["validate", *argv])


def test_a_suite_is_summarised(capsys):
    assert run(str(SUITES / "smoke.yaml")) == 0
    assert capsys.readouterr().out == (
        "smoke: sine (regression), targets target_0, target_1; seeds 0-1; 12 cells\n"
        "  SRC   pooled\n"
        "  TAR   target_only (reference)\n"
        "  DARN  adapt + spectral_l2 + sharpmax, mu 0.01\n"
        "\n"
        "suite smoke is valid: 1 experiment, 12 cells\n"
    )


def test_unusual_seeds_and_identical_methods_are_shown(capsys, tmp_path):
    text = (SUITES / "smoke.yaml").read_text().replace("seeds: 2", "seeds: [4]").replace("[target_0, target_1]", "all")
    suite = tmp_path / "twins.yaml"
    suite.write_text(text.replace("  TAR:", "  SRC2: {scheme: pooled}\n  TAR:"))
    (tmp_path / "both.yaml").write_text("schema: 1\nname: both\ninclude: [twins.yaml, b.yaml]\n")
    (tmp_path / "b.yaml").write_text(text.replace("name: smoke", "name: b").replace("[4]", "[0, 2]"))
    assert run(str(tmp_path / "both.yaml")) == 0
    lines = capsys.readouterr().out.splitlines()
    targets = "target_0, target_1, target_2, target_3"
    assert lines[0] == f"smoke: sine (regression), targets {targets}; seeds 4; 16 cells"
    assert lines[6] == f"b: sine (regression), targets {targets}; seeds 0, 2; 24 cells"
    assert lines[-1] == "suite both is valid: 2 experiments, 40 cells, 36 of them different"


def test_a_batch_larger_than_the_data_is_a_warning_with_both_numbers(capsys, tmp_path):
    text = (SUITES / "smoke.yaml").read_text()
    (tmp_path / "large.yaml").write_text(text.replace("batch: 5,", "batch: 21,"))
    assert run(str(tmp_path / "large.yaml")) == 0
    assert capsys.readouterr().err == (
        "msda-bench: warning: smoke: training.batch is 21, but a domain has 20 training examples (train: 20 of dataset "
        "sine), so every step draws some of them more than once\n"
    )


def test_a_mistake_is_a_line_with_its_place(tmp_path, capsys):
    suite = tmp_path / "s.yaml"
    suite.write_text((SUITES / "smoke.yaml").read_text().replace("gamma: 1.0", "gamma: -1.0"))
    assert run(str(suite)) == 2
    line = f"{suite}:13:77: methods.DARN.aggregator.sharpmax.gamma: must be greater than 0, not -1.0"
    assert capsys.readouterr().err == f"msda-bench: error: {line}\n"


@pytest.mark.parametrize("suite", sorted(SUITES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_suite_of_the_project_is_valid(suite, capsys, install):
    network = SUITES.parent / "plugins/efficientnet-lite/src/msda_bench_efficientnet_lite.py"
    install("msda-bench-efficientnet-lite", network.read_text())
    assert run(str(suite)) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"suite {suite.stem} is valid: ")
