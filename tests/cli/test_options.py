"""Every option of every command, taken from the parser, is used once and does something."""

import argparse
import re
import shlex
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from msda_bench.cli import main as program
from msda_bench.cli.main import main
from tests.logs import contents

TABLE = """\
method,target,mean,source,table,certainty
SRC,target,MEAN,a paper,Table 9,high
DARN,target,MEAN,a paper,Table 9,high
"""
METHODS = """
backbone: linear
training: {epochs: 2, batch: 5, steps: 3, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  DARN: {discrepancy: coral, mu: 0.01, aggregator: {sharpmax: {gamma: 1.0}}}
  MDAN: {discrepancy: coral, mu: 0.01, aggregator: {logsumexp: {gamma: 1.0}}}
compare: {baseline: SRC}
"""
LETTERS = f"""
schema: 1
name: letters
dataset: {{fonts: {{train: 20, per_class: 4}}}}
targets: [sans]
sources: [serif, mono]
seeds: 2
{METHODS}
"""
FILES = {
    "tiny.yaml": "schema: 1\nname: tiny\ninclude: [clouds.yaml, letters.yaml]\n",
    "clouds.yaml": f"""
schema: 1
name: clouds
dataset: {{stress: {{train: 40, size: 60, target_size: 100}}}}
targets: [target]
sources: [near, far, irrelevant]
seeds: 5
{METHODS}
select: {{how: random, budget: 2, by: source_risk, space: {{training.optimizer.adam.lr: [0.001, 0.1]}}}}
validators: [source_risk]
published: table.csv
""",
    "letters.yaml": LETTERS,
    "other.yaml": LETTERS.replace("lr: 0.01", "lr: 0.3"),
    "own.yaml": "methods:\n  Mine: {discrepancy: coral, mu: 0.1}\n",
    "table.csv": TABLE.replace("MEAN", "50"),
    "another.csv": TABLE.replace("MEAN", "60"),
    "patients.csv": "hospital,age,notes,patient,rule,disease\n"
    + "".join(f"{n < 40},{n % 37},word{n % 5} word{n % 7},{n // 2},{n % 2},{n % 3 % 2}\n" for n in range(80)),
    "clinics.csv": "hospital,age,disease\n"
    + "".join(f"{n % 3},{n % 37},{n // 3 % 2 if n % 3 else ''}\n" for n in range(90)),
    "wards.csv": "ward,age,crp,sick\n" + "".join(f"{n % 3},{n % 37},{n % 11},{n % 5 > 1}\n" for n in range(90)),
    "new.csv": "age,crp\n" + "".join(f"{n % 31},{n % 7}\n" for n in range(40)),
    "mine.yaml": f"""
schema: 1
name: mine
dataset: {{table: {{file: wards.csv, domain: ward, label: sick}}}}
targets: all
seeds: 2
{METHODS}
""",
}
RUN = "run tiny.yaml --device cpu --executor inline"
OWN = f"{RUN} --methods own.yaml"
NEW = f"{RUN} --out new --only experiment=letters,method=SRC,seed=0"
LOCAL = "run tiny.yaml --device cpu --only method=SRC"  # whose runs are stored, so that no process starts
MINE = "run mine.yaml --device cpu --executor inline --only method=SRC"
PATIENTS = "data identify patients.csv --domain hospital --label disease"
SHOWN = "compare leaderboard report site verify sources"
COMMANDS = {
    **{name: name for name in ("", "suites", "suites list", "plugins", "data", "data list", "schema", "store")},
    **{name: f"{name} results/tiny" for name in (*SHOWN.split(), "store verify")},
    **{name: f"{name} smoke" for name in ("suites show", "suites copy")},
    **{name: f"{name} sine" for name in ("data fetch", "data verify")},
    "run": RUN,
    "validate": "validate tiny.yaml",
    "predict": "predict mine.yaml new.csv --method SRC",
    "check": "check source_risk",
    "new": "new aggregator my_part",
    "data identify": "data identify pictures",
    "data leaks": "data leaks letters.yaml",
    "store merge": "store merge new results/tiny",
    "store seal": "store seal results/tiny",
    "store reference": "store reference results/tiny",
}
"""Each command, without options."""


