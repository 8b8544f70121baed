"""What all commands share: light imports, one line for each mistake, the exit code, signals, and unwritable output."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from msda_bench.cli import main as program
from msda_bench.cli.command import COMMANDS
from msda_bench.store import Store
from msda_bench.store.check import verify
from tests.cli.conftest import ENTRY, INLINE

GOLDEN = Path(__file__).parents[1] / "store" / "golden" / "schema-1"
RUN = "run tiny.yaml --device cpu --quiet --workers 1 --only seed=0,method=SRC,target=target_0"


def python(*words, **changed):
    environ = os.environ | changed
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=environ)


TABLE = "site,y,age\n" + "".join(f"{'ab'[i % 2]},{'no' if i % 3 else 'yes'},{i}\n" for i in range(40))
IDENTIFY = "data identify golden; data identify table.csv --domain site --label y"
READS = """leaderboard golden; compare golden; compare golden same; verify same; store verify golden; store seal golden;
store merge merged golden; store reference golden"""
PROCESSES = {
    "reading": (
        (
            "run('--help; --version; run --help; suites list')",
            "torch pandas scipy numpy matplotlib pydantic rich altair",
        ),
        (f"run({READS!r})", "torch altair vl_convert jinja2"),
        ("run('report golden')", "torch"),
        ("import msda_bench.engine.train; run('plugins')", "torchvision sklearn"),
    ),
    "before a first run": (
        (f"run('data list; {IDENTIFY}')", "torch sklearn scipy.stats altair matplotlib"),
        ("run('validate tiny.yaml')", "torch._dynamo torchvision sklearn msda_bench.engine.train"),
    ),
    "running again": (
        (
            f"run({' '.join(INLINE)!r})",
            "scipy.stats altair vl_convert matplotlib torchvision numba sklearn distributed msda_bench.engine.train",
        ),
    ),
}
"""What processes do one after the other, and which modules that and all before must not have imported."""
RUN_ALL = """
import shlex, sys
from msda_bench.cli.main import main
def run(commands):
    for command in commands.split(";"):
        main(shlex.split(command))
"""


@pytest.mark.parametrize("name", PROCESSES)
def test_nothing_that_is_not_needed_is_imported(tiny, name):
    for folder in ("golden", "same"):
        shutil.copytree(GOLDEN, folder)
    Path("table.csv").write_text(TABLE)
    if name == "running again":
        assert program.main(list(INLINE)) == 0
    code = RUN_ALL
    for line, absent in PROCESSES[name]:
        code += f"{line}\nprint('loaded:', [name for name in {absent.split()} if name in sys.modules])\n"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    loaded = [line for line in done.stdout.splitlines() if line.startswith("loaded:")]
    assert loaded == ["loaded: []"] * len(PROCESSES[name])


def test_help_is_grouped_and_each_command_says_what_it_does_with_examples(capsys):
    assert program.main([]) == program.main(["--help"]) == 0
    whole = capsys.readouterr().out
    assert whole[: len(whole) // 2] == whole[len(whole) // 2 :]
    for group, commands in COMMANDS.items():
        assert f"\n{group}:\n" in whole
        for name, command in commands.items():
            assert command.line in whole
            assert program.main([name, "--help"]) == 0
            said = " ".join(capsys.readouterr().out.split())
            assert command.more in said
            assert all(f"msda-bench {example}" in said for example in command.examples)
            for example in command.examples:
                assert program.make_parser().parse_args(shlex.split(re.split(" [|>] ", example)[0]))


def test_a_bug_exits_with_3_and_a_traceback():
    done = python(
        "-c",
        "import sys\nfrom msda_bench.cli import author, main\nauthor.plugins = lambda: 1 / 0\n"
        "sys.argv = ['msda-bench', 'plugins']\nmain.entry()",
    )
    assert done.returncode == 3
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert done.stderr.endswith("msda-bench: this is a bug; please report it with the lines above\n")


LIBRARY = "libcudart.so.12: cannot open shared object file"


@pytest.mark.parametrize(
    ("command", "package", "code", "why"),
    [
        ("run x.yaml", "torch", f"raise OSError({LIBRARY!r})", f"OSError: {LIBRARY}"),
        ("plugins", "numpy", "raise ImportError('built for another Python')", "ImportError: built for another Python"),
    ],
)
def test_an_unimportable_library_is_one_line(tmp_path, command, package, code, why):
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(code)
    done = python(*ENTRY[1:], *command.split(), PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    line = f"msda-bench: error: {package} cannot be imported, and every run needs it: {why}; reinstall {package}\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.parametrize("command", ["--help", RUN])
def test_output_that_cannot_be_written_is_one_line_and_exit_code_2(tiny, command):
    line = f"{shlex.join(ENTRY)} {command} > /dev/full"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    said = "stdout cannot be written: No space left on device; free space, or redirect it elsewhere"
    assert (done.returncode, done.stderr) == (2, f"msda-bench: error: {said}\n")
    if command == RUN:  # the trained cells are stored
        assert verify(Store(Path("results/tiny"))).records == 1


def test_characters_that_an_encoding_lacks_are_escaped(tiny):
    shutil.copytree(GOLDEN, "東")
    done = python(*ENTRY[1:], "report", "東", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "\\u6771/report.html"), done.stderr


HEAD = "from msda_bench.api import Validator, component, hookimpl\n"
HOOK = "@hookimpl\ndef msda_validators():\n    "
CLASS = f"""{HEAD}
class Meta(type(Validator)):
    def __getattribute__(cls, name):
        if name == 'ATTRIBUTE':
            raise GeneratorExit
        return super().__getattribute__(name)

