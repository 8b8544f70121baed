"""Commands on installed components (`plugins`, `check`, `new`, `schema`), third-party distributions among them."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import ENTRY

PLUGIN = '''
    from msda_bench.api import Aggregate, Aggregator, Validator, component, hookimpl

    @component
    class Mine(Validator):
        """DESCRIPTION"""
        name = "NAME"
        version = 7
        number: float = 1.0

        def score(self, view):
            return SCORE

    @hookimpl
    def msda_validators():
        return [Mine]
'''
AGGREGATOR = """
    @component
    class Equal(Aggregator):
        '''Equal weights.'''
        name = "equal_weights"
        stackable = False

        def __call__(self, risks, gaps, mu, state):
            return Aggregate((risks + mu * gaps).mean(), risks.new_full(risks.shape, 1 / len(risks)), state)

    @hookimpl
    def msda_aggregators():
        return [Equal]
"""
BROKEN_PART = """
    @hookimpl
    def msda_schemes():
        raise ValueError("not today")
"""


def plugin(name="mine", score="self.number", description="A number."):
    return PLUGIN.replace("NAME", name).replace("SCORE", score).replace("DESCRIPTION", description)


def test_every_component_is_listed_with_its_distribution_though_others_are_broken(install, said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")  # a pipe gets whole lines
    install("kind-stranger", plugin("always", description="Uses [/b] the [red] of [a, b), " + "long, " * 40 + "end."))
    install("terse-stranger", plugin("terse", description=" "), version="2.5")
    install("one", plugin("twin"), version="1.0")
    install("two", plugin("twin"), version="2.0")
    install("broken-stranger", "raise OSError('no [licence] found')", version="0.3")
    code, out, err = said("plugins")
    assert (code, out[0].split()) == (2, ["kind", "name", "version", "distribution", "description"])
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in out}
    assert rows["validator", "terse"] == ["7", "terse-stranger", "2.5"]
    assert " ".join(rows["validator", "always"][3:]).startswith("Uses [/b] the [red] of [a, b), long,")
    assert rows["validator", "always"][-1] == "end."
    assert rows["aggregator", "sharpmax"][1] == "msda-bench"
    assert ("validator", "twin") in rows
    assert ("executor", "inline") in rows
    what = "entry point 'plugin' (broken_stranger): broken_stranger.py:1: OSError: no [licence] found"
    assert err == [
        f"msda-bench: error: broken-stranger 0.3: {what}",
        "msda-bench: error: validator 'twin' is claimed by one 1.0 and two 2.0; uninstall one of them",
    ]


def test_process_state_that_a_plugin_changes_on_import_is_restored_and_reported(install, said):
    deeds = "import os, torch\n    torch.set_default_dtype(torch.float64)\n    os.environ['LOUD'] = '1'"
    install("rude-stranger", plugin("rude").replace("from msda_bench", f"{deeds}\n    from msda_bench", 1))
    install("sudden-stranger", plugin("sudden").replace("return [", "import random; random.seed(1); return ["))
    code, out, err = said("plugins")
    changed = {
        "rude": "torch's default dtype and the environment's variables",
        "sudden": "Python's global random generator",
    }
    assert code == 0
    assert err == [
        f"msda-bench: warning: {name}-stranger 1.0: entry point 'plugin' ({name}_stranger) changed {what}: it was put "
        "back, since every run of the process shares it"
        for name, what in changed.items()
    ]
    assert {"rude", "sudden"} <= {line.split()[1] for line in out}


PRINTS = """import io, os, sys, threading, time
    print("zoo \\x1b[31mloaded")
    os.system("echo of a process")
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
    """


@pytest.mark.parametrize("command", ["plugins", "schema"])
def test_what_a_plugin_prints_is_named_on_stderr_and_stdout_is_the_commands_own(install, site, command):
    loud = plugin("loud").replace("from msda_bench", f"{PRINTS}from msda_bench", 1)
    told = (
        "@classmethod\n        def description(cls):\n            print('I am', end='')\n            return 'Loud.'\n\n"
    )
    described = loud.replace("    def score", f"    {told}        def score")
    install("loud-stranger", described)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    done = subprocess.run([*ENTRY, command], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    if command == "schema":
        assert json.loads(done.stdout)["title"]
    else:
        assert all(len(line.split()) >= 4 for line in done.stdout.splitlines())
    printed = [line for line in done.stderr.splitlines() if " printed: " in line]
    whose = "msda-bench: loud-stranger 1.0 printed:"
    assert printed == [f"{whose} zoo [31mloaded", f"{whose} I am"]
    assert "of a process" in done.stderr
    if command == "plugins":
        assert "entry point 'plugin' (loud_stranger) changed sys.stdout: it was put back" in done.stderr


def test_a_command_ends_though_a_plugin_keeps_a_thread_and_a_process(install, site):
    keeps = "import multiprocessing, threading, time\n    threading.Thread(target=time.sleep, args=(60,)).start()\n    "
    keeps += "multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,), name='Child').start()\n    "
    install("slow-stranger", plugin("slow").replace("from msda_bench", f"{keeps}from msda_bench", 1))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    code = "from msda_bench.cli import end, main; end._PATIENCE = 0.5; main.entry()"
    command = [sys.executable, "-c", code, "plugins"]
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert time.monotonic() - begun < 50
    assert (done.returncode, done.stdout.count(" slow-stranger 1.0 ")) == (0, 1)
    left = (
        "msda-bench: warning: ends without waiting for thread 'Thread-1 (sleep) of slow-stranger 1.0', process 'Child'"
    )
    assert done.stderr.splitlines()[-1] == left


def test_check_reports_each_clause_and_accepts_parameters(install, said):
    install("kind-stranger", plugin(score="1 / self.number"), version="2.5")
    code, lines, _ = said("check mine --params '{number: 2.0}'")
    assert (code, lines[0]) == (0, "validator mine, version 7, of kind-stranger 2.5")
    assert "  kept     score is a finite float" in lines
    assert lines[-1] == f"validator mine keeps its contract: {len(lines) - 2} kept"
    code, lines, _ = said("check mine --params '{number: 0.0}'")
    assert code == 1
    assert any("kind_stranger.py:12: ZeroDivisionError: float division by zero" in line for line in lines)


def test_a_clause_that_does_not_apply_fails_only_with_strict(said):
    for options, expected in (("", 0), (" --strict", 1)):
        code, lines, _ = said(f"check none{options}")
        reason = lines[lines.index("  skipped  gradient reaches the features") + 1].strip()
        assert (code, reason) == (expected, "discrepancy 'none' declares `uses_target = False`")
        assert lines[-1].startswith("discrepancy none keeps its contract: ")
        assert " skipped" in lines[-1]
        assert ("; --strict counts skipped clauses as failures" in lines[-1]) == bool(options)


def test_each_part_of_a_distribution_is_checked_once_and_an_unusable_one_fails_it(install, said):
    install("two-parts", plugin() + AGGREGATOR)
    code, lines, _ = said("check Two_Parts equal_weights none")
    heads = [line.split(",")[0] for line in lines if ", version " in line]
    assert (code, heads) == (0, ["aggregator equal_weights", "validator mine", "discrepancy none"])
    assert lines[-1] == "3 of 3 components pass"
    code, lines, _ = said("check two-parts --strict")
    assert (code, lines[-1]) == (1, "1 of 2 components pass")
    install("three-parts", plugin("third") + BROKEN_PART)
    code, lines, _ = said("check three-parts")
    assert (code, lines[-1]) == (1, "1 of 1 components pass; parts that cannot be used: 1")


def test_new_writes_a_distribution_and_says_what_comes_next(said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = "msda-bench-inverse"
    for out, place in ((".", f"./{folder}"), (f"{tmp_path}/there", f"{tmp_path}/there/{folder}")):
        code, lines, _ = said(f"new aggregator inverse --out {out}")
        assert (code, lines[0]) == (0, f"{place.removeprefix('./')}: the aggregator inverse, ready to install. Next:")
        ranked = "msda-bench run poisoned/fonts-poisoned --methods {}/ranked.yaml --against reference"
        then = ("pip install -e {}", "msda-bench check inverse", "msda-bench run {}/suite.yaml", ranked)
        assert lines[1:] == [f"  {line.format(place)}" for line in then]
        assert (tmp_path / place / "src" / "msda_bench_inverse.py").is_file()