USES = {
    "--against": ("results/tiny", "leaderboard results/tiny-own"),
    "compare --against": ("results/tiny", "compare results/tiny-own"),
    "report --against": ("results/tiny", "report results/tiny-own"),
    "run --against": ("results/tiny", OWN),
    "run --methods": "own.yaml",
    "--by": "oracle",
    "--experiments": "clouds",
    "--format": "github",
    "new kind": ("", "new KIND my_part"),
    "new --fitted": ("", "new scheme my_part"),
    "run --trust-files": ("", NEW),
    "check --kind": ("metric", "check msda-bench"),
    "check --params": ("'{train: 600}'", "check stress"),
    "check --strict": ("", "check d_A"),
    "run --no-shift": ("", MINE),
    "run --limit": ("1", NEW),
    "compare --match": ("SRC=DARN", "compare results/tiny other/letters"),
    "--methods": "DARN",
    "--metric": "macro_f1",
    "run --only": "method=SRC",
    "--out": "out",
    "predict --method": "DARN",
    "predict --results": "elsewhere",
    "predict --seed": "7",
    "predict --device": "",
    "predict --trust-files": "",
    "predict --fetch": "",
    "predict --quiet": "",
    "run --device": ("", NEW),
    "run --executor": ("inline", NEW),
    "run --fetch": ("", NEW),
    "run --keep-going": ("", NEW),
    "run --scheduler": ("tcp://127.0.0.1:1", f"{NEW} --executor dask"),
    "run --shard": "0/2",
    "run --stack": ("2", NEW),
    "run --timeout": ("500", LOCAL),
    "run --workers": ("1", LOCAL),
    "data identify --suite": "first.yaml",
    "data identify --domain": ("hospital", "data identify patients.csv --label disease"),
    "data identify --label": ("disease", "data identify patients.csv --domain hospital"),
    "data identify --text": ("notes", PATIENTS),
    "data identify --group": ("patient", PATIENTS),
    "data identify --test": ("rule=1", PATIENTS),
    "data identify --predictions": ("rule", PATIENTS),
    "data identify --task": ("", f"{PATIENTS} --suite first.yaml"),
    "data identify --signals": ("", "data identify windows.npz --domain site --label y"),
    "data identify --missing": ("36", PATIENTS),
    "data identify --unpack": ("folder", "data identify hub.parquet --domain site --label y"),
    "data identify --unlabelled": ("drop", "data identify clinics.csv --domain hospital --label disease"),
    "store verify --strict": ("", "store verify marred"),
    "verify --table": "another.csv",
    "compare other": "other/letters",
    "data list names": "stress",
    "data fetch names": ("stress", "data fetch"),
    "data verify names": ("stress", "data verify"),
    "data fetch --all": ("", "data fetch"),
    "data verify --all": ("", "data verify"),
}
"""By option, or by command and option where commands differ: a value that changes what the command does, and the
command where it is not that of `COMMANDS`."""
UNSEEN = (
    *("check --kind", "new kind", "run --device", "run --executor", "run --fetch", "run --keep-going", "run --timeout"),
    *("run --trust-files", "run --workers", "predict --results", "predict --device", "predict --trust-files"),
    *("predict --fetch", "predict --quiet"),
)
"""Options that change no result; what they do cannot be seen here, only that they do no harm."""
REFUSED = (
    "run --stack 2",
    "run --scheduler",
    *(() if torch.cuda.is_available() else ("run --device cuda", "predict --device cuda")),
)
"""What a machine without GPU and dask cluster refuses."""
FEW = 10
"""The maximum number of choices that are all used."""


