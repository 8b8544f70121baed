"""`msda-bench plugins` as a user runs it, with third-party distributions installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import TypeAlias

import pytest

from msda_bench.cli.main import main

Done: TypeAlias = subprocess.CompletedProcess[str]

PLUGIN = '''
    from msda_bench.api import Validator, component, hookimpl

    @component
    class Always(Validator):
        """DESCRIPTION"""
        name = "NAME"
        version = 7

        def score(self, view):
            return 1.0

    @hookimpl
    def msda_validators():
        return [Always]
'''


def plugin(name: str, description: str = "Always one.") -> str:
    return PLUGIN.replace("NAME", name).replace("DESCRIPTION", description)


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`plugins(width)`: the output of the command in a terminal with this many columns."""

    def run(width: int = 200) -> Done:
        monkeypatch.setenv("COLUMNS", str(width))
        code = main(["plugins"])
        return subprocess.CompletedProcess(["plugins"], code, *capsys.readouterr())

    return run


def rows(done: Done) -> list[list[str]]:
    return [line.split() for line in done.stdout.splitlines()]


def test_lists_every_component_with_its_distribution(site, install):
    install("kind-stranger", plugin("always"), version="2.5")
    command = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()", "plugins"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path]), "COLUMNS": "200"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(done)[0] == ["kind", "name", "version", "distribution", "description"]
    assert ["validator", "always", "7", "kind-stranger", "2.5", "Always", "one."] in rows(done)
    assert any(row[:2] == ["aggregator", "sharpmax"] and row[3] == "msda-bench" for row in rows(done))


def test_piped_output_has_one_line_per_component_in_any_terminal_width(plugins, install):
    install("kind-stranger", plugin("always", "Always " + "one, " * 40 + "for ever."))
    (row,) = [row for row in rows(plugins(width=60)) if row[:2] == ["validator", "always"]]
    assert row[-1] == "ever."


def test_broken_and_colliding_plugins_are_named_and_the_others_listed(plugins, install):
    install("kind-stranger", plugin("always"))
    install("one", plugin("twin"), version="1.0")
    install("two", plugin("twin"), version="2.0")
    install("broken-stranger", "raise OSError('no [licence] found')", version="0.3")
    done = plugins()
    assert done.returncode == 2
    what = "entry point 'plugin' (broken_stranger): broken_stranger.py:1: OSError: no [licence] found"
    assert done.stderr.splitlines() == [
        f"msda-bench: error: broken-stranger 0.3: {what}",
        "msda-bench: error: validator 'twin' is claimed by one 1.0 and two 2.0; uninstall one of them",
    ]
    names = {row[1] for row in rows(done)}
    assert {"always", "twin", "sharpmax"} <= names


def test_a_description_is_shown_verbatim_and_a_blank_one_is_omitted(plugins, install):
    install("terse-stranger", plugin("terse", " "))
    install("odd-stranger", plugin("odd", "Uses [/b] the [red] of [a, b)."))
    done = plugins()
    assert done.returncode == 0, done.stderr
    assert ["validator", "terse", "7", "terse-stranger", "1.0"] in rows(done)
    assert "Uses [/b] the [red] of [a, b)." in done.stdout


def test_process_state_that_a_plugin_changes_on_import_is_restored_and_reported(plugins, install):
    deeds = "import os, torch\n    torch.set_default_dtype(torch.float64)\n    os.environ['LOUD'] = '1'"
    install("rude-stranger", plugin("rude").replace("from msda_bench", f"{deeds}\n    from msda_bench", 1))
    install("sudden-stranger", plugin("sudden").replace("return [", "import random; random.seed(1); return ["))
    done = plugins()
    assert done.returncode == 0
    deeds = {
        "rude": "torch's default dtype and the environment's variables",
        "sudden": "Python's global random generator",
    }
    assert done.stderr.splitlines() == [
        f"msda-bench: warning: {name}-stranger 1.0: entry point 'plugin' ({name}_stranger) changed {deed}: it was put "
        "back, since every run of the process shares it"
        for name, deed in deeds.items()
    ]
    assert {"rude", "sudden"} <= {row[1] for row in rows(done)}
