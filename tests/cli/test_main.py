"""What all commands share: light imports, one line for each mistake, and the exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from msda_bench import __version__
from msda_bench.cli import main as program
from msda_bench.cli import plugins
from msda_bench.errors import BenchError

HEAVY = ("torch", "pandas", "scipy", "numpy", "matplotlib", "pydantic", "rich", "altair")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_imports_nothing_heavy():
    done = python(
        "import sys, msda_bench\nfrom msda_bench.cli.main import main\n"
        "for words in (['--help'], ['--version'], ['run', '--help']):\n    assert main(words) == 0\n"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_tables_are_printed_without_importing_altair(tmp_path):
    folder = shutil.copytree(Path(__file__).parents[1] / "store" / "golden" / "schema-1", tmp_path / "one")
    done = python(
        "import sys\nfrom msda_bench.cli import run\nfrom msda_bench.cli.main import main\n"
        f"main(['leaderboard', {str(folder)!r}])\n"
        "print('loaded:', [name for name in ('altair', 'vl_convert', 'jinja2', 'torch') if name in sys.modules])"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_a_rerun_imports_nothing_that_only_training_and_charts_need(tmp_path):
    words = ["run", "smoke", "--device", "cpu", "--executor", "inline", "--quiet", "--out", str(tmp_path)]
    assert program.main(words) == 0
    unneeded = ("scipy.stats", "altair", "vl_convert", "matplotlib", "torchvision", "numba", "sklearn", "distributed")
    done = python(
        f"import sys\nfrom msda_bench.cli.main import main\nassert main({words!r}) == 0\n"
        f"print('loaded:', [name for name in {unneeded!r} if name in sys.modules])"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_version_is_printed(capsys):
    assert program.main(["--version"]) == 0
    assert capsys.readouterr().out == f"msda-bench {__version__}\n"


@pytest.mark.parametrize("words", [[], ["no-such-command"], ["plugins", "--no-such-option"], ["run"]])
def test_bad_usage_exits_with_2(capsys, words):
    assert program.main(words) == 2
    assert "usage: msda-bench" in capsys.readouterr().err


def raising(monkeypatch, error: BaseException) -> None:
    def run(_):
        raise error

    monkeypatch.setattr(plugins, "command", run)


def test_each_mistake_is_one_line_without_traceback(monkeypatch, capsys):
    raising(monkeypatch, BenchError("a.yaml:1:2: one", "a.yaml:3:4: two"))
    assert program.main(["plugins"]) == 2
    assert capsys.readouterr().err == "msda-bench: error: a.yaml:1:2: one\nmsda-bench: error: a.yaml:3:4: two\n"


def test_interruption_exits_with_130(monkeypatch, capsys):
    raising(monkeypatch, KeyboardInterrupt())
    assert program.main(["plugins"]) == 130
    assert capsys.readouterr().err.startswith("msda-bench: interrupted; ")


def test_a_bug_exits_with_3_and_a_traceback():
    done = python(
        "import sys\nfrom msda_bench.cli import main, plugins\nplugins.command = lambda _: 1 / 0\n"
        "sys.argv = ['msda-bench', 'plugins']\nmain.entry()"
    )
    assert done.returncode == 3
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert done.stderr.endswith("msda-bench: this is a bug; please report it with the lines above\n")


def broken(folder: Path, package: str, code: str) -> dict[str, str]:
    """The environment of a machine where an installed package cannot be imported."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text(code)
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


LIBRARY = "libcudart.so.12: cannot open shared object file"


@pytest.mark.parametrize(
    ("command", "package", "code", "why"),
    [
        *(
            (command, "torch", f"raise OSError({LIBRARY!r})", f"OSError: {LIBRARY}")
            for command in ("plugins", "check sharpmax", "run x.yaml", "data list")
        ),
        ("plugins", "torch", "import torch_of_a_kind", "ModuleNotFoundError: No module named 'torch_of_a_kind'"),
        ("plugins", "numpy", "raise ImportError('built for another Python')", "ImportError: built for another Python"),
    ],
)
def test_an_unimportable_library_is_reported_in_one_line(tmp_path, command, package, code, why):
    start = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()", *command.split()]
    done = subprocess.run(
        start, capture_output=True, text=True, check=False, cwd=tmp_path, env=broken(tmp_path, package, code)
    )
    line = f"msda-bench: error: {package} cannot be imported, and every run needs it: {why}; reinstall {package}\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rnu"], "unknown: 'rnu' (did you mean 'run'?)"),
        (["data", "fecth"], "unknown: 'fecth' (did you mean 'fetch'?)"),
        (["run", "s.yaml", "--seeds", "0-4"], "unknown option --seeds (did you mean --only seed=0-4?)"),
        (["run", "s.yaml", "--method=DARN"], "unknown option --method=DARN (did you mean --only method=DARN?)"),
        (["run", "s.yaml", "--exectuor", "dask"], "unknown option --exectuor (did you mean --executor?)"),
        (["run", "s.yaml", "--executor", "dusk"], "unknown executor 'dusk' (did you mean 'dask'?)"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(capsys, words, meant):
    assert program.main(words) == 2
    assert capsys.readouterr().err.endswith(f"{meant}\n")


def test_a_closed_pipe_is_not_an_error():
    command = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()", "plugins"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0