def options(parser, words=()):
    """Every command with each option, each argument that may be left out, and each argument that has choices."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from options(command, (*words, name))
        elif action.option_strings or action.nargs in ("?", "*") or action.choices:
            yield " ".join(words), action


def cases():
    """For every option and value the command with it, the command without it, and whether both do the same."""
    for command, action in options(program.make_parser()):
        option = action.option_strings[-1] if action.option_strings else ""
        name = f"{command} {option or action.dest}".strip()
        use = USES.get(name, USES.get(option))
        known, plain = use if isinstance(use, tuple) else (use, COMMANDS.get(command))
        values = [str(choice) for choice in action.choices or ()]
        if not 0 < len(values) <= FEW:
            values = ["" if action.nargs == 0 else known]
        for value in values:
            line = None if plain is None or value is None else f"{plain} {option} {value}"
            if plain is not None and "KIND" in plain:
                line = plain.replace("KIND", str(value))
            before = None if name in UNSEEN or option == "--help" else plain
            yield pytest.param(line, before, value == str(action.default), id=f"{name} {value or ''}".strip())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A trained suite, alone and with another method, one like a part of it, a folder that fails verify, and images."""
    home = tmp_path_factory.mktemp("trained")
    for name, text in FILES.items():
        (home / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert main([*RUN.split(), "--quiet"]) == 0
        assert main([*OWN.split(), "--quiet"]) == 0
        assert main([*RUN.replace("tiny", "other").split(), "--quiet", "--out", "other"]) == 0
    shutil.copytree(home / "results/tiny", home / "marred")
    (home / "marred/leaderboard.csv").write_text("")
    for number, place in enumerate(("a/cat", "a/dog", "b/cat", "b/dog")):
        (home / "pictures" / place).mkdir(parents=True)
        Image.new("RGB", (8, 8), (50 * number, 0, 0)).save(home / "pictures" / place / "1.png")
    image = {"bytes": (home / "pictures/a/cat/1.png").read_bytes(), "path": "1.png"}
    rows = [{"image": image, "site": site, "y": label} for site in "ab" for label in ("cat", "dog")]
    pd.DataFrame(rows).to_parquet(home / "hub.parquet")
    noise = np.random.default_rng(0).normal(size=(60, 8, 8))  # which axis is time cannot be seen
    np.savez(home / "windows.npz", x=noise, y=np.arange(60) % 2, site=np.arange(60) // 20)
    return home


@pytest.fixture(scope="module")
def known():
    """The outcomes of commands without the option."""
    return {}


def outcome(line, trained, here, capsys):
    """What a command does in a fresh copy of the trained folder: exit code, output and files; and its errors."""
    shutil.copytree(trained, here)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("MSDA_BENCH_CACHE", str(here / "cache"))
        patch.delenv("MSDA_BENCH_DATA", raising=False)
        patch.setattr("msda_bench.data.fetch", lambda *_, **__: None)  # nothing is downloaded here
        patch.setattr("msda_bench_dask.cluster.ANSWER", 0.5)
        capsys.readouterr()
        code = main(shlex.split(line))
    out, err = capsys.readouterr()
    return (code, re.sub(r"\d+:\d\d:\d\d", "TIME", out), contents(here)), err


@pytest.mark.parametrize(("line", "plain", "is_same"), list(cases()))
def test_every_option_does_what_it_promises(line, plain, is_same, trained, known, tmp_path, capsys, request):
    name = request.node.callspec.id
    assert line is not None, f"{name}: add the command to COMMANDS, and a value of the option to USES"
    done, err = outcome(line, trained, tmp_path / "with", capsys)
    if name.startswith(REFUSED):
        assert done[0] == 2
        assert err.splitlines()[-1].startswith("msda-bench: error: --")
        return
    assert done[0] in (0, 1)
    assert done[1]
    assert "Traceback" not in err
    if plain is not None:
        if plain not in known:
            known[plain], _ = outcome(plain, trained, tmp_path / "without", capsys)
        assert is_same == (done == known[plain])


def test_pairs_without_a_chosen_method_are_left_out(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    assert main(["compare", "results/tiny", "--methods", "DARN"]) == 0
    out = capsys.readouterr().out
    assert "SRC against DARN" in out
    assert "SRC against MDAN" not in out
