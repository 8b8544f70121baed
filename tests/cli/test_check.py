"""`msda-bench check` as a user runs it, on installed components that keep or break their contract."""

from __future__ import annotations

import re

import pytest

from msda_bench.cli.main import main

PLUGIN = '''
    from msda_bench.api import Validator, component, hookimpl

    @component
    class Mine(Validator):
        """A number."""
        name = "NAME"
        number: float = 1.0

        def score(self, view):
            return SCORE

    @hookimpl
    def msda_validators():
        return [Mine]
'''


def plugin(name: str, score: str = "self.number") -> str:
    return PLUGIN.replace("NAME", name).replace("SCORE", score)


def run(*argv: str) -> int:
    return main(["check", *argv])


def test_each_clause_is_reported(install, capsys):
    install("kind-stranger", plugin("mine"), version="2.5")
    assert run("mine") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "validator mine, version 1, of kind-stranger 2.5"
    assert "  kept     score is a finite float" in lines
    assert lines[-1] == f"validator mine keeps its contract: {len(lines) - 2} kept"


def test_a_broken_clause_is_followed_by_its_reason_and_the_exit_code_is_1(install, capsys):
    install("kind-stranger", plugin("mine", "float('nan') if len(view.source_outputs) > 1 else 0.0"))
    assert run("mine") == 1
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("  broken   score is a finite float")
    assert lines[place + 1].strip().startswith("validator 'mine': the score is nan for classification; the contract")
    assert "broken" in lines[-1]
    assert lines[-1].startswith("validator mine breaks its contract: ")


def test_a_clause_that_raises_is_broken_and_names_the_place(install, capsys):
    install("kind-stranger", plugin("mine", "1 / 0"))
    assert run("mine") == 1
    assert "kind_stranger.py:11: ZeroDivisionError: division by zero" in capsys.readouterr().out


def test_a_clause_that_does_not_apply_is_reported(capsys):
    assert run("none") == 0
    out = capsys.readouterr().out
    clause, reason = "gradient reaches the features", "discrepancy 'none' declares `uses_target = False`"
    assert f"  skipped  {clause}\n           {reason}" in out
    assert out.splitlines()[-1].startswith("discrepancy none keeps its contract: ")
    assert "skipped" in out.splitlines()[-1]


def test_parameters_are_accepted_as_a_suite_writes_them(install, capsys):
    install("kind-stranger", plugin("mine", "1 / self.number"))
    assert run("mine", "--params", "{number: 2.0}") == 0
    assert run("mine", "--params", "{number: 0.0}") == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sharpmx"], r"unknown component 'sharpmx' \(did you mean 'sharpmax'\?\)"),
        (["d_A", "--kind", "aggregator"], r"unknown aggregator 'd_A' \(known: .*sharpmax"),
        (["d_A", "--kind", "critic"], r"unknown kind 'critic' \(known: dataset, backbone"),
        (
            ["sharpmax", "--params", "{gama: 1.0}"],
            r"aggregator 'sharpmax': gama: unknown parameter .*did you mean 'gamma'",
        ),
        (["sharpmax", "--params", "gamma"], r"--params: must be a mapping of parameters"),
        (["sharpmax", "--params", "{"], r"--params:1:2: is not valid YAML"),
    ],
)
def test_mistakes_are_reported_in_one_line(words, line, capsys):
    assert run(*words) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert re.search(line, error)


def test_a_name_of_several_kinds_needs_the_kind(install, capsys):
    install("kind-stranger", plugin("sharpmax"))
    assert run("sharpmax") == 2
    assert "'sharpmax' is the name of an aggregator and of a validator; say which" in capsys.readouterr().err
    assert run("sharpmax", "--kind", "validator") == 0
    assert capsys.readouterr().out.startswith("validator sharpmax")


TWO = """
    from msda_bench.api import Aggregate, Aggregator, Validator, component, hookimpl

    @component
    class Score(Validator):
        \'\'\'A number.\'\'\'
        name = "two_score"

        def score(self, view):
            return 1.0

    @component
    class Equal(Aggregator):
        \'\'\'Equal weights.\'\'\'
        name = "two_equal"
        stackable = False

        def __call__(self, risks, gaps, mu, state):
            return Aggregate((risks + mu * gaps).mean(), risks.new_full(risks.shape, 1 / len(risks)), state)

    @hookimpl
    def msda_validators():
        return [Score]

    @hookimpl
    def msda_aggregators():
        return [Equal]
"""
BROKEN_PART = """
    @hookimpl
    def msda_schemes():
        raise ValueError("not today")
"""


def test_each_part_of_a_distribution_is_checked_against_its_contract(install, capsys):
    install("two-parts", TWO)
    assert run("Two_Parts") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "aggregator two_equal, version 1, of two-parts 1.0" in lines
    assert "validator two_score, version 1, of two-parts 1.0" in lines
    assert lines[-1] == "2 of 2 components pass"
    assert run("two_equal", "none", "two_equal") == 0
    out = capsys.readouterr().out
    assert out.count("aggregator two_equal, version 1") == 1
    assert "discrepancy none, version 1" in out
    assert run("two-parts", "--params", "{x: 1}") == 2
    assert "--params is for one component; 2 are named here" in capsys.readouterr().err


def test_strict_fails_on_a_skipped_clause(install, capsys):
    install("two-parts", TWO)
    assert run("two-parts", "--strict") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 of 2 components pass"
    (verdict,) = [line for line in lines if line.startswith("aggregator two_equal keeps")]
    assert verdict.endswith(", 1 skipped; --strict counts skipped clauses as failures")


def test_a_shared_reason_is_printed_once(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("MSDA_BENCH_DATA", raising=False)
    monkeypatch.setenv("MSDA_BENCH_CACHE", str(tmp_path))
    assert run("amazon") == 0
    out = capsys.readouterr().out
    assert out.count("data of amazon are missing: 8 files, 13.1 MB to fetch") == 1
    assert out.count(" (as: examples are well formed)") == out.count("  skipped  ") - 1 > 3


def test_an_unusable_component_fails_its_distribution(install, capsys):
    install("two-parts", TWO + BROKEN_PART)
    assert run("two-parts") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 components pass; parts that cannot be used: 1"