class V(Validator, metaclass=Meta):
    name = 'v'
    def score(self, view): ...

{HOOK}return [MADE]
"""
HOSTILE = {
    "base_exception": ("raise BaseException('a\\x1b[31m')", "BaseException: a [31m"),
    "hook": (f"{HEAD}{HOOK}raise KeyboardInterrupt", "KeyboardInterrupt: no message"),
    "keyboard_interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt: no message"),
    "odd_name": (
        CLASS.replace("ATTRIBUTE", "name").replace("MADE", "V"),
        "V cannot be inspected: odd_name.py:6: GeneratorExit: no message",
    ),
    "odd_tasks": (
        CLASS.replace("ATTRIBUTE", "tasks").replace("MADE", "component(V)"),
        "V cannot be inspected: odd_tasks.py:6: GeneratorExit: no message",
    ),
    "unspeakable": (
        "class Odd(Exception):\n    def __str__(self):\n        raise KeyError\nraise Odd",
        "Odd: its message cannot be read, since its __str__ raises",
    ),
}


def path_with(site):
    return f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"


def test_no_plugin_disables_a_command(tiny, install, site):
    for name, (code, _) in HOSTILE.items():
        install(name, code)
    done = python(*ENTRY[1:], "validate", "tiny.yaml", PYTHONPATH=path_with(site))
    assert done.returncode == 0, done.stderr
    for line, (name, (_, reason)) in zip(done.stderr.splitlines(), sorted(HOSTILE.items()), strict=True):
        assert line.startswith(f"msda-bench: warning: {name} 1.0: ")
        assert line.endswith(reason)


@pytest.mark.parametrize(("command", "signals"), [("plugins", 1), ("run tiny.yaml --device cpu", 2)])
def test_ctrl_c_is_not_blamed_on_a_plugin_and_a_second_changes_nothing(tiny, install, site, command, signals):
    # Not by print: if a signal arrives while it flushes, it writes its text twice.
    install("slow", "import os, time\nos.write(2, b'waiting\\n')\ntime.sleep(600)")
    environ = os.environ | {"PYTHONPATH": path_with(site)}
    with subprocess.Popen([*ENTRY, *command.split()], stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stderr.readline() == "waiting\n"
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "msda-bench: interrupted; run the same command again to resume\n")
